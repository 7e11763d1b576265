"""Translation: sentence pairs in, a translator out."""
