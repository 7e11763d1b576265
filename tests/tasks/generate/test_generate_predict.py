"""Text generation with a language model: sampling, incremental decoding, and refused prompts."""

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
from regard.tasks.generate.predict import IncrementalDetokenizer, TextGenerator
from regard.text import Tokenizer, TokenizerConfig

TEXT = "She said: où est le café? Ναι, 日本 🙂 — and was gone."
SAMPLING = DecodeConfig(sample=True, beam=1)


def generator(
    kind: str = "char", model: str = "rnnlm", ends: bool = False, context: int | None = None
) -> TextGenerator:
    text = TokenizerConfig(kind=kind, vocab_size=330, normalization="none")  # type: ignore[arg-type]
    words = Tokenizer.train([TEXT] * 3, text)
    torch.manual_seed(0)
    space = Words(words.size)
    gpt = GPTConfig(layers=1, width=16, heads=2, max_positions=12)
    config = RNNLMConfig(layers=1, width=16) if model == "rnnlm" else gpt
    return TextGenerator(config.build(space, space).eval(), words, SAMPLING, ends, context)


def seeded(found: TextGenerator, seed: int) -> TextGenerator:
    return replace(found, config=replace(found.config, seed=seed))


@pytest.mark.parametrize("kind", ["char", "bpe", "byte-bpe", "unigram", "word"])
def test_streaming_gives_the_generated_text_and_a_seed_reproduces_it(kind: str) -> None:
    made = generator(kind)
    first = made.generate("She", 60)[0]
    assert "".join(made.stream("She", 60)) == first.text
    assert made.generate("She", 60)[0] == first
    assert seeded(made, 1).generate("She", 60)[0].text != first.text
    assert len(first.tokens) == 60 and not first.complete
    assert not set(first.tokens) & {"<PAD>", "<UNK>", "<SOS>", "<EOS>"}


def test_incomplete_utf8_is_held_back_until_characters_are_complete() -> None:
    words = Tokenizer.train(["x"], TokenizerConfig(kind="byte-bpe", vocab_size=260, normalization="none"))
    ids = words.encode(TEXT).ids
    assert len(ids) == len(TEXT.encode())
    detokenizer = IncrementalDetokenizer(words, [])
    pieces = [detokenizer.add(id) for id in ids]
    assert all(len(piece) <= 1 for piece in pieces)
    assert "".join(pieces) == TEXT and detokenizer.flush() == ""


def test_bytes_that_never_complete_a_character_are_flushed_at_the_end() -> None:
    words = Tokenizer.train(["x"], TokenizerConfig(kind="byte-bpe", vocab_size=260, normalization="none"))
    half = words.encode("🙂").ids[:2]
    detokenizer = IncrementalDetokenizer(words, words.encode("x").ids)
    assert [detokenizer.add(id) for id in half] == ["", ""]
    assert detokenizer.flush() == "\ufffd"


@pytest.mark.parametrize("kind", ["char", "bpe", "byte-bpe"])
def test_a_continuation_is_decoded_as_in_the_whole_text(kind: str) -> None:
    made = generator(kind)
    ids = made.tokenizer.encode(TEXT).ids
    for cut in range(1, len(ids)):
        before = made.tokenizer.decode(ids[:cut])
        if not before.endswith("\ufffd"):
            assert before + made._decode_continuation(ids[:cut], ids[cut:]) == TEXT


def test_samples_do_not_depend_on_how_many_are_drawn() -> None:
    made = generator()
    one, three = made.generate("She", 30), made.generate("She", 30, n=3)
    assert one[0].text == three[0].text
    assert len({found.text for found in three}) == 3


def test_a_model_with_few_positions_generates_without_limit() -> None:
    made = generator(model="gpt", context=12)
    found = made.generate("She said: où est le café?", 100)[0]
    assert len(found.tokens) == 100
    assert "".join(made.stream("She said: où est le café?", 100)) == found.text
    parts = [found.text[i : i + 6] for i in range(0, 96, 6)]
    assert len(set(parts)) > 10  # each segment has its own random numbers


def test_the_score_is_the_log_probability_also_over_segments() -> None:
    made = generator(model="gpt", context=12)
    tokens = list(made.sample_tokens(made.prompt_ids("She"), 40))
    assert len(tokens) == 40
    steps = [b.score - a.score for a, b in pairwise(tokens)]
    assert all(step < 0 for step in steps)


def test_greedy_takes_the_likeliest_and_no_seed_changes_it() -> None:
    made = generator()
    greedy = replace(made, config=DecodeConfig(beam=1))
    assert greedy.generate("She", 20) == seeded(greedy, 9).generate("She", 20)
    cold = replace(made, config=replace(SAMPLING, top_k=1))
    assert cold.generate("She", 20)[0].text == greedy.generate("She", 20)[0].text


def test_a_model_of_lines_accepts_an_empty_prompt_and_ends_by_itself() -> None:
    made = generator(ends=True)
    found = made.generate("", 200, n=8)
    assert any(one.complete for one in found)
    for one in found:
        assert len(one.tokens) == 200 or one.complete
        assert "<EOS>" not in one.tokens


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        generator().generate("", 5)
    assert str(caught.value) == (
        "the prompt is empty, and this model was trained on one running text without beginnings; "
        'give it a prompt, such as "The"'
    )


def test_unknown_characters_are_named() -> None:
    with pytest.raises(DataError) as caught:
        generator().generate("She ♥ Zoë ♥", 5)
    assert str(caught.value) == (
        'the prompt has tokens that this model does not know: "♥" (U+2665), "Z" (U+005A), "ë" (U+00EB); '
        "leave it out, or train on text that has it"
    )
    with pytest.raises(DataError, match=r'"7" \(U\+0037\) and 2 more; leave it out'):
        generator().generate("123456789".replace("1", "3").replace("2", "4"), 5)


def test_a_length_below_one_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        generator().generate("She", 0)
    assert str(caught.value) == "length = 0 and n = 1 must be at least 1"
