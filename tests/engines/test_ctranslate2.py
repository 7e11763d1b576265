"""Translation by CTranslate2: the same tokens as here, kept in the run, and refusals of what it does not have."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import pytest

import regard
from foreign_models import FRENCH, marian
from helpers import PATIENCE, TINY_TRANSLATOR, join_all, refusal
from regard.cli import invoke
from regard.engines.kept_folder import LISTING, is_whole
from regard.errors import ConfigError, ModelError
from regard.exchange.huggingface import import_folder
from regard.exchange.pack import pack_run
from regard.run_lock import RunLock
from regard.tasks import Recipe

TEXTS = ["je suis étudiant", "", "le chat dort sur la table", "où est la gare ?", "il mange une pomme rouge"]
POWER = '[decode]\nlength_penalty = "power"\nalpha = 1.0\nbeam = 3\n'
OTHER = {
    "model.norm": "pre", "model.positions": "learned", "model.max_positions": 300, "model.activation": "gelu",
    "model.tie": "target", "task.share_vocab": "false", "model.decoder_layers": 2,
}  # fmt: skip
"""all that Marian does not have"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A post-norm Transformer, one with other settings, and an imported Marian."""
    home = tmp_path_factory.mktemp("engines")
    train = "[train]\nsteps = 20\nbatch_tokens = 512\n[train.schedule]\nlr = 0.01\nwarmup = 5\n"
    (home / "tiny.toml").write_text(TINY_TRANSLATOR + train + POWER, encoding="utf-8")
    for name, settings in (("post", {}), ("other", OTHER)):
        changes = [f"{key}={value}" for key, value in settings.items()]
        regard.Run(home / name).train(Recipe.read(home / "tiny.toml", ["task.bleu_sentences=0", *changes]))
    import_folder(marian(home / "saved")[1], home / "marian")
    return {name: home / name for name in ("post", "other", "marian")}


@pytest.mark.parametrize("name", ["post", "other", "marian"])
@pytest.mark.parametrize("beam", [1, 3])
def test_the_translations_are_those_of_the_own_engine(name: str, beam: int, runs: dict[str, Path]) -> None:
    own: Any = regard.load(runs[name], "cpu")
    other: Any = regard.load(runs[name], "cpu", engine="ctranslate2")
    texts = FRENCH if name == "marian" else TEXTS
    expected, found = own.translate(texts, beam, n_best=beam), other.translate(texts, beam, n_best=beam)
    for ours, theirs in zip(expected, found, strict=True):
        assert ours[0].tokens == theirs[0].tokens
        assert ours[0].complete == theirs[0].complete
        if name == "marian":  # there, probabilities are those among all tokens but padding
            continue
        assert theirs[0].score == pytest.approx(ours[0].score, abs=1e-3)
        assert theirs[0].value == pytest.approx(ours[0].value, abs=1e-4)


def test_an_output_has_the_limit_of_its_own_source(runs: dict[str, Path]) -> None:
    own: Any = regard.load(runs["marian"], "cpu")
    other: Any = regard.load(runs["marian"], "cpu", engine="ctranslate2")
    translators = [
        replace(model.translator(1), config=replace(model.translator(1).config, max_extra_tokens=2))
        for model in (own, other)
    ]
    expected, found = (translator.translate(["le chat", FRENCH[1]]) for translator in translators)
    assert [one[0].tokens for one in expected] == [one[0].tokens for one in found]
    assert not expected[0][0].complete


def test_the_converted_model_is_kept_and_made_again_if_it_is_damaged(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    first: Any = regard.load(runs["post"], engine="ctranslate2", precision="int8")
    folder = first.engine.folder
    assert folder.parent == runs["post"] / "engines"
    made = (folder / LISTING).stat().st_mtime_ns
    regard.load(runs["post"], engine="ctranslate2", precision="int8")
    assert (folder / LISTING).stat().st_mtime_ns == made
    (folder / "model.bin").write_bytes(b"damaged")
    again: Any = regard.load(runs["post"], engine="ctranslate2", precision="int8")
    assert again.engine.folder == folder
    assert again.translate(TEXTS) == first.translate(TEXTS)
    assert not is_whole(folder, "of other weights")
    assert not [path for path in folder.parent.iterdir() if path.name.startswith(".")]


def test_beside_a_pack_or_a_locked_run_it_is_in_the_cache(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    pack_run(runs["other"], tmp_path / "other.regard")
    model: Any = regard.load(tmp_path / "other.regard", engine="ctranslate2")
    assert model.engine.folder.is_relative_to(tmp_path / "cache")
    assert model.translate(TEXTS) == regard.load(runs["other"]).translate(TEXTS)  # type: ignore[attr-defined]
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with RunLock(runs["marian"]):
            taken.set()
            done.wait(2 * PATIENCE)

    writer = threading.Thread(target=hold)
    writer.start()
    try:
        assert taken.wait(PATIENCE), "the lock was not taken"
        locked: Any = regard.load(runs["marian"], engine="ctranslate2", precision="int8")
        assert locked.engine.folder.is_relative_to(tmp_path / "cache")
        assert not done.is_set() and writer.is_alive()  # it was locked all the time
    finally:
        done.set()
        join_all(writer)


def use(**settings: Any) -> Callable[[Any], object]:
    """A translation with these settings of [decode]."""

    def translate(model: Any) -> object:
        translator = model.translator()
        return replace(translator, config=replace(translator.config, **settings)).translate(["x"])

    return translate


def look_inside(model: Any) -> None:
    with regard.record(model):
        model.translate("x")


REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "sampling": (use(sample=True), "decode.sample = true is not in the engine ctranslate2; leave --engine out"),
    "coverage": (use(coverage_penalty=0.2), "decode.coverage_penalty = 0.2 is not in the engine ctranslate2"),
    "repetition": (use(repetition_penalty=1.2), "decode.repetition_penalty = 1.2 is not in the engine ctranslate2"),
    "n-grams": (use(no_repeat_ngram=3), "decode.no_repeat_ngram = 3 is not in the engine ctranslate2"),
    "minimum": (use(min_length=2), "decode.min_length = 2 is not in the engine ctranslate2"),
    "exact": (use(exact=True), "decode.exact = true is not in the engine ctranslate2"),
    "prefix": (lambda model: model.translator().translate(["x"], "the"), "--prefix is not in the engine ctranslate2"),
    "words": (
        lambda model: model.translator().translate(["x"], constraints=[["the"]]),
        "--require is not in the engine ctranslate2; leave it or --engine out",
    ),
    "n best": (
        use(length_penalty="wu", n_best=2),
        'the n best by decode.length_penalty = "wu" are not in the engine ctranslate2',
    ),
    "recording": (look_inside, "nothing inside the engine ctranslate2 can be recorded; load the run without an engine"),
}


@pytest.mark.parametrize("option", REFUSED)
def test_what_the_engine_does_not_have_is_refused_by_name(option: str, runs: dict[str, Path]) -> None:
    model, (ask, expected) = regard.load(runs["post"], engine="ctranslate2"), REFUSED[option]
    assert expected in refusal(ConfigError, lambda: ask(model))


def test_the_command_has_the_engine(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, out = str(runs["post"]), str(tmp_path / "out")
    (tmp_path / "in").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    answers = []
    for engine in ("regard", "ctranslate2"):
        assert invoke(["translate", run, "-i", str(tmp_path / "in"), "--engine", engine]) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    assert answers[0].count("\n") == len(TEXTS)
    assert invoke(["translate", run, "le chat", "--engine", "ctranslate2", "--require", "cat"]) == 2
    assert invoke(["translate", run, "le chat", "--precision", "int8"]) == 2
    assert "precision = int8 is of the engine ctranslate2; name it" in capsys.readouterr().err
    assert invoke(["export", run, "--to", "huggingface", "--precision", "int8", "-o", out]) == 2
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    for command in (
        ["translate", run, "x", "--engine", "ctranslate2"],
        ["export", run, "--to", "ctranslate2", "-o", out],
    ):
        assert invoke(command) == 2
        assert (
            'install it with: pip install "regard[ctranslate2]", or pip install ctranslate2' in capsys.readouterr().err
        )
    assert not Path(out).exists()


@pytest.mark.parametrize("name", ["post", "other"])
def test_an_exported_folder_is_one_of_ctranslate2(name: str, runs: dict[str, Path], tmp_path: Path) -> None:
    assert invoke(["export", str(runs[name]), "--to", "ctranslate2", "-o", str(tmp_path / "out")]) == 0
    model: Any = regard.load(runs[name])
    words, texts = model.vocabularies, [text for text in TEXTS if text]
    sources = [
        [words.source.vocabulary[id] for id in (*ids, words.source.eos)] for ids in words.source.encode_batch(texts)
    ]
    found = ctranslate2.Translator(str(tmp_path / "out")).translate_batch(
        sources, beam_size=3, length_penalty=1, return_end_token=True, min_decoding_length=0
    )
    tokens = [[token for token in one.hypotheses[0] if token != "<EOS>"] for one in found]
    expected = model.translate(texts, n_best=1)
    assert [words.target.decode([words.target.vocabulary.index(token) for token in row]) for row in tokens] == [
        one[0].text for one in expected
    ]
    assert (tmp_path / "out" / "README.md").is_file()


def test_another_model_is_refused(tmp_path: Path) -> None:
    recipe = TINY_TRANSLATOR.replace('"transformer"', '"seq2seq"').replace("heads = 2\n", "")
    (tmp_path / "tiny.toml").write_text(
        recipe.replace("ffn_width = 32\n", "") + "[train]\nsteps = 1\nbatch_tokens = 256\n"
    )
    regard.Run(tmp_path / "run").train(tmp_path / "tiny.toml")
    expected = (
        f'{tmp_path / "run"}: model.kind = "seq2seq" of the task translate cannot be run by CTranslate2 here; it runs '
        "transformer of the task translate, gpt and llama of the task generate"
    )
    assert refusal(ModelError, lambda: regard.load(tmp_path / "run", engine="ctranslate2")) == expected
    assert "expected one of regard, ctranslate2" in refusal(
        ConfigError, lambda: regard.load(tmp_path / "run", engine="marian")
    )
