"""The studio: a local web page that shows the recorded values of a model. It works on traces, not on model classes."""
