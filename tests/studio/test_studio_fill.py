"""A masked language model in the studio: its trace has attention, candidates at the masks and a logit lens."""

import pytest

import regard
from regard.studio.errors import ApiError
from regard.studio.interventions import AblateHead
from regard.studio.service import Studio, TraceRequest

TEXT = "The cat eats [MASK] [MASK]."
SETTINGS = (
    "task.kind=fill", "data.kind=text", "data.unit=line", "text.vocab_size=80", "task.length=20", "model.kind=bert",
    "model.layers=2", "model.width=16", "model.heads=2", "model.ffn_width=32", "model.max_positions=20",
    "train.steps=30", "train.batch_tokens=256", "train.schedule.lr=0.01",
)  # fmt: skip


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("fill")
    lines = [f"The {animal} eats {food} today.\n" for animal, food in (("cat", "fish"), ("dog", "meat"))]
    (root / "book.txt").write_text("".join(lines * 80), encoding="utf-8")
    regard.Run(root / "runs" / "animals").train(regard.Recipe.read(None, [*SETTINGS, f"data.train={root}/book.txt"]))
    return root / "runs"


@pytest.fixture
def studio(runs, tmp_path):
    return Studio(runs, tmp_path)


def test_a_run_is_listed_and_traced_with_the_numbers_of_its_answer(studio, runs):
    (entry,) = studio.model_store.entries()
    assert entry.usable and entry.task == "fill"
    header = studio.trace(TraceRequest(entry.id, TEXT)).header
    found = regard.load(runs / "animals").fill(TEXT, k=3)
    assert (header["kind"], header["answer"]) == ("fill", found.text)
    tokens = [token["token"] for token in header["sequences"]["source"]]
    assert tokens == ["[CLS]", "the", "cat", "eats", "[MASK]", "[MASK]", ".", "[SEP]"]
    predictions = header["predictions"]
    assert predictions["kind"] == "mask" and [place["actual"] for place in predictions["positions"]] == [None, None]
    for place, mask in zip(predictions["positions"], found.masks, strict=True):
        assert [one["token"] for one in place["best"][:3]] == [one.token for one in mask]
        assert [one["probability"] for one in place["best"][:3]] == pytest.approx(
            [one.probability for one in mask], abs=1e-5
        )
    names = {tensor["name"]: tensor for tensor in header["tensors"]}
    for layer in range(2):
        weights = names[f"encoder.layers.{layer}.attention.weights"]
        assert weights["shape"] == [2, 8, 8] and weights["sides"] == {"query": "source", "key": "source"}
    assert names["lens.ids"]["shape"][:2] == [3, 8] and header["lens_tokens"]
    assert names["logits"]["names"] == {"mask": ["[MASK] 1", "[MASK] 2"]}


def test_without_a_head_the_masks_have_other_candidates(studio):
    (entry,) = studio.model_store.entries()
    base = studio.trace(TraceRequest(entry.id, TEXT))
    fork = studio.fork(base.header["id"], AblateHead("encoder.layers.0.attention.weights", 0))
    before, after = (trace.header["predictions"]["positions"][0]["best"][0] for trace in (base, fork))
    assert before["probability"] != after["probability"]


@pytest.mark.parametrize(
    ("text", "message"),
    [("The cat eats fish.", "there is no [MASK] to fill"), ("the " * 30 + "[MASK]", "this model reads at most 20")],
)
def test_a_text_that_cannot_be_filled_is_answered_with_the_reason(studio, text, message):
    (entry,) = studio.model_store.entries()
    with pytest.raises(ApiError) as caught:
        studio.trace(TraceRequest(entry.id, text))
    assert message in str(caught.value) and caught.value.status == 422
