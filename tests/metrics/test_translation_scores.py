"""BLEU, chrF and TER: by hand, equal to sacrebleu, without warnings, and with errors for unusable input."""

import json
import logging
import math
import random
import subprocess
import sys

import pytest
import sacrebleu
from sacrebleu.metrics import BLEU, CHRF, TER

from regard.errors import ConfigError, DataError
from regard.metrics import Score, bleu, chrf, ter, tokenized_bleu

SCORES = {"bleu": bleu, "tokenized_bleu": tokenized_bleu, "chrf": chrf, "ter": ter}
WORDS = [f"word{i}" for i in range(60)]


def corpus(sentences=120, noise=0.2, seed=1):
    """Random references, and outputs in which some of the words are wrong."""
    draw = random.Random(seed)
    references = [" ".join(draw.choices(WORDS, k=draw.randint(4, 15))) + "." for _ in range(sentences)]
    return [_noisy(draw, r, noise) for r in references], references


def _noisy(draw, text, noise):
    return " ".join(draw.choice(WORDS) if draw.random() < noise else word for word in text.split())


def test_bleu_is_the_product_of_precisions_and_brevity():
    # 5 of 6 words, 3 of 5 pairs, 1 of 4 triples, and of 3 fours none: smoothed to 1 / (2 x 3); as long as the reference
    found = bleu(["the cat sat on a mat"], ["the cat sat in a mat"])
    matched = [5 / 6, 3 / 5, 1 / 4, 1 / 6]
    assert found.value == pytest.approx(100 * math.prod(matched) ** 0.25)
    short = bleu(["a b c d"], ["a b c d e f"])
    assert short.value == pytest.approx(100 * math.exp(1 - 6 / 4))


def test_chrf_is_the_f_score_of_character_ngrams():
    precision = (3 / 4 + 2 / 3 + 1 / 2 + 0 / 1) / 4
    recall = (3 / 5 + 2 / 4 + 1 / 3 + 0 / 2) / 4
    assert chrf(["abcd"], ["abcef"]).value == pytest.approx(100 * 5 * precision * recall / (4 * precision + recall))


def test_ter_counts_edits_and_a_shift_is_one_edit():
    assert ter(["b c d a"], ["a b c d"]).value == 25
    assert ter(["x y z w v"], ["a"]).value == 500
    assert ter(["a dog"], ["a dog"]).lower_is_better


@pytest.mark.parametrize(
    ("name", "theirs"), [("bleu", BLEU()), ("tokenized_bleu", BLEU(lowercase=True)), ("chrf", CHRF()), ("ter", TER())]
)
def test_a_score_and_its_interval_equal_sacrebleus(name, theirs):
    outputs, references = corpus()
    outputs[0] = outputs[0].upper()
    found, expected = SCORES[name](outputs, references), theirs.corpus_score(outputs, [references], n_bootstrap=1000)
    assert found.value == pytest.approx(expected.score)
    assert found.name == name and found.n == 120
    assert found.low < found.value < found.high
    report = json.loads(expected.format(width=9, is_json=True, signature=str(theirs.get_signature())))
    assert (found.high - found.low) / 2 == pytest.approx(report["confidence_var"], abs=1e-4)  # theirs in float32
    assert found.signature == report["signature"]


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("bleu", "case:mixed|eff:no|tok:13a|smooth:exp"),
        ("tokenized_bleu", "case:lc|eff:no|tok:13a|smooth:exp"),
        ("chrf", "case:mixed|eff:yes|nc:6|nw:0|space:no"),
        ("ter", "case:lc|tok:tercom|norm:no|punct:yes|asian:no"),
    ],
)
def test_the_signature_says_how_it_was_measured(name, signature):
    found = SCORES[name](["a b c d e"], ["a b c d f"]).signature
    assert found == f"nrefs:1|bs:1000|seed:12345|{signature}|version:{sacrebleu.__version__}"


def test_case_and_tokenizer_are_in_the_signature():
    outputs, references = ["The Cat sat on the Mat!"], ["the cat sat on the mat !"]
    assert bleu(outputs, references).value < 50
    assert bleu(outputs, references, lowercase=True).value == pytest.approx(100)
    assert bleu(outputs, references, lowercase=True, tokenize="none").value < 80
    assert "case:lc|eff:no|tok:none" in bleu(outputs, references, lowercase=True, tokenize="none").signature
    assert bleu(["狗跑得很快"], ["狗跑得不快"], tokenize="zh").value > 0 == bleu(["狗跑得很快"], ["狗跑得不快"]).value


@pytest.mark.parametrize("name", SCORES)
def test_the_interval_is_deterministic_and_narrows_with_more_sentences(name):
    few, many = SCORES[name](*corpus(50)), SCORES[name](*corpus(800))
    assert few == SCORES[name](*corpus(50))
    assert many.high - many.low < (few.high - few.low) / 2


@pytest.mark.parametrize("name", SCORES)
def test_an_empty_output_is_a_bad_output_not_a_missing_one(name):
    outputs, references = corpus(10)
    with_empty = SCORES[name](["", *outputs[1:]], references)
    assert with_empty.n == 10
    worse = with_empty.value > SCORES[name](outputs, references).value
    assert worse == with_empty.lower_is_better


@pytest.mark.parametrize("name", SCORES)
def test_empty_outputs_get_the_worst_score_and_perfect_ones_the_best(name):
    worst, best = SCORES[name](["", ""], ["a b c d e", "f g h i j"]), SCORES[name](["a b c d e"], ["a b c d e"])
    ends = (100, 0) if name == "ter" else (0, 100)
    assert (worst.value, worst.low, worst.high) == pytest.approx((ends[0],) * 3)
    assert (best.value, best.low, best.high) == pytest.approx((ends[1],) * 3)


@pytest.mark.parametrize("name", SCORES)
def test_input_that_sacrebleu_warns_about_is_scored_without_warning(name, caplog):
    with caplog.at_level(logging.DEBUG, "sacrebleu"):
        SCORES[name](["this was cut into words ."] * 150, ["this was cut into words ."] * 150)
        SCORES[name](["", "\u200f", "🤖", "a\u2028b"], ["", "שלום", "🤖", "a b"])
    assert caplog.records == []


@pytest.mark.parametrize("name", SCORES)
def test_outputs_and_references_that_do_not_pair_are_refused(name):
    with pytest.raises(DataError) as caught:
        SCORES[name](["a", "b", "c"], ["a", "b"])
    assert str(caught.value) == "there are 3 outputs and 2 references; line i of one must match line i of the other"
    with pytest.raises(DataError) as caught:
        SCORES[name]([], [])
    assert str(caught.value) == "there is nothing to score: 0 outputs and 0 references"


def test_a_tokenizer_that_would_download_something_is_refused():
    with pytest.raises(ConfigError) as caught:
        bleu(["a"], ["a"], tokenize="flores200")
    assert str(caught.value) == 'tokenize = "flores200": expected one of 13a, intl, zh, char, none'


def test_importing_scores_loads_neither_torch_nor_sacrebleu_nor_numpy():
    code = "import regard.metrics, sys; print({'torch', 'sacrebleu', 'numpy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"


def test_a_score_prints_its_interval():
    assert str(Score("chrf", 51.237, 50.0, 52.5, "nrefs:1", 10)) == "chrf 51.24 (95 %: 50.00 to 52.50)"
