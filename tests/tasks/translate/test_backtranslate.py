"""Back-translation: synthetic pairs that are filtered, recorded, and the same to the byte after an interruption."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from helpers import check_refused, refusal
from regard.cli import invoke
from regard.data.phrases.corpus import Phrases
from regard.errors import ConfigError, DataError, OutputError
from regard.run import Run, load
from regard.tasks.translate import backtranslate
from regard.tasks.translate.backtranslate import BackTranslator
from regard.tasks.translate.mix import MixPart
from regard.tasks.translate.predict import Translation
from regard.tasks.translate.recipe import TranslationModel
from regard.tasks.translate.sources import PairTsv
from regard.tasks.translate.synthetic_record import BackTranslationConfig, SyntheticRecord

RECIPE = """
[data]
kind = "phrases"
count = 300
direction = "en-fr"
[model]
kind = "transformer"
layers = 1
width = 16
heads = 2
ffn_width = 32
[text]
kind = "char"
vocab_size = 60
[train]
steps = 20
batch_tokens = 1024
schedule.lr = 0.01
schedule.warmup = 5
[task]
bleu_sentences = 0
[filter]
max_length_ratio = 8
"""
DRAWN = BackTranslationConfig(sample=True, mark="<BT>")
LONG = "x" * 1_000_000
LINES = [english for _, english in Phrases(count=100, seed=3).pairs("train")][:40]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reverse")
    (folder / "reverse.toml").write_text(RECIPE, encoding="utf-8")
    Run(folder / "run").train(folder / "reverse.toml")
    return folder / "run"


@pytest.fixture
def model(run: Path) -> TranslationModel:
    found = load(run)
    assert isinstance(found, TranslationModel)
    return found


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Monolingual text of a few chunks, with an empty line, a very long one and a tab."""
    monkeypatch.setattr(backtranslate, "CHUNK", 8)
    path = tmp_path / "mono.en"
    path.write_text("\n".join([*LINES, "", LONG, "a\tb cat"]) + "\n", encoding="utf-8")
    return path


def test_pairs_are_translations_and_lines_and_all_others_are_counted(
    model: TranslationModel, text: Path, tmp_path: Path
) -> None:
    record = model.back_translate(text, tmp_path / "out.tsv", DRAWN)
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text(encoding="utf-8").splitlines()]
    assert record.complete and record.done == record.counts["read"] == 43
    assert len(rows) == record.pair_count > 3 and record.counts["empty"] >= 1 and record.counts["too long"] == 1
    assert all(source.startswith("<BT> ") and target in [*LINES, "a b cat"] for source, target in rows)
    assert record.summary().startswith(f"{len(rows)} pairs of 43 lines; dropped: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mono.en", "out.tsv", "out.tsv.json"]
    # the same again: nothing to do; another seed: other translations
    assert model.back_translate(text, tmp_path / "out.tsv", DRAWN) == record
    model.back_translate(text, tmp_path / "other.tsv", BackTranslationConfig(sample=True, mark="<BT>", seed=1))
    assert (tmp_path / "other.tsv").read_bytes() != (tmp_path / "out.tsv").read_bytes()


def test_an_interrupted_file_is_the_same_to_the_byte(model: TranslationModel, text: Path, tmp_path: Path) -> None:
    model.back_translate(text, tmp_path / "whole.tsv", DRAWN)
    output, part = tmp_path / "out.tsv", tmp_path / "out.tsv.part"
    for chunks in (1, 2):
        with model.back_translation(text, output, DRAWN) as job:
            done = job.run()
            for _ in range(chunks):
                next(done)
            # a second writer is refused
            with pytest.raises(OutputError, match="another process"), model.back_translation(text, output, DRAWN):
                pass
        assert not output.exists()
        with part.open("ab") as file:  # killed within a write, before its record
            file.write(b"half a li")
    assert SyntheticRecord.find(output).done == 24  # type: ignore[union-attr]
    model.back_translate(text, output, DRAWN)
    assert output.read_bytes() == (tmp_path / "whole.tsv").read_bytes() and not part.exists()


def test_what_belongs_to_other_settings_is_refused_and_left(
    model: TranslationModel, text: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.tsv"
    remove = f"write to another file with -o, or remove {output} and {output}.json"
    output.write_text("mine\n", encoding="utf-8")
    check_refused(
        ConfigError,
        f"{output} exists, and no record says that it is of this back-translation; {remove}",
        lambda: model.back_translate(text, output, DRAWN),
    )
    assert output.read_text(encoding="utf-8") == "mine\n"
    output.unlink()
    model.back_translate(text, output, DRAWN)
    before = output.read_bytes()
    message = refusal(ConfigError, lambda: model.back_translate(text, output, BackTranslationConfig(sample=True)))
    assert message == f"{output} is of other settings: mark was '<BT>', is not set; {remove}"
    text.write_text("another text\n", encoding="utf-8")
    assert "text.sha256 was" in refusal(ConfigError, lambda: model.back_translate(text, output, DRAWN))
    assert output.read_bytes() == before


def test_a_text_that_cannot_be_used_leaves_nothing(model: TranslationModel, text: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.tsv"
    for content, why in (
        (b"", "is empty; expected one sentence per line"),
        (b"one\ntw\xff\n", "line 2: byte 3 (0xff) is not UTF-8"),
        (b"\n \n", "gave no pair: 0 pairs of 2 lines; dropped: 2 empty"),
    ):
        text.write_bytes(content)
        assert why in refusal(DataError, lambda: model.back_translate(text, output, DRAWN))
    assert [path.name for path in tmp_path.iterdir()] == ["mono.en"]


@pytest.mark.parametrize(
    ("source", "complete", "reason"),
    [
        ("le chat dort", True, None),
        ("", True, "empty"),
        ("le chat dort", False, "unfinished"),
        ("The cat sleeps!", True, "copies"),
        ("le chat " * 30, True, "length ratio"),
        ("le chat le chat le chat", True, "repeated n-grams"),
        ("le <UNK> dort", True, "unknown tokens"),
    ],
)
def test_a_translation_is_dropped_for_a_reason(
    model: TranslationModel, source: str, complete: bool, reason: str | None
) -> None:
    tokens = tuple(source.split(" "))
    maker = BackTranslator.build(model.translator(), model.recipe.filter, DRAWN)
    assert maker._reason(Translation(source, 0.0, 0.0, tokens, complete), "the cat sleeps") == reason
    # a text that repeats itself may have such a translation
    again = Translation("le chat le chat le chat", 0.0, 0.0, ("a",) * 9, True)
    assert maker._reason(again, "aaaaaaaaaaaaaaa") is None


def test_the_model_card_of_a_mix_names_the_model_that_made_a_part(
    model: TranslationModel, run: Path, text: Path, tmp_path: Path
) -> None:
    model.back_translate(text, tmp_path / "out.tsv", DRAWN)
    credit = MixPart(corpus=PairTsv(train=str(tmp_path / "out.tsv")), tag="<BT>", train_only=True).credit()
    assert f"tag <BT>, for training only; back-translated from {text} by {run} (transformer, step " in credit


def test_the_command_prints_a_summary_and_refuses_options_that_exclude_each_other(
    run: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["backtranslate", str(run), str(text), "-o", str(tmp_path / "out.tsv")]
    assert invoke([*command, "--sample", "--temperature", "0.9"]) == 0
    assert " pairs of 43 lines; dropped: " in capsys.readouterr().out
    assert invoke([*command, "--temperature", "0.9"]) == 2
    assert invoke([*command, "--sample", "--beam", "2"]) == 2
    assert invoke([*command, "--sample", "--tag", "<2en>"]) == 2
    assert "this model was trained without tags" in capsys.readouterr().err


def test_lines_are_counted_once_whatever_the_chunks(model: TranslationModel) -> None:
    maker, counts = BackTranslator.build(model.translator(), model.recipe.filter, DRAWN), Counter[str]()
    whole = maker.pairs(LINES, 1, Counter())
    assert whole == [*maker.pairs(LINES[:9], 1, counts), *maker.pairs(LINES[9:], 10, counts)]
    assert counts["read"] == len(LINES)
