from __future__ import annotations

from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from regard.text import Tokenizer, TokenizerConfig
from regard.text.tokenizer_training import TokenizerKind

LINES = [
    "Like a lamb to the slaughter, <EOS> said the  shepherd.",
    "L'habit ne fait pas l'homme; ＡＢＣ ﬁn 12 345",
    "می‌گویند که از تو حرکت",
    "猫に小判 👩‍👧 é e\u0301",
    " leading and trailing ",
] * 3


@pytest.mark.parametrize("kind", ["char", "word", "bpe", "byte-bpe", "unigram", "wordpiece"])
def test_transformers_reads_our_file_and_gives_equal_ids_and_text(kind: TokenizerKind, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    ours = Tokenizer.train(LINES, TokenizerConfig(kind=kind, vocab_size=400))
    ours.save(path)
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(path), split_special_tokens=True)
    assert len(theirs) == ours.size
    for text in [*LINES[:5], "never seen: Ж", "", "  "]:
        ids = ours.encode(text).ids
        assert theirs(text, add_special_tokens=False)["input_ids"] == ids
        closed = [ours.sos, *ids, ours.eos, ours.pad]
        assert theirs.decode(closed, skip_special_tokens=True) == ours.decode(closed)


def test_transformers_reads_our_wordpiece_file(tmp_path: Path) -> None:
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "lamb", "##s", ","]
    (tmp_path / "vocab.txt").write_text("\n".join(entries), encoding="utf-8")
    ours = Tokenizer.from_wordpiece(tmp_path / "vocab.txt", lowercase=True)
    ours.save(tmp_path / "tokenizer.json")
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    ids = ours.encode("The lambs, zebra").ids
    assert theirs("The lambs, zebra", add_special_tokens=False)["input_ids"] == ids
    assert theirs.decode(ids, skip_special_tokens=True) == ours.decode(ids)
