"""Word vectors: skip-gram and CBOW with negative sampling."""
