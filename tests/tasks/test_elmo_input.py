"""ELMo as the input of taggers and classifiers: words by their spellings, weights of language models, one contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from helpers import check_refused, refusal
from readers import NAMES, REVIEWS
from regard.cli import invoke
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError, ModelError
from regard.run import Run
from regard.tasks import Recipe
from regard.tasks.contextual import compare_word
from regard.tasks.init_weights import InitReport
from regard.tasks.label.vocab import WordTypes, WordVocab
from regard.text import Tokenizer, TokenizerConfig

SHAPE = ["model.width=12", "model.cells=12", "model.layers=2", "model.characters=5", "model.filters=[4,6]",
         "model.highways=1", "model.dropout=0"]  # fmt: skip
BOOK = "Ada sat on the bank of the river .\nthe bank in Rome lends money .\nthe film was very fine .\n" * 60
STEPS = ["train.steps=3", "train.batch_tokens=256"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, and the run of a small ELMo."""
    made = tmp_path_factory.mktemp("elmo")
    for name, text in {"reviews.tsv": REVIEWS, "names.conll": NAMES, "book.txt": BOOK}.items():
        (made / name).write_text(text, encoding="utf-8")
    Run(made / "lm").train(Recipe.read(None, language(made, "model.softmax_words=12", "model.samples=8")))
    return made


def language(folder: Path, *settings: str) -> list[str]:
    data = f"data={{kind='text', train='{folder}/book.txt', unit='line'}}"
    task = ["task.kind=generate", "task.window=8", "task.samples=0", "text.kind=word", "text.vocab_size=60"]
    return [*task, data, "model.kind=elmo", *SHAPE, *STEPS, *settings]


def tagger(folder: Path, *settings: str) -> list[str]:
    data = f"data={{kind='conll', train='{folder}/names.conll', valid_share=0.15}}"
    return ["task.kind=label", "task.scheme=bio", data, f"model.init={folder}/lm", *STEPS, *settings]


def critic(folder: Path, *settings: str) -> list[str]:
    data = f"data={{kind='tsv', train='{folder}/reviews.tsv'}}"
    return ["task.kind=classify", data, f"model.init={folder}/lm", *STEPS, *settings]


def start(path: Path, settings: list[str]) -> tuple[Any, InitReport]:
    """The model of a recipe before its first step, and what it took from model.init."""
    recipe, run = Recipe.read(None, settings), Run(path)
    run.begin(recipe)
    run.prepare(recipe)
    model = recipe.training_parts(path, ProcessGroup())[0].model
    report = run.init_model(model, recipe)
    assert report is not None
    return model, report


RECURRENT = ["model.kind=elmo-recurrent", "model.width=10", "model.dropout=0"]


@pytest.mark.parametrize("task", [tagger, critic])
@pytest.mark.parametrize(("kind", "home"), [([], "encoder"), (RECURRENT, "encoder.elmo")])
def test_a_model_reads_by_the_weights_of_both_language_models(
    folder: Path, tmp_path: Path, task: Any, kind: list[str], home: str
) -> None:
    model, report = start(tmp_path, task(folder, *kind))
    lm, elmo = regard.load(folder / "lm").module, model.get_submodule(home)
    for ours, theirs in ((elmo.embed, lm.decoder.embed), (elmo.stack, lm.decoder.stack),
                         (elmo.backward_stack, lm.backward_decoder.stack)):  # fmt: skip
        found = theirs.state_dict()
        assert found and all(torch.equal(found[name], tensor) for name, tensor in ours.state_dict().items())
    assert {f"{home}.mix.weight", f"{home}.mix.gamma", "readout.weight"} <= set(report.fresh)
    assert report.unused == ("decoder.readout.weight",)
    assert elmo.mix.weight.tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", [[], RECURRENT])
def test_a_tagger_reads_a_word_that_no_text_had_by_its_spelling(folder: Path, tmp_path: Path, kind: list[str]) -> None:
    Run(tmp_path).train(Recipe.read(None, tagger(folder, *kind)))
    model = regard.load(tmp_path)
    assert "Zoltan" not in model.vocab and "Xanadu" not in model.vocab

    def vectors(text: str) -> torch.Tensor:
        return model.contextual_layers(text).layers["embedding"][0]

    assert not torch.allclose(vectors("Zoltan lives"), vectors("Xanadu lives"), atol=1e-4)
    assert torch.equal(vectors("Zoltan lives"), vectors("Zoltan sleeps"))
    probabilities = [model.label(f"{name} lives in Rome .").tokens[0].probability for name in ("Zoltan", "Xanadu")]
    assert probabilities[0] != probabilities[1]
    assert [token.text for token in model.label("Zoltan 東京 lives").tokens] == ["Zoltan", "東京", "lives"]


def test_a_classifier_reads_unknown_words_by_their_spellings_and_names_them(folder: Path, tmp_path: Path) -> None:
    Run(tmp_path).train(Recipe.read(None, critic(folder)))
    model = regard.load(tmp_path)
    encoder = model.input_encoder
    row = encoder.encode(["the Straße was Zoltanesque"])[0].row
    assert encoder.token_texts(row) == ["the", "Straße", "was", "Zoltanesque"]
    assert [len(one.row) > 0 for one in encoder.encode(["", " ", "."])] == [False, False, True]
    assert encoder.collate([row]).data.shape == (1, 4, 14)
    one, other = (model.classify(f"the film was {word}", top=2)[0] for word in ("zoltanesque", "xanaduish"))
    assert one[0].probability != other[0].probability
    assert model.saliency("the film was zoltanesque").columns == ["the", "film", "was", "zoltanesque"]


def test_a_long_text_is_cut_after_whole_words(folder: Path, tmp_path: Path) -> None:
    settings = critic(folder, "task.max_length=2", "task.pool=first")
    model, _ = start(tmp_path, settings)
    preparation: Any = Recipe.read(None, settings).preparation()
    encoder = preparation.load_encoder(tmp_path)
    found = encoder.encode(["the film was fine"])[0]
    assert found.truncated == 2 and encoder.token_texts(found.row) == ["<SOS>", "the", "film"]
    source = encoder.collate([found.row, encoder.encode(["fine"])[0].row])
    assert source.lengths.tolist() == [3, 2] and model(source).shape == (2, 24)


def test_frozen_language_models_stay_and_the_mix_learns(folder: Path, tmp_path: Path) -> None:
    frozen = "train.freeze=['encoder.elmo.embed.*','encoder.elmo.stack.*','encoder.elmo.backward_stack.*']"
    Run(tmp_path).train(Recipe.read(None, tagger(folder, *RECURRENT, frozen, "task.char_encoder.kind=convolution",
                                                 "task.char_encoder.width=4")))  # fmt: skip
    elmo, lm = regard.load(tmp_path).module.encoder.elmo, regard.load(folder / "lm").module
    assert all(torch.equal(lm.decoder.stack.state_dict()[n], w) for n, w in elmo.stack.state_dict().items())
    assert elmo.mix.weight.abs().min() > 0 and elmo.mix.gamma != 1


def test_an_elmo_of_another_shape_is_refused_with_both_values(folder: Path, tmp_path: Path) -> None:
    own = ["model.kind=elmo", *SHAPE, "model.width=8"]
    check_refused(
        ConfigError,
        f"model.width is 8 here and 12 in {folder}/lm; the model must have the shape of the one it starts from "
        "(without model.kind it is taken over)",
        lambda: start(tmp_path / "a", tagger(folder, *own)),
    )
    nested = [*RECURRENT, "model.elmo.width=12", "model.elmo.cells=14"]
    found = refusal(ConfigError, lambda: start(tmp_path / "b", tagger(folder, *nested)))
    assert found.startswith(f"model.elmo.cells is 14 here and 12 in {folder}/lm and model.elmo.characters is 16 here")


def test_a_run_without_elmo_cannot_be_read_by(folder: Path, tmp_path: Path) -> None:
    rnnlm = [s for s in language(folder) if not s.startswith("model.")] + ["model.kind=rnnlm", "model.width=8"]
    Run(tmp_path / "rnnlm").train(Recipe.read(None, rnnlm))
    settings = [*tagger(folder, *RECURRENT), f"model.init={tmp_path}/rnnlm"]
    check_refused(
        ModelError,
        f'model.init: {tmp_path}/rnnlm has model.kind = "rnnlm", and "elmo-recurrent" reads by an "elmo"; name its run',
        lambda: Recipe.read(None, settings),
    )


@pytest.mark.parametrize(("make", "settings", "message"), [
    (tagger, ["task.tokens=subwords"],
     'model.kind = "elmo" reads the characters of whole words; use task.tokens = "words"'),
    (tagger, ["task.char_encoder.kind=lstm"],
     'task.char_encoder.kind = "lstm": model.kind = "elmo" reads characters by itself; use "none", or model.kind = '
     '"elmo-recurrent"'),
    (critic, ["text.kind=bpe"],
     'model.kind = "elmo" reads the characters of whole words, and text.kind = "bpe" cuts them; use "word"'),
])  # fmt: skip
def test_settings_that_do_not_fit_spelled_words_are_refused(
    folder: Path, make: Any, settings: list[str], message: str
) -> None:
    check_refused(ConfigError, message, lambda: Recipe.read(None, make(folder, *settings)))


def test_the_language_models_go_on_from_a_run_with_another_vocabulary(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("a duck swims near the bank\n" * 60, encoding="utf-8")
    model, report = start(tmp_path / "run", [*language(tmp_path), f"model.init={folder}/lm", "model.samples=0",
                                             "model.softmax_words=12"])  # fmt: skip
    lm = regard.load(folder / "lm").module
    found = lm.backward_decoder.stack.state_dict()
    assert all(torch.equal(found[n], w) for n, w in model.backward_decoder.stack.state_dict().items())
    assert not [name for name in report.fresh if "stack" in name or "embed" in name]


def test_the_same_word_has_one_embedding_and_differs_above_it(folder: Path) -> None:
    model = regard.load(folder / "lm")
    found = compare_word(model, "bank", "Ada sat on the bank of the river .", "The Bank lends money .")
    assert list(found.cosines) == ["embedding", "layer 1", "layer 2"]
    same = compare_word(model, "bank", "Ada sat on the bank of the river .", "the bank in Rome lends money .")
    assert same.cosines["embedding"] == pytest.approx(1, abs=1e-12)
    assert found.cosines["embedding"] < 1  # another spelling
    assert same.cosines["layer 1"] < 0.9999 and same.mean is not None and same.mean < 1
    unknown = compare_word(model, "zoltan", "zoltan sat on the bank", "the money of zoltan")
    assert unknown.cosines["embedding"] == pytest.approx(1, abs=1e-12)


def test_one_sentence_may_have_the_word_twice(folder: Path) -> None:
    model, twice = regard.load(folder / "lm"), "the bank near the bank"
    once = compare_word(model, "bank", twice)
    assert once.cosines["layer 1"] < 1 and once.first == once.second == twice
    check_refused(
        DataError,
        'the word "bank" is not 2 times in "the bank"; each sentence must contain it as a whole word',
        lambda: compare_word(model, "bank", "the bank"),
    )


def test_layers_of_the_encoder_are_those_of_the_language_models(folder: Path, tmp_path: Path) -> None:
    """A tagger that starts from the language models has their vectors, before it is trained."""
    lm = regard.load(folder / "lm")
    model, _ = start(tmp_path, tagger(folder))
    lm_layers = lm.contextual_layers("Ada lives in Rome .").layers
    vocab = WordVocab.load(tmp_path / "vocab.json")
    types = WordTypes.encode(["Ada", "lives", "in", "Rome", "."], vocab)
    memory = model.eval().encoder(types.collate([np.arange(5)]))
    for ours, theirs in zip(memory.layers, lm_layers.values(), strict=True):
        torch.testing.assert_close(ours[0], theirs)


def test_unknown_words_are_normalized_as_known_ones() -> None:
    tokenizer = Tokenizer.train(["the river bank"], TokenizerConfig("word", lowercase=True))
    found = tokenizer.encode("THE ﬁsh")
    assert tokenizer.known_and_unknown(found, "THE ﬁsh") == ["the", "fish"]


CONTEXT_ERRORS = [
    ("the shore", "a bank", "bank",
     'the word "bank" is not in "the shore"; each sentence must contain it as a whole word'),
    ("the riverbank", "a bank", "bank",
     'the word "bank" is not in "the riverbank"; each sentence must contain it as a whole word'),
    (" ", "a bank", "bank", "the text is empty; there is no word in it"),
    ("a bank", "a bank", " ", "the word is empty; name a word of both sentences"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second", "word", "message"), CONTEXT_ERRORS)
def test_a_word_that_cannot_be_compared_is_refused(
    folder: Path, first: str, second: str, word: str, message: str
) -> None:
    check_refused(DataError, message, lambda: compare_word(regard.load(folder / "lm"), word, first, second))


def test_the_command_prints_a_table_and_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentences = ["Ada sat on the bank .", "the bank lends money ."]
    assert invoke(["vectors", "context", str(folder / "lm"), *sentences, "--word", "bank"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:14].strip() for line in lines] == ["embedding", "layer 1", "layer 2", "mean of layers"]
    assert lines[0].split()[1:] == ["1.0000", "█" * 20]
    assert invoke(["vectors", "context", str(folder / "lm"), *sentences, "--word", "bank", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["word"] == "bank" and found["cosines"]["embedding"] == pytest.approx(1) and found["mean"] < 1
    assert invoke(["vectors", "context", str(folder / "lm"), *sentences, "--word", "shore"]) == 4
    assert 'the word "shore" is not in "Ada sat on the bank ."' in capsys.readouterr().err
