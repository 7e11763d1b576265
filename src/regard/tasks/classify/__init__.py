"""Classification of texts and table rows."""
