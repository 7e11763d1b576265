"""The studio: a page on this machine that shows what every model really did. It knows traces, not models."""
