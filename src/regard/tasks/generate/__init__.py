"""Language modeling: text or number sequences, and sampling from them."""
