"""The fill task: masked language modeling, the pre-training of BERT; a text with masks in, words for them out."""
