"""The built-in French-English corpus: a grammar that composes sentence pairs, for demos, lessons and tests."""
