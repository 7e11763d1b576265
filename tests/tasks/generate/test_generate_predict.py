"""Writing with a language model: what is drawn, how it is spelled, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from regard.decode import DecodeConfig
from regard.errors import ConfigError, DataError
from regard.models.gpt import GPTConfig
from regard.models.rnnlm import RNNLMConfig
from regard.spaces import Words
from regard.tasks.generate.predict import Generator, Spelling
from regard.text import Tokenizer, TokenizerConfig

TEXT = "She said: où est le café? Ναι, 日本 🙂 — and was gone."
DRAWN = DecodeConfig(sample=True, beam=1)


def generator(kind: str = "char", model: str = "rnnlm", ends: bool = False, reach: int | None = None) -> Generator:
    config = TokenizerConfig(kind=kind, size=330, normal="none")  # type: ignore[arg-type]
    words = Tokenizer.train([TEXT] * 3, config)
    torch.manual_seed(0)
    space = Words(words.size)
    shape = RNNLMConfig(layers=1, width=16) if model == "rnnlm" else GPTConfig(layers=1, width=16, heads=2, longest=12)
    return Generator(shape.build(space, space).eval(), words, DRAWN, ends, reach)


def seeded(found: Generator, seed: int) -> Generator:
    return replace(found, config=replace(found.config, seed=seed))


@pytest.mark.parametrize("kind", ["char", "bpe", "byte-bpe", "unigram", "word"])
def test_what_is_streamed_is_what_is_generated_and_the_same_seed_writes_it_again(kind: str) -> None:
    writer = generator(kind)
    first = writer.generate("She", 60)[0]
    assert "".join(writer.stream("She", 60)) == first.text
    assert writer.generate("She", 60)[0] == first
    assert seeded(writer, 1).generate("She", 60)[0].text != first.text
    assert len(first.tokens) == 60 and not first.complete
    assert not set(first.tokens) & {"<PAD>", "<UNK>", "<SOS>", "<EOS>"}


def test_pieces_of_bytes_are_held_back_until_characters_are_whole() -> None:
    words = Tokenizer.train(["x"], TokenizerConfig(kind="byte-bpe", size=260, normal="none"))
    ids = words.encode(TEXT).ids
    assert len(ids) == len(TEXT.encode())
    spelling = Spelling(words, [])
    pieces = [spelling.add(id) for id in ids]
    assert all(len(piece) <= 1 for piece in pieces)
    assert "".join(pieces) == TEXT and spelling.end() == ""


def test_bytes_that_never_become_a_character_are_shown_at_the_end() -> None:
    words = Tokenizer.train(["x"], TokenizerConfig(kind="byte-bpe", size=260, normal="none"))
    half = words.encode("🙂").ids[:2]
    spelling = Spelling(words, words.encode("x").ids)
    assert [spelling.add(id) for id in half] == ["", ""]
    assert spelling.end() == "\ufffd"


@pytest.mark.parametrize("kind", ["char", "bpe", "byte-bpe"])
def test_a_text_goes_on_as_it_would_be_spelled_whole(kind: str) -> None:
    writer = generator(kind)
    ids = writer.tokenizer.encode(TEXT).ids
    for cut in range(1, len(ids)):
        before = writer.tokenizer.decode(ids[:cut])
        if not before.endswith("\ufffd"):
            assert before + writer.spelled(ids[:cut], ids[cut:]) == TEXT


def test_samples_do_not_depend_on_how_many_are_drawn() -> None:
    writer = generator()
    one, three = writer.generate("She", 30), writer.generate("She", 30, n=3)
    assert one[0].text == three[0].text
    assert len({found.text for found in three}) == 3


def test_a_model_with_few_places_goes_on_for_ever() -> None:
    writer = generator(model="gpt", reach=12)
    found = writer.generate("She said: où est le café?", 100)[0]
    assert len(found.tokens) == 100
    assert "".join(writer.stream("She said: où est le café?", 100)) == found.text
    parts = [found.text[i : i + 6] for i in range(0, 96, 6)]
    assert len(set(parts)) > 10  # each stretch is drawn by numbers of its own


def test_the_score_is_the_log_probability_also_over_stretches() -> None:
    writer = generator(model="gpt", reach=12)
    said = list(writer.said(writer.prompt_ids("She"), 40))
    assert len(said) == 40
    steps = [b.score - a.score for a, b in pairwise(said)]
    assert all(step < 0 for step in steps)


def test_greedy_takes_the_likeliest_and_no_seed_changes_it() -> None:
    writer = generator()
    greedy = replace(writer, config=DecodeConfig(beam=1))
    assert greedy.generate("She", 20) == seeded(greedy, 9).generate("She", 20)
    cold = replace(writer, config=replace(DRAWN, top_k=1))
    assert cold.generate("She", 20)[0].text == greedy.generate("She", 20)[0].text


def test_a_model_of_lines_may_begin_with_nothing_and_ends_by_itself() -> None:
    writer = generator(ends=True)
    found = writer.generate("", 200, n=8)
    assert any(one.complete for one in found)
    for one in found:
        assert len(one.tokens) == 200 or one.complete
        assert "<EOS>" not in one.tokens


def test_an_empty_prompt_is_told() -> None:
    with pytest.raises(DataError) as caught:
        generator().generate("", 5)
    assert str(caught.value) == (
        "the prompt is empty, and this model has learnt one running text that never begins anew; "
        'give it something to go on from, such as "The"'
    )


def test_unknown_characters_are_named() -> None:
    with pytest.raises(DataError) as caught:
        generator().generate("She ♥ Zoë ♥", 5)
    assert str(caught.value) == (
        'the prompt holds what this model has never read: "♥" (U+2665), "Z" (U+005A), "ë" (U+00EB); '
        "leave it out, or train on text that has it"
    )
    with pytest.raises(DataError, match=r'"7" \(U\+0037\) and 2 more; leave it out'):
        generator().generate("123456789".replace("1", "3").replace("2", "4"), 5)


def test_a_length_below_one_is_told() -> None:
    with pytest.raises(ConfigError) as caught:
        generator().generate("She", 0)
    assert str(caught.value) == "length = 0 and n = 1 must be at least 1"
