"""Sentence vectors of every kind of model that reads texts, and search by their similarity."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import regard.tasks.sentence_vectors as module
from regard.cli import invoke
from regard.errors import ConfigError, DataError, LineError
from regard.run import Run, load
from regard.sequence import Tokens
from regard.tasks import Recipe
from regard.tasks.sentence_vectors import SentenceEncoder, search_sentences

TEXTS = ["the cat sleeps", "a dog runs and runs", "the sea is grey , and the wind is cold", "Été à Nîmes"]
TRANSFORMER = "layers = 1, width = 16, heads = 2, ffn_width = 32"
STEPS = "train={steps = 2, batch_tokens = 64}"
RECIPES = {
    "translate": ["data={kind = 'phrases', count = 300}", f"model={{kind = 'transformer', {TRANSFORMER}}}",
                  "text.vocab_size=200", "task.bleu_sentences=0"],
    "classify": ["data={kind = 'tsv', train = '{folder}/labeled.tsv', text = '1', label = '2'}",
                 "data.valid={folder}/labeled.tsv",
                 f"model={{kind = 'transformer', {TRANSFORMER}}}"],
    "label": ["data={kind = 'conll', train = '{folder}/tags.txt', valid = '{folder}/tags.txt'}",
              "model={kind = 'recurrent', width = 8}"],
    "generate": ["data={kind = 'text', train = '{folder}/book.txt'}",
                 "model={kind = 'gpt', layers = 1, width = 16, heads = 2, max_positions = 8}", "task.window=8"],
    "lines": ["data={kind = 'text', train = '{folder}/book.txt', unit = 'line'}", "model={kind = 'rnnlm', width = 8}",
              "task.window=8"],
    "elmo": ["data={kind = 'text', train = '{folder}/book.txt', unit = 'line'}", "text.kind=word", "task.window=8",
             "model={kind = 'elmo', layers = 1, width = 8, cells = 8, characters = 4, filters = [4, 4]}"],
    "vectors": ["data={kind = 'text', train = '{folder}/book.txt'}", "model.width=8", "train.batch_tokens=256"],
    "fill": ["data={kind = 'text', train = '{folder}/book.txt', unit = 'line'}", "task.length=16",
             "model={kind = 'bert', layers = 1, width = 16, heads = 2, ffn_width = 32, max_positions = 16}"],
}  # fmt: skip
TASKS = {"lines": "generate", "elmo": "generate"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("sentences")
    words = " ".join(TEXTS).split()
    book = "".join(" ".join(words[(i * 7 + j * j) % len(words)] for j in range(9)) + "\n" for i in range(160))
    (home / "book.txt").write_text(book, encoding="utf-8")
    (home / "labeled.tsv").write_text("".join(f"{t}\t{i % 2}\n" for i, t in enumerate(TEXTS * 12)), encoding="utf-8")
    tagged = "\n".join("".join(f"{word} {'XY'[len(word) % 2]}\n" for word in text.split()) for text in TEXTS * 12)
    (home / "tags.txt").write_text(tagged, encoding="utf-8")
    return home


@pytest.fixture(scope="module", params=RECIPES)
def model(request, folder):
    name = request.param
    settings = [setting.replace("{folder}", str(folder)) for setting in RECIPES[name]]
    Run(folder / name).train(Recipe.read(None, [f"task.kind={TASKS.get(name, name)}", STEPS, *settings]))
    return load(folder / name)


def test_a_vector_is_the_mean_of_the_states_and_does_not_depend_on_the_batch(model):
    together = model.sentence_vectors(TEXTS)
    assert together.shape[0] == len(TEXTS) and together.dtype == np.float32 and np.isfinite(together).all()
    for text, vector in zip(TEXTS, together, strict=True):
        row = model.sentence_rows([text])[0][: model.sentence_limit]
        with torch.no_grad():
            states = model.sentence_memory([row]).states
        np.testing.assert_allclose(vector, states.data[0].mean(0).numpy(), atol=1e-5)
        np.testing.assert_allclose(vector, model.sentence_vectors([text])[0], atol=1e-5)


def test_the_last_state_is_another_pooling(model):
    last = model.sentence_vectors(TEXTS, pool="last")
    assert last.shape == model.sentence_vectors(TEXTS).shape
    if model.reads_left_to_right:
        with pytest.raises(ConfigError, match=r"^--pool first: the first state of a model that reads from left to "):
            model.sentence_vectors(TEXTS, pool="first")
    else:
        assert model.sentence_vectors(TEXTS, pool="first").shape == last.shape


def test_an_empty_text_has_no_vector(model):
    with pytest.raises(LineError, match=r"^line 2: the text is empty; a sentence vector needs a word$"):
        model.sentence_vectors(["the cat", "  "])


def test_a_long_text_is_cut(model):
    assert np.isfinite(model.sentence_vectors(["the cat sleeps " * 200])).all()


def test_search_finds_the_text_itself_and_skips_blank_lines(model, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 2)
    lines = ["", *TEXTS, " ", TEXTS[2]]
    found, known = search_sentences(SentenceEncoder(model), TEXTS[2], lines, 3)
    assert known == 5 and {match.line for match in found[:2]} == {4, 7}
    assert all(match.cosine == pytest.approx(1, abs=1e-5) for match in found[:2])
    assert found[0].cosine >= found[1].cosine >= found[2].cosine
    assert model.search(TEXTS[2], TEXTS, k=1)[0].text == TEXTS[2]


def test_search_orders_by_the_cosine(model):
    vectors = model.sentence_vectors(TEXTS).astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = model.search(TEXTS[0], TEXTS, k=4)
    expected = unit @ unit[0]
    assert [match.cosine for match in found] == pytest.approx(sorted(expected, reverse=True), abs=1e-5)


def test_a_query_needs_a_word_and_a_count(model):
    with pytest.raises(DataError, match=r"^the query is empty; give a text to search for$"):
        model.search(" ", TEXTS)
    with pytest.raises(ConfigError, match=r"^k = 0 must be at least 1$"):
        model.search("the", TEXTS, k=0)


def test_a_language_model_of_two_directions_has_both_in_its_vector(folder, model):
    if not hasattr(model.module, "backward_decoder"):
        return
    ids = model.sentence_rows([TEXTS[0]])[0]
    with torch.no_grad():
        memory = model.sentence_memory([ids, ids[:2]])
        forward = model.module.decoder(
            Tokens.pad([ids]), model.module.decoder.start(model.module.encoder(Tokens.pad([[]])), 0)
        )[0]
    width = forward.shape[-1]
    assert memory.states.data.shape[-1] == 2 * width
    torch.testing.assert_close(memory.states.data[0, :, :width], forward[0], atol=1e-5, rtol=1e-5)


def test_a_model_of_numbers_has_no_sentence_vectors(tmp_path):
    (tmp_path / "a.csv").write_text("".join(f"{i % 7}.5\n" for i in range(200)), encoding="utf-8")
    settings = [f"data={{kind='numbers', train='{tmp_path}/a.csv'}}", "model={kind='rnnlm', width=8}", "task.window=8"]
    Run(tmp_path / "run").train(Recipe.read(None, ["task.kind=generate", STEPS, *settings]))
    with pytest.raises(ConfigError, match="reads no sentences, so it has no sentence vectors; use a model of texts"):
        load(tmp_path / "run").sentence_vectors(["a"])


def test_the_command_writes_lines_json_and_arrays(folder, capsys):
    run = folder / "generate"
    if not run.exists():
        pytest.fail("the fixture trains it first")
    (folder / "lines.txt").write_text("".join(f"{text}\n" for text in TEXTS), encoding="utf-8")
    source = ["-i", str(folder / "lines.txt")]
    expected = load(run).sentence_vectors(TEXTS)
    capsys.readouterr()
    assert invoke(["vectors", "sentence", str(run), *TEXTS]) == 0
    rows = [[float(x) for x in line.split("\t")] for line in capsys.readouterr().out.splitlines()]
    np.testing.assert_allclose(rows, expected, rtol=1e-5, atol=1e-6)
    for name in ("a.npy", "a.tsv", "a.jsonl"):
        assert invoke(["vectors", "sentence", str(run), *source, "-o", str(folder / name), "-q"]) == 0
    np.testing.assert_allclose(np.load(folder / "a.npy"), expected, atol=1e-6)
    objects = [json.loads(line) for line in (folder / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [one["text"] for one in objects] == TEXTS
    np.testing.assert_allclose([one["vector"] for one in objects], expected, rtol=1e-5, atol=1e-6)
    assert len((folder / "a.tsv").read_text(encoding="utf-8").splitlines()) == len(TEXTS)
    capsys.readouterr()
    assert invoke(["vectors", "search", str(run), TEXTS[1], "--corpus", str(folder / "lines.txt"), "-k", "2"]) == 0
    assert capsys.readouterr().out.splitlines()[0].split() == ["1.0000", "2", *TEXTS[1].split()]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["sentence", "RUN", "a", "-o", "a.txt"], 2, "-o a.txt: expected a name that ends in .npy, .tsv, .jsonl"),
        (["sentence", "RUN", "-i", "blank.txt", "-o", "b.npy"], 4, "line 1: the text is empty; a sentence vector"),
        (["search", "RUN", "a", "--corpus", "blank.txt"], 4, "blank.txt: there is no text to search; expected one per"),
        (["search", "RUN", "a", "--corpus", "none.txt"], 66, "none.txt: there is no such file"),
        (["search", "RUN", "", "--corpus", "blank.txt"], 4, "the query is empty; give a text to search for"),
    ],
)
def test_bad_input_is_named_and_nothing_is_written(arguments, code, message, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("blank.txt").write_text("\n \n", encoding="utf-8")
    assert invoke(["vectors", *(str(folder / "generate") if a == "RUN" else a for a in arguments)]) == code
    assert f"error: {message}" in capsys.readouterr().err
    assert sorted(path.name for path in Path().iterdir()) == ["blank.txt"]
