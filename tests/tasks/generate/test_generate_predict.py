"""Text generation with a language model: sampling, incremental decoding, and refused prompts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from regard.decode import DecodeConfig
from regard.errors import ConfigError, DataError
from regard.models.gpt import GPTConfig
from regard.models.llama import LlamaConfig
from regard.models.rnnlm import RNNLMConfig
from regard.nn import int8_argmax
from regard.nn.inference import optimize_for_inference
from regard.spaces import Words
from regard.tasks.generate.predict import TextGenerator
from regard.tasks.generate.streaming import IncrementalDetokenizer, StopStrings, TextBuilder
from regard.text import Tokenizer, TokenizerConfig
from zoo import sharpen

TEXT = "She said: où est le café? Ναι, 日本 🙂 — and was gone."
SAMPLING = DecodeConfig(sample=True, beam=1)
GPT = GPTConfig(layers=1, width=16, heads=2, max_positions=12)
LLAMA = LlamaConfig(layers=1, width=16, ffn_width=24, heads=2, max_positions=12)


def generator(
    kind: str = "char", model: str = "rnnlm", ends: bool = False, context: int | None = None
) -> TextGenerator:
    text = TokenizerConfig(kind=kind, vocab_size=330, normalization="none")  # type: ignore[arg-type]
    words = Tokenizer.train([TEXT] * 3, text)
    torch.manual_seed(0)
    space = Words(words.size)
    config = RNNLMConfig(layers=1, width=16) if model == "rnnlm" else GPT
    special = {words.pad, words.sos, words.unk, words.eos} - ({words.eos} if ends else set())
    return TextGenerator(
        config.build(space, space).eval(), words, SAMPLING, context, begin=words.eos if ends else None,
        samples_are_lines=ends, excluded=frozenset(id for id in special if id >= 0),
    )  # fmt: skip


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
            row = TextBuilder(made.tokenizer, 0, ids[:cut])
            assert before + "".join([*map(row.add, ids[cut:]), row.flush()]) == TEXT


def test_samples_do_not_depend_on_how_many_are_drawn() -> None:
    made = generator()
    one, three = made.generate("She", 30), made.generate("She", 30, n=3)
    assert one[0].text == three[0].text
    assert len({found.text for found in three}) == 3


def test_a_model_with_few_positions_generates_without_limit() -> None:
    made = generator(model="gpt", context=12)
    found = made.generate("She said: où", 100)[0]
    assert len(found.tokens) == 100
    assert "".join(made.stream("She said: où", 100)) == found.text
    parts = [found.text[i : i + 6] for i in range(0, 96, 6)]
    assert len(set(parts)) > 10  # each segment has its own random numbers


def test_the_score_is_the_log_probability_also_over_segments() -> None:
    made = generator(model="gpt", context=12)
    row = TextBuilder(made.tokenizer, 0, made.prompt_ids("She"))
    scores = [row.score for _ in made._sample([row], 40)]
    assert len(scores) == 40 and all(b < a for a, b in pairwise(scores))


def test_greedy_takes_the_likeliest_and_no_seed_changes_it() -> None:
    made = generator()
    greedy = replace(made, config=DecodeConfig(beam=1))
    assert greedy.generate("She", 20) == seeded(greedy, 9).generate("She", 20)
    cold = replace(made, config=replace(SAMPLING, top_k=1))
    assert cold.generate("She", 20)[0].text == greedy.generate("She", 20)[0].text


@pytest.mark.parametrize("config", [GPT, LLAMA], ids=["gpt", "llama"])
@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize(
    "choice", [DecodeConfig(beam=1, min_length=3), DecodeConfig(sample=True, seed=4, temperature=0.8, min_length=3)],
    ids=["greedy", "sampled"],
)  # fmt: skip
def test_text_of_one_prompt_by_int8_is_that_of_the_plain_path(config, ends, choice, monkeypatch) -> None:
    made = generator("byte-bpe", ends=ends, context=12)
    space = Words(made.tokenizer.size)
    module = config.build(space, space).eval()
    sharpen(module)
    plain = replace(made, model=optimize_for_inference(module), config=choice, stop=("ca",))
    expected = [plain.generate(prompt, 30)[0] for prompt in ("She", "Ναι", "日")]
    monkeypatch.setattr(int8_argmax, "MIN_ELEMENTS", 0)
    fast = replace(plain, model=optimize_for_inference(module))
    for prompt, other in zip(("She", "Ναι", "日"), expected, strict=True):
        [found] = fast.generate(prompt, 30)
        assert (found.text, found.tokens, found.complete) == (other.text, other.tokens, other.complete)
        assert found.score == pytest.approx(other.score, abs=1e-4)
        assert "".join(fast.stream(prompt, 30)) == other.text
    assert fast.model.readout._argmax is not None and plain.model.readout._argmax is None


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


def test_a_prompt_longer_than_the_context_is_refused_with_both_lengths() -> None:
    made = generator(model="gpt", context=12)
    with pytest.raises(DataError) as caught:
        made.generate("She said: où est", 5)
    assert str(caught.value) == (
        "the prompt has 16 tokens, and this model reads at most 12 at once; shorten it, or request a sliding window "
        "(--sliding-window, in Python sliding_window=True), which reads its last 12"
    )
    slid = replace(made, sliding_window=True)
    assert slid.generate("She said: où est", 5) == made.generate("said: où est", 5)
    with pytest.raises(DataError, match=r"the prompt has 13 tokens, <EOS> before it included, and this model reads"):
        replace(made, begin=made.tokenizer.eos).generate("She said: où", 5)


def test_a_prompt_as_long_as_the_context_is_read_as_a_whole() -> None:
    made = replace(generator(model="gpt", context=12), config=DecodeConfig(beam=1))
    other = made.generate("xhe said: où".replace("x", "w"), 1)[0]
    assert made.generate("She said: où", 1)[0].score != other.score  # the first of twelve tokens counts


@pytest.mark.parametrize("model", ["rnnlm", "gpt"])
def test_prompts_in_a_padded_batch_are_continued_as_alone(model: str) -> None:
    made = replace(generator(model=model, context=12 if model == "gpt" else None), config=DecodeConfig(beam=1))
    prompts = ["She", "où est le", "a", "and was"]
    found = made.generate_batch(prompts, 30)
    assert [one.text for [one] in found] == [made.generate(prompt, 30)[0].text for prompt in prompts]
    for prompt, [one] in zip(prompts, found, strict=True):
        assert one.score == pytest.approx(made.generate(prompt, 30)[0].score, abs=1e-4)


def test_samples_of_a_batch_depend_on_their_numbers_and_not_on_the_other_prompts() -> None:
    made = generator()
    whole = made.generate_batch(["She", "où", "She"], 20, n=2)
    assert [one.text for one in whole[0]] == [one.text for one in made.generate("She", 20, n=2)]
    assert [one.text for one in made.generate_batch(["où", "She"], 20, n=2, first=1)[1]] == [
        one.text for one in whole[2]
    ]
    assert len({one.text for several in (whole[0], whole[2]) for one in several}) == 4


def test_a_text_is_cut_before_its_first_stop_string() -> None:
    made = generator()
    whole = made.generate("She", 60)[0].text
    stops = (whole[22:25], whole[30:32])
    at = min(whole.find(stop) for stop in stops)
    stopped = replace(made, stop=stops)
    [found] = stopped.generate("She", 60)
    assert found.text == whole[:at] and found.complete and len(found.tokens) < 60
    assert "".join(stopped.stream("She", 60)) == whole[:at]
    texts = [one.text for [one] in stopped.generate_batch(["She", "où"], 60)]
    assert texts == [found.text, stopped.generate_batch(["où"], 60, first=1)[0][0].text]


def test_no_part_of_a_stop_string_is_printed_before_it_is_known_to_be_none() -> None:
    stops = StopStrings(["abac", "bb"])
    pieces = [stops.add(character) for character in "xababacyz"]
    assert pieces == ["x", "", "", "", "ab", "", "", "", ""] and stops.found and stops.flush() == ""
    ending = StopStrings(["END"])
    assert ending.add("the EN") + ending.flush() == "the EN" and not ending.found


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(ConfigError, match="an empty stop string would end every text before its first character"):
        replace(generator(), stop=("",))


def test_beam_search_finds_texts_at_least_as_probable_as_greedy_and_ranks_them() -> None:
    made = generator()
    greedy = replace(made, config=DecodeConfig(beam=1, alpha=0.0)).generate("She", 12)[0]
    beam = replace(made, config=DecodeConfig(beam=8, alpha=0.0))
    found = beam.generate("She", 12, n=3)
    assert found[0].score >= greedy.score - 1e-6
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    assert "".join(beam.stream("She", 12)) == found[0].text
    assert [one.text for one in beam.generate_batch(["où", "She"], 12)[1]] == [found[0].text]


def test_a_beam_goes_on_beyond_the_context() -> None:
    made = replace(generator(model="gpt", context=12), config=DecodeConfig(beam=3, alpha=0.0))
    found = made.generate("She", 40, n=2)
    assert [len(one.tokens) for one in found] == [40, 40] and found[0].text != found[1].text


def test_a_repetition_penalty_and_banned_n_grams_look_at_the_prompt_and_over_segments() -> None:
    made = generator(model="gpt", context=12)
    strict = replace(made, config=replace(SAMPLING, no_repeat_ngram=1))
    prompt = "She said:"
    found = strict.generate(prompt, 15)[0].text
    assert len(set(found)) == 15 and not set(found) & set(prompt)
    hard = replace(made, config=DecodeConfig(beam=1, repetition_penalty=1000.0))
    text = hard.generate(prompt, 15)[0].text
    assert len(set(text)) == 15 and not set(text) & set(prompt)


def test_a_minimum_length_holds_over_segments() -> None:
    made = replace(generator(model="gpt", ends=True, context=12), config=replace(SAMPLING, min_length=30))
    assert all(len(one.tokens) >= 30 for one in made.generate("She", 60, n=8))
