"""Contextual vectors of a word, of every kind of model that reads texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from helpers import check_refused
from readers import LOAD, NAMES, REVIEWS
from regard.errors import ConfigError
from regard.run import Run
from regard.tasks import Recipe
from regard.tasks.contextual import ContextualText, compare_word

STEPS = ["train.steps=2", "train.batch_tokens=256"]
HEADS = ["model.layers=2", "model.width=16", "model.heads=2"]
BOOK = "the cat sees the dog\nthe dog sees a bird\n" * 150
READERS = {
    "gpt": ["task.kind=generate", "data={{kind='text', train='{}/book.txt'}}", "text.kind=char", "task.window=32",
            "task.samples=0", "model.kind=gpt", *HEADS],
    "rnnlm": ["task.kind=generate", "data={{kind='text', train='{}/book.txt', unit='line'}}", "text.kind=word",
              "task.window=16", "task.samples=0", "model.kind=rnnlm", "model.layers=2", "model.width=16"],
    "translation": ["data={{kind='phrases', count=300}}", "text.vocab_size=200", "task.bleu_sentences=0",
                    "model.kind=transformer", *HEADS, "model.ffn_width=32"],
    "bert": ["task.kind=classify", "data={{kind='tsv', train='{}/reviews.tsv'}}", "text.kind=wordpiece",
             "text.vocab_size=60", "model.kind=bert", *HEADS, "model.max_positions=300"],
    "subword tagger": ["task.kind=label", "data={{kind='conll', train='{}/names.conll'}}", "task.tokens=subwords",
                       "text.kind=wordpiece", "text.vocab_size=60", "model.kind=bert", *HEADS,
                       "model.max_positions=600"],
    "fill": ["task.kind=fill", "data={{kind='text', train='{}/book.txt', unit='line'}}", "text.vocab_size=60",
             "model.kind=bert", *HEADS, "task.length=32", "model.max_positions=32"],
    "word tagger": ["task.kind=label", "data={{kind='conll', train='{}/names.conll'}}", "model.kind=recurrent",
                    "model.width=8", "task.char_encoder.kind=convolution", "task.char_encoder.width=3"],
}  # fmt: skip


def train(folder: Path, settings: list[str], name: str = "run") -> Any:
    for file, text in {"reviews.tsv": REVIEWS, "names.conll": NAMES, "book.txt": BOOK, "load.csv": LOAD}.items():
        (folder / file).write_text(text, encoding="utf-8")
    Run(folder / name).train(Recipe.read(None, [*(one.format(folder) for one in settings), *STEPS]))
    return regard.load(folder / name)


@pytest.mark.parametrize("name", READERS)
def test_a_word_is_compared_layer_by_layer_in_any_model_that_reads_texts(name: str, tmp_path: Path) -> None:
    model = train(tmp_path, READERS[name])
    found = compare_word(model, "dog", "a dog sees the cat", "the dog sees a bird")
    above = [layer for layer in found.cosines if layer != "embedding"]
    assert above == (["layer 1"] if name == "word tagger" else ["layer 1", "layer 2"])
    top = list(found.cosines.values())[-1]
    assert -1 <= top < 1 - 1e-9
    assert compare_word(model, "dog", "a dog sees", "a dog sees").cosines == pytest.approx(
        dict.fromkeys(found.cosines, 1.0)
    )


def test_a_word_of_several_positions_has_the_mean_of_their_vectors() -> None:
    layer_LD = torch.tensor([[9.0, 9.0], [1.0, 0.0], [3.0, 2.0], [9.0, 9.0]])
    found = ContextualText("the bank's", [(0, 3), (4, 6), (6, 8), (8, 10)], {"layer 1": layer_LD})
    assert found.occurrences("BANK") == [[1, 2]] and found.word_vectors("bank")["layer 1"].tolist() == [2.0, 1.0]


def test_layers_of_unequal_width_have_no_mean(tmp_path: Path) -> None:
    class Reads:
        def contextual_layers(self, text: str) -> ContextualText:
            layers = {"layer 1": torch.ones(1, 2), "layer 2": torch.ones(1, 3)}
            return ContextualText(text, [(0, len(text))], layers)

    found = compare_word(Reads(), "bank", "bank", "bank")  # type: ignore[arg-type]
    assert found.mean is None and found.cosines == pytest.approx({"layer 1": 1.0, "layer 2": 1.0})


def test_models_without_contextual_layers_are_refused(tmp_path: Path) -> None:
    words = ["task.kind=classify", "data={{kind='tsv', train='{}/reviews.tsv'}}", "model.kind=mlp"]
    check_refused(
        ConfigError,
        'model.kind = "mlp" reads each word alone, so its vectors do not depend on the sentence; use an encoder such '
        "as elmo, bert or recurrent",
        lambda: train(tmp_path, words).contextual_layers("a film"),
    )
    series = ["task.kind=forecast", "task.horizon=4", "task.window=12", "data={{kind='csv', train='{}/load.csv'}}",
              "model.kind=recurrent", "model.width=8"]  # fmt: skip
    check_refused(
        ConfigError,
        "a model that was trained to forecast on these data reads no words, so there are no vectors of words in their "
        "sentence; use a run that reads texts",
        lambda: train(tmp_path, series, "series").contextual_layers("a film"),
    )
