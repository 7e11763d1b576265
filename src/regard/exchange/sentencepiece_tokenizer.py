"""Tokenizers that cut a text as SentencePiece does, with the ids of a vocabulary: Unigram and BPE.

A vocabulary may have tokens that are not pieces of this model: those of the other language, and special tokens. No text
is cut into them; a single character among them is read where the model has no piece for it, as Marian does. As in
SentencePiece, several characters in a row that the model does not know are one unknown token.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from regard.errors import ModelError
from regard.exchange.sentencepiece import (
    BPE,
    BYTES,
    CONTROL,
    FLAGS,
    NORMAL,
    SPACE,
    UNIGRAM,
    UNKNOWN,
    SentencePieceModel,
    render_model,
)
from regard.text import Tokenizer
from regard.text.charsmap import character_class

UNKNOWN_PENALTY = 10.0
"""SentencePiece's: a character without a piece scores as much below the lowest piece"""
ABSENT_PENALTY = 1000.0
"""how much lower are tokens that no text is cut into"""
UNKNOWN_SIGN = "\uffff"
"""stands for several unknown characters in a row; it is no character of Unicode"""
SEVERAL_SPACES, OUTER_SPACES = " {2,}", r"\A +|[ ▁]+\z"


def own_tokenizer(model: SentencePieceModel) -> tokenizers.Tokenizer:
    """The tokenizer of a model whose pieces are the whole vocabulary, as Llama's."""
    special = [text for text, _, kind in model.pieces if kind in (UNKNOWN, CONTROL)]
    unknown = next(text for text, _, kind in model.pieces if kind == UNKNOWN)
    return make_tokenizer(model, [text for text, _, _ in model.pieces], unknown, special)


def make_tokenizer(
    model: SentencePieceModel,
    vocabulary: Sequence[str],
    unknown: str,
    special: Sequence[str],
    codes: Sequence[str] = (),
) -> tokenizers.Tokenizer:
    """The model as a tokenizer with these tokens in the order of their ids; `codes` are cut out of a text first."""
    make = _bpe if model.kind == BPE else _unigram
    inner = make(model, vocabulary, unknown, special)
    inner.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    inner.add_tokens([AddedToken(code, special=False, normalized=False) for code in codes])
    return inner


def _unigram(
    model: SentencePieceModel, vocabulary: Sequence[str], unknown: str, special: Sequence[str]
) -> tokenizers.Tokenizer:
    scores, by_bytes = model.scores, model.flags["byte_fallback"]
    lowest = min(scores.values(), default=0.0) - UNKNOWN_PENALTY

    def score(token: str) -> float:
        if token in scores and token not in special:
            return scores[token]
        return lowest if len(token) == 1 else lowest - ABSENT_PENALTY

    table = [(token, score(token)) for token in vocabulary]
    inner = tokenizers.Tokenizer(models.Unigram(table, vocabulary.index(unknown), byte_fallback=by_bytes))
    inner.normalizer = normalizers.Sequence(normalization_steps(model))
    # Where a sign of its name is unknown, a special token would be better than the unknown token: the first sign of the
    # name then stands alone, so that no text is cut into it.
    names = [name for name in (*special, *(BYTES if by_bytes else ())) if len(name) > 1 and not {*name} <= {*scores}]
    cut = "|".join(f"{re.escape(name[0])}(?={re.escape(name[1:])})" for name in names) or "(?!)"
    words = not any(SPACE in text[1:] for text in scores)
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(SPACE, "never", words), pre_tokenizers.Split(Regex(cut), "isolated")]
    )
    if by_bytes:
        inner.decoder = _byte_decoder(model)
    else:
        inner.decoder = decoders.Metaspace(SPACE, "always" if model.flags["add_dummy_prefix"] else "never")
    return inner


def _bpe(
    model: SentencePieceModel, vocabulary: Sequence[str], unknown: str, special: Sequence[str]
) -> tokenizers.Tokenizer:
    missing = model.missing_pieces(vocabulary)
    if missing:
        are = "piece of this BPE model is" if missing == 1 else "pieces of this BPE model are"
        raise ModelError(
            f"{model.path}: {missing:,} {are} not in the vocabulary; a text could not be cut as by SentencePiece"
        )
    try:
        merges = merge_pairs({text: score for text, score in model.scores.items() if text not in special})
    except ValueError as error:
        raise ModelError(f"{model.path}: this SentencePiece model {error}, which cannot be read exactly") from None
    ids = {token: id for id, token in enumerate(vocabulary)}
    by_bytes = model.flags["byte_fallback"]
    inner = tokenizers.Tokenizer(models.BPE(ids, merges, unk_token=unknown, fuse_unk=True, byte_fallback=by_bytes))
    inner.normalizer = normalizers.Sequence([*normalization_steps(model), normalizers.Replace(" ", SPACE)])
    inner.decoder = _byte_decoder(model)
    return inner


def normalization_steps(model: SentencePieceModel) -> list[normalizers.Normalizer]:
    """What SentencePiece does to a text before it is cut; spaces stay spaces."""
    flags = model.flags
    steps: list[normalizers.Normalizer] = [normalizers.Precompiled(model.charsmap)] if model.charsmap else []
    if flags["remove_extra_whitespaces"]:
        steps += [normalizers.Replace(Regex(SEVERAL_SPACES), " "), normalizers.Replace(Regex(OUTER_SPACES), "")]
    if not flags["byte_fallback"]:
        unknown_run = Regex(f"[^{character_class(model.characters)}]{{2,}}")
        steps.append(normalizers.Replace(unknown_run, UNKNOWN_SIGN))
    return [*steps, normalizers.Prepend(SPACE)] if flags["add_dummy_prefix"] else steps


def merge_pairs(scores: Mapping[str, float]) -> list[tuple[str, str]]:
    """The merges of a SentencePiece BPE model for the tokenizers library, in their order.

    SentencePiece merges two neighbors if both together are a piece, the best score first, then the leftmost; the
    library merges pairs of a list, each with a rank of its own. Within the characters of a piece the merges come in the
    order in which they come when the piece stands alone, as long as none of them crosses its borders. So a piece is
    made of one pair only, the last one when it stands alone; and with one pair for each piece, and no two scores alike,
    both choose the same merge at every step.

    >>> merge_pairs({"a": -9, "b": -8, "ab": -1, "ba": -2, "aba": -3})
    [('a', 'b'), ('b', 'a'), ('ab', 'a')]
    """
    pairs = {text: pair for text in scores if (pair := last_pair(text, scores))}
    for text, pair in pairs.items():
        if not scores.keys() >= {*pair}:
            raise ValueError(f"has the piece {text!r} with a character that is no piece")
    counts = Counter(scores[text] for text in pairs)
    if alike := [text for text in pairs if counts[scores[text]] > 1]:
        raise ValueError(f"has several pieces with the score of {alike[0]!r}")
    return [pairs[text] for text in sorted(pairs, key=lambda text: -scores[text])]


def last_pair(text: str, scores: Mapping[str, float]) -> tuple[str, str] | None:
    """The two parts that are merged into a piece; None: its characters, alone, are not merged into it."""
    parts = list(text)
    while len(parts) > 1:
        made = [(-scores[new], i) for i in range(len(parts) - 1) if (new := parts[i] + parts[i + 1]) in scores]
        if not made:
            return None
        if len(parts) == 2:
            return parts[0], parts[1]
        at = min(made)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return None


def to_sentencepiece(words: Tokenizer) -> bytes | None:
    """The SentencePiece model of a Unigram tokenizer that was read from one; None for any other."""
    content = json.loads(words.json)
    steps = (content.get("pre_tokenizer") or {}).get("pretokenizers", [])
    if content["model"]["type"] != "Unigram" or [step["type"] for step in steps] != ["Metaspace", "Split"]:
        return None
    if content["model"]["byte_fallback"]:
        return None
    table: list[tuple[str, float]] = content["model"]["vocab"]
    limit = min(score for _, score in table) + ABSENT_PENALTY + UNKNOWN_PENALTY / 2
    rules = {step["type"]: step for step in content["normalizer"]["normalizers"]}
    charsmap = base64.b64decode(rules["Precompiled"]["precompiled_charsmap"]) if "Precompiled" in rules else b""
    replaced = [step.get("pattern") for step in content["normalizer"]["normalizers"]]
    unknown, end = (table[id][0] for id in (content["model"]["unk_id"], words.eos))
    pieces = [(unknown, 0.0, UNKNOWN), (end, 0.0, CONTROL)]
    pieces += [(token, score, NORMAL) for token, score in table if score > limit]
    flags = dict(FLAGS) | {
        "add_dummy_prefix": "Prepend" in rules or steps[0]["prepend_scheme"] == "always",
        "remove_extra_whitespaces": {"Regex": SEVERAL_SPACES} in replaced,
    }
    return render_model(SentencePieceModel(Path(), pieces, UNIGRAM, charsmap, flags))


def _byte_decoder(model: SentencePieceModel) -> decoders.Decoder:
    steps: list[decoders.Decoder] = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence([*steps, decoders.Strip(" ", 1, 0)] if model.flags["add_dummy_prefix"] else steps)
