"""GPT-2's ranks (REGARD_DATA/gpt2-bpe): our ids against tiktoken's algorithm on 10,000 random Unicode strings."""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import tiktoken_bpe
from regard.text import Tokenizer

if __name__ == "__main__":
    folder = Path(os.environ["REGARD_DATA"]) / "gpt2-bpe"
    tokenizer = Tokenizer.from_byte_bpe(folder / "encoder.json", folder / "vocab.bpe")
    ranks = tiktoken_bpe.byte_ranks(json.loads((folder / "encoder.json").read_text(encoding="utf-8")))
    texts = list(tiktoken_bpe.random_strings(10_000))
    other = [text for text in texts if tokenizer.encode(text).ids != tiktoken_bpe.encode(text, ranks)]
    print(f"{tokenizer.size:,} tokens; {len(other)} of {len(texts):,} strings have other ids")
