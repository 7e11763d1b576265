"""Explanations: the parts of every recorded number give that number, down to weights and inputs, in every family."""

import json
import math
import random
import re

import pytest
import torch

import zoo
from regard.errors import ModelError
from regard.look import Recording
from regard.look.explain import Explainer, OperationTape, begin_tape
from regard.nn.inference import optimize_for_inference
from regard.trace import record

FAMILIES = (
    "transformer", "gpt", "llama-grouped", "seq2seq", "seq2seq-gru", "rnnsearch", "luong",
    "luong-cosine", "gnmt", "convolution-gru", "vit-transformer", "resnet-luong", "cnn-rnnsearch", "bert first",
    "elmo-recurrent each", "mlp mean",
)  # fmt: skip
TOLERANCE = 5e-6


def explainer_of(name):
    """Explainer and condensed records of a pass of a model of the zoo."""
    if name in zoo.READERS:
        model, source = optimize_for_inference(zoo.reader(name)), zoo.text()
        arguments = (source,)
    else:
        model, source = optimize_for_inference(zoo.build(name)), (zoo.ZOO | zoo.CAPTIONERS)[name].source()
        arguments = (source, zoo.TARGET)
    tape = OperationTape()
    begin_tape(tape, model)
    with torch.no_grad(), tape:
        with record(model) as trace:
            model.readout(model(*arguments))
        records = Recording(trace).condense().records
    return Explainer(tape, trace.records, records), records


def parts(expression):
    """(value, size of the terms) of an explanation as plain data, computed from its leaves."""
    match expression["op"]:
        case "number":
            return number(expression["value"]), abs(number(expression["value"]))
        case "combination":
            values, sizes = zip(*map(parts, expression["terms"]), strict=True)
            a, b = values
            value = {
                "+": lambda: a + b, "−": lambda: a - b, "×": lambda: a * b, "÷": lambda: a / b, "^": lambda: a**b,
                "max": lambda: max(a, b), "min": lambda: min(a, b),
            }[expression["operator"]]()  # fmt: skip
            return value, max(*sizes, abs(value))
        case "dot":
            products = [
                a * b for a, b in zip(expression["left"]["numbers"], expression["right"]["numbers"], strict=True)
            ]
            return math.fsum(products), math.fsum(map(abs, products))
        case "softmax":
            top = max(map(number, expression["vector"]["numbers"]))
            total = math.fsum(math.exp(number(x) - top) for x in expression["vector"]["numbers"])
            return math.exp(parts(expression["number"])[0] - top) / total, 1.0
    return expression["value"], abs(expression["value"])


def number(value):
    return float(value)


def places(expression):
    """Places of all numbers of an expression that a click can follow."""
    match expression["op"]:
        case "number":
            yield expression["place"]
        case "combination":
            for term in expression["terms"]:
                yield from places(term)
        case "call":
            yield from places(expression["argument"])
        case "softmax":
            yield from places(expression["number"])
        case "dot":
            for side in ("left", "right"):
                yield {"kind": expression[side]["kind"], "ref": expression[side]["refs"][0]}
        case "reduction":
            yield {"kind": expression["vector"]["kind"], "ref": expression["vector"]["refs"][0]}


@pytest.mark.parametrize("name", FAMILIES)
def test_the_parts_of_every_recorded_tensor_give_its_numbers(name):
    explainer, records = explainer_of(name)
    draw, computed = random.Random(1), 0
    for made in records:
        if not made.data.numel():
            continue
        index = {axis: draw.randrange(size) for axis, size in zip(made.axes[1:], made.data.shape[1:], strict=True)}
        recorded = float(made.data[(0, *index.values())])
        found = explainer.explain(made.name, index).to_dict()
        assert found["value"] == pytest.approx(recorded, rel=1e-6, abs=1e-6) or math.isnan(recorded), made.name
        assert found["text"], made.name
        if found["expression"] is None:
            assert re.search("constant|number of|weight|input", found["text"]), (made.name, found["text"])
            continue
        value, size = parts(found["expression"])
        assert value == pytest.approx(recorded, abs=TOLERANCE * max(size, 1)), (made.name, index)
        computed += found["expression"]["op"] != "number"
    assert computed > len(records) / 2
    json.dumps([explainer.explain(made.name, {}).to_dict() for made in records[:3]], allow_nan=False)


@pytest.mark.parametrize("name", ["rnnsearch", "resnet-luong"])
def test_every_operand_can_be_followed_down_to_weights_and_inputs(name):
    explainer, records = explainer_of(name)
    draw = random.Random(2)
    for made in records[-6:]:
        explanation, depth = explainer.explain(made.name, {}).to_dict(), 0
        while explanation["expression"] is not None:
            following = [place for place in places(explanation["expression"]) if place["ref"]]
            if not following:
                break
            place = draw.choice(following)
            explanation, depth = explainer.explain_ref(place["ref"]).to_dict(), depth + 1
            assert depth < 200
        assert re.search("constant|weight|input|number of", explanation["text"]), (made.name, explanation["text"])


def test_a_number_of_another_pass_is_refused():
    explainer, _ = explainer_of("seq2seq")
    for ref in ("1.2.3", "x", "0.0.-1", "-1.0.0", ""):
        with pytest.raises(ModelError, match="another pass of the model; click the number in the trace again"):
            explainer.explain_ref(ref)
