"""Engines: other libraries that run the search of a trained model; the run keeps the files that they read."""
