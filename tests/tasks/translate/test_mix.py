"""Mixed corpora: parts with weights, tags and directions, without leaks between them."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from helpers import check_refused, refusal
from regard.data.phrases.corpus import Phrases
from regard.data.splits import normalize_sentence
from regard.errors import ConfigError, DataError, InputError, Interrupted, LineError
from regard.run import Run, load
from regard.tasks import EvalRequest, Recipe
from regard.tasks.translate.mix import MixedPairs, MixPart
from regard.tasks.translate.prepare import TranslatePreparation
from regard.tasks.translate.sources import PairTsv
from regard.text import Tokenizer, TokenizerConfig
from regard.train import checkpoint
from regard.train.control import send_command
from regard.train.events import Stepped

MIX = """
[data]
kind = "mix"
[[data.parts]]
tag = "<2en>"
weight = 2
corpus = {kind = "phrases", count = 300}
[[data.parts]]
tag = "<2fr>"
reverse = true
weight = 0.5
[data.parts.corpus]
kind = "phrases"
count = 300
seed = 2
[model]
kind = "transformer"
layers = 1
width = 16
heads = 2
ffn_width = 32
[text]
vocab_size = 200
[train]
steps = 4
batch_tokens = 512
[task]
bleu_sentences = 4
"""
PHRASES = Phrases(count=100)


def write_pairs(path: Path, pairs: list[tuple[str, str]]) -> str:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return str(path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mix")
    (folder / "mix.toml").write_text(MIX, encoding="utf-8")
    Run(folder / "run").train(folder / "mix.toml")
    return folder / "run"


# Settings


def settings(**part: object) -> MixedPairs:
    return MixedPairs(parts=(MixPart(corpus=PHRASES, tag="<a>"), MixPart(corpus=PHRASES, **part)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"weight": 0.0}, "weight = 0.0 must be above 0 and at most 1000; leave out a part instead"),
        ({"weight": -2.0}, "weight = -2.0 must be above 0 and at most 1000; leave out a part instead"),
        ({"weight": float("nan")}, "weight = nan must be above 0 and at most 1000; leave out a part instead"),
        (
            {"tag": "2de"},
            'tag = "2de": expected one token in angle brackets without spaces, such as "<2de>"; anything else is text, '
            "which the tokenizer splits",
        ),
        ({"tag": "<EOS>"}, 'tag = "<EOS>" is a special token with another meaning; choose another name'),
        (
            {"tag": "<a>"},
            'parts[1].tag: "<a>" is the tag of parts[0] already; choose another, or set share_tag = true if nothing is '
            "to distinguish them",
        ),
        ({"share_tag": True}, "share_tag = true needs a tag to share"),
    ],
)
def test_settings_of_a_part_that_make_no_sense_are_refused(part: dict[str, object], message: str) -> None:
    check_refused(ConfigError, message, lambda: settings(**part))


def test_a_tag_may_be_shared_and_a_mix_needs_parts_and_something_to_validate_on() -> None:
    assert settings(tag="<a>", share_tag=True).tags.names == ("<a>",)
    assert settings().tags.optional and not settings(tag="<b>").tags.optional
    assert "found none" in refusal(ConfigError, lambda: MixedPairs(parts=()))
    only = MixPart(corpus=PHRASES, train_only=True)
    assert "nothing to validate on" in refusal(ConfigError, lambda: MixedPairs(parts=(only,)))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "data={kind = 'mix', parts = [{corpus = {kind = 'movie-reviews'}}]}",
            "data.parts[0].corpus.kind: expected one of files, tsv, jsonl, tatoeba, phrases, got 'movie-reviews'",
        ),
        ("data={kind = 'mix', parts = [{weight = 1}]}", "data.parts[0].corpus must be given"),
    ],
)
def test_a_part_is_a_corpus_of_sentence_pairs(setting: str, message: str) -> None:
    check_refused(ConfigError, message, lambda: Recipe.read(None, [setting, "model.preset=transformer-tiny"]))


def test_a_part_without_data_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.tsv").touch()
    parts = [MixPart(corpus=PairTsv(train=str(tmp_path / name), valid=None)) for name in ("empty.tsv", "none.tsv")]
    for kind, part, why in ((DataError, parts[0], "is empty"), (InputError, parts[1], "there is no such file")):
        made = TranslatePreparation(MixedPairs(parts=(MixPart(corpus=PHRASES), part)))
        found = refusal(kind, lambda made=made: made.run(tmp_path / "data"))  # type: ignore[misc]
        assert found.startswith("data.parts[1]: ") and why in found


# Splits


def test_no_sentence_that_a_part_holds_out_is_trained_on_in_any_part(tmp_path: Path) -> None:
    pairs = [(f"le chat {i} dort", f"the cat {i} sleeps") for i in range(300)]
    tested = pairs[:10]
    # the second corpus has held-out sentences of the first on its other side, one of them with other punctuation
    synthetic = [(target, f"die Katze {i} schläft") for i, (_, target) in enumerate(pairs)]
    synthetic += [("The cat 3 sleeps!", "die Katze schläft")]
    first = PairTsv(train=write_pairs(tmp_path / "a", pairs), test=write_pairs(tmp_path / "t", tested), valid_share=0.1)
    second = PairTsv(train=write_pairs(tmp_path / "b", synthetic))
    mix = MixedPairs(parts=(MixPart(corpus=first), MixPart(corpus=second, reverse=True, train_only=True)))
    splits, counts = TranslatePreparation(mix).splits, Counter[str]()
    found = {
        split: {normalize_sentence(side) for pair in splits.pairs(split, counts) for side in pair}
        for split in ("train", "valid", "test")
    }
    assert not found["train"] & (found["valid"] | found["test"])
    assert len(found["valid"]) > 20 and len(found["test"]) == 20
    assert next(splits.part_pairs(1, "train"))[0].startswith("die Katze")
    assert list(splits.part_pairs(1, "valid")) == []
    assert counts["also held out"] > 20


def test_a_very_frequent_sentence_leaves_validation_and_stays_in_training(tmp_path: Path) -> None:
    pairs = [(f"le chat {i} dort", f"the cat {i} sleeps") for i in range(100)]
    often = [(f"oui {i}", "Yes.") for i in range(30)]
    first = PairTsv(train=write_pairs(tmp_path / "a", pairs), valid=write_pairs(tmp_path / "v", [("oui", "yes")]))
    mix = MixedPairs(
        parts=(
            MixPart(corpus=first),
            MixPart(corpus=PairTsv(train=write_pairs(tmp_path / "b", often)), train_only=True),
        )
    )
    splits, counts = TranslatePreparation(mix).splits, Counter[str]()
    assert len(list(splits.pairs("train"))) == 130 and list(splits.pairs("valid", counts)) == []
    assert counts["also in training"] == 1


# A trained model


def test_a_tag_is_one_token_of_the_vocabulary_and_starts_every_source(run: Path) -> None:
    loader = Run(run).recipe().loader(run)  # type: ignore[attr-defined]
    words = loader.vocabularies.source
    assert words.size == 202 and loader.vocabularies.is_shared
    (first, second) = (words.id_of(tag) for tag in ("<2en>", "<2fr>"))
    starts = Counter(
        row[0] for batch, _ in islice(loader.train_batches(None), 20) for row in batch.source.data.tolist()
    )
    assert set(starts) == {first, second}
    assert words.encode("<2en>").ids != [first]  # in a text it is text
    part = loader.train.flat("part").tolist()
    assert part == sorted(part) and {0, 1} == set(part)


def test_an_epoch_follows_the_weights_and_resumes_at_any_batch(run: Path) -> None:
    loader = Run(run).recipe().loader(run)  # type: ignore[attr-defined]
    sizes = Counter(loader.train.flat("part").tolist())
    tags = {loader.vocabularies.source.id_of(tag): part for part, tag in enumerate(("<2en>", "<2fr>"))}
    batches = []
    for batch, after in loader.train_batches(None):
        batches.append((batch, after))
        if after["epoch"] == 1:
            break
    counts = Counter(tags[row[0]] for batch, _ in batches for row in batch.source.data.tolist())
    assert counts == {0: 2 * sizes[0], 1: round(sizes[1] / 2)}
    assert loader.batches_per_epoch() == len(batches)
    (_, at), (expected, _) = batches[3], batches[4]
    resumed, _ = next(loader.train_batches(at))
    assert resumed.source.data.equal(expected.source.data) and resumed.target.data.equal(expected.target.data)


def test_a_stopped_training_resumes_bit_for_bit(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mix.toml").write_text(MIX, encoding="utf-8")
    steps: list[int] = []

    def stop(event: object) -> None:
        if isinstance(event, Stepped):
            steps.append(event.step)
            if event.step == 2:
                send_command(tmp_path / "run", "stop")

    with pytest.raises(Interrupted):
        Run(tmp_path / "run").train(tmp_path / "mix.toml", listeners=[stop])
    Run(tmp_path / "run").train(tmp_path / "mix.toml", listeners=[stop])
    assert steps == [1, 2, 3, 4]
    stopped, whole = (checkpoint.newest(path).checkpoint for path in (tmp_path / "run", run))
    assert stopped is not None and whole is not None and stopped.digest == whole.digest


def test_a_text_needs_a_tag_typed_or_given(run: Path) -> None:
    model = load(run)
    given = model.translate("je suis étudiant", tag="<2en>")
    assert given == model.translate("<2en> je suis étudiant") == model.predict_text("<2en> je suis étudiant")
    assert model.translate(["", "<2en>"]) == ["", ""]
    expects = 'this model expects one of <2en>, <2fr> before the text, as in "<2en> ..." or by --tag'
    check_refused(LineError, f"line 1 has no tag: {expects}", lambda: model.translate("je suis"))
    check_refused(ConfigError, f'tag "<2de>": {expects}', lambda: model.translate("je suis", tag="<2de>"))
    check_refused(
        LineError,
        "line 1 starts with the tag <2fr>, and --tag puts <2en> before it; leave one out",
        lambda: model.translate("<2fr> je suis", tag="<2en>"),
    )


def test_scores_come_for_all_parts_and_for_each(run: Path) -> None:
    model = load(run)
    every = model.evaluate(EvalRequest(beam=1), lambda *_: None)
    assert [line.split(",")[0] for line in every.summary_lines] == ["part 1 <2en>", "part 2 <2fr>"]
    sizes = [part["scores"][0]["n"] for part in every.detail["parts"]]
    one = model.evaluate(EvalRequest(beam=1, tag="<2fr>"), lambda *_: None)
    assert one.scores[0].n == sizes[1] and sum(sizes) == every.scores[0].n
    assert all(example.source.startswith("<2fr> ") for example in one.examples)
    assert one.scores[0].value == every.detail["parts"][1]["scores"][0]["value"]


def test_the_model_card_records_the_parts(run: Path) -> None:
    card = (run / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "1. phrases fr-en. Made by the rules of regard. License: MIT (weight 2, tag <2en>)" in card
    assert "(weight 0.5, tag <2fr>, reversed)" in card and '"<2en> ..."' in card


def test_a_mix_starts_from_another_model_with_new_rows_for_its_tags(run: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.toml"
    plain.write_text('[data]\nkind = "phrases"\ncount = 300\n' + MIX[MIX.index("[model]") :], encoding="utf-8")
    Run(tmp_path / "plain").train(plain)
    mixed = MIX[: MIX.index("[model]")] + f'[model]\ninit = "{tmp_path / "plain"}"\n[train]\nsteps = 2\n'
    (tmp_path / "mix.toml").write_text(mixed, encoding="utf-8")
    Run(tmp_path / "mixed").train(tmp_path / "mix.toml")
    words = Tokenizer.load(tmp_path / "mixed" / "tokenizer.json").vocabulary
    assert words == [*Tokenizer.load(tmp_path / "plain" / "tokenizer.json").vocabulary, "<2en>", "<2fr>"]
    card = (tmp_path / "mixed" / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "a mix of 2 corpora" in card and "- fine-tuned from" in card


def test_tags_survive_every_kind_of_tokenizer() -> None:
    tags = settings(tag="<2fr>").tags
    for kind in ("char", "word", "bpe", "byte-bpe", "unigram", "wordpiece"):
        made = tags.extend(Tokenizer.train(["we like it"] * 3, TokenizerConfig(kind=kind, vocab_size=300)))  # type: ignore[arg-type]
        (row,) = tags.encode_batch(made, ["<2fr> we like it"])
        assert made.tokens(row[:1]) == ["<2fr>"] and row[1:] == made.encode("we like it").ids
        assert made.decode(row) == "we like it"
