"""The built-in French-English corpus: lexicon, morphology, grammar and sentence patterns that generate pairs."""
