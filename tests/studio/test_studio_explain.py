"""Explanations in the studio: any number of the page can be followed to the weights, and agrees with the recording."""

import random
import struct

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import page_values
from browsing import go, open_page

TEXT = "je suis étudiant"


def explain(server, trace, name, index):
    at = ",".join(f"{axis}:{i}" for axis, i in index.items())
    response = server.get(f"/api/v1/traces/{trace['id']}/explain?tensor={name}&at={at}")
    assert response.status == 200, response.body
    return response.table


def test_recomputed_numbers_are_those_of_the_trace(server, single_pass_server):
    draw, compared = random.Random(5), 0
    for where, name, text in (
        (server, "transformer", TEXT), (server, "rnnsearch", TEXT), (single_pass_server, "critic", "it is great"),
        (single_pass_server, "tagger", "Ada lives in Rome"),
    ):  # fmt: skip
        trace = where.trace(name, text)
        for tensor in draw.sample(trace["tensors"], min(12, len(trace["tensors"]))):
            index = {axis: draw.randrange(size) for axis, size in zip(tensor["axes"], tensor["shape"], strict=True)}
            part = ",".join(f"{axis}:{i}" for axis, i in index.items())
            bytes_ = where.get(f"/api/v1/traces/{trace['id']}/tensors/{tensor['name']}?slice={part}").body
            (recorded,) = struct.unpack("<f" if tensor["dtype"] == "f4" else "<i", bytes_)
            found = explain(where, trace, tensor["name"], index)
            if recorded == recorded:
                assert found["value"] == pytest.approx(recorded, rel=1e-7, abs=1e-12), tensor["name"]
                compared += 1
    assert compared > 30


def test_numbers_of_lens_and_rollout_are_explained(server, single_pass_server):
    for where, name, text, tensors in (
        (server, "transformer", TEXT, ("lens.ids", "lens.probabilities", "encoder.rollout", "decoder.rollout")),
        (server, "rnnsearch", TEXT, ("lens.ids", "lens.probabilities")),
        (single_pass_server, "critic", "it is great", ("lens.ids", "lens.probabilities")),
        (single_pass_server, "tagger", "Ada lives in Rome", ("lens.ids", "lens.probabilities", "encoder.rollout")),
    ):
        trace = where.trace(name, text)
        for tensor in tensors:
            sent = where.get(f"/api/v1/traces/{trace['id']}/tensors/{tensor}").body
            kind = next(t["dtype"] for t in trace["tensors"] if t["name"] == tensor)
            (recorded,) = struct.unpack("<f" if kind == "f4" else "<i", sent[:4])
            found = explain(where, trace, tensor, {})
            assert found["value"] == pytest.approx(recorded, rel=1e-6) and found["text"], tensor
            if name != "tagger":  # whose marginals are gradients
                assert (found["expression"] is None) == (tensor == "lens.ids"), (name, tensor)


def test_an_explanation_of_a_changed_trace_has_the_change(server):
    trace = server.trace("transformer", TEXT)
    name = "decoder.layers.0.cross.weights"
    fork = server.post(
        f"/api/v1/traces/{trace['id']}/fork", {"change": {"kind": "head", "tensor": name, "head": 1}}
    ).table
    assert explain(server, fork, name, {"head": 1, "query": 0, "key": 0})["value"] == 0
    assert explain(server, trace, name, {"head": 1, "query": 0, "key": 0})["value"] > 0


def test_requests_that_name_no_number_are_refused(server):
    trace = server.trace("transformer", TEXT)
    path = f"/api/v1/traces/{trace['id']}/explain"
    for query, status, message in (
        ("", 422, "expected tensor and at, or ref"),
        ("?tensor=none&at=", 404, "this trace has no tensor 'none'"),
        ("?tensor=logits&at=step:99999", 422, "step: expected 0 to"),
        ("?tensor=logits&at=width:0", 422, "there is no axis width"),
        ("?ref=1.1.1", 410, "this number belongs to another pass"),
    ):
        response = server.get(path + query)
        assert response.status == status and message in response.error["message"], query


def test_weights_are_listed_and_sent_in_parts(server):
    model = server.models()["transformer"]
    weights = {one["name"]: one for one in server.get(f"/api/v1/models/{model}/weights").table["weights"]}
    name = "decoder.layers.0.cross.query.weight"
    assert weights[name] == {"name": name, "axes": ["row", "column"], "shape": [16, 16]}
    response = server.get(f"/api/v1/models/{model}/weights/{name}?slice=row:3,column:0-7")
    assert (response.headers["x-shape"], len(response.body)) == ("8", 32)
    assert server.get(f"/api/v1/models/{model}/weights/nothing").status == 404


VALUES = {
    "folder": (("transformer", "rnnsearch", "seq2seq"), 8),
    "readers": (("critic", "tagger", "teller"), 5),
    "language_runs": (("gpt", "llama", "rnnlm", "bert", "fill"), 4),
    "image_runs": (("cnn", "vit"), 4),
}
"""models of each fixture, and how many numbers of each are compared: 67 in all"""


@pytest.mark.slow
@pytest.mark.parametrize("fixture", VALUES)
def test_numbers_on_the_page_are_those_of_numpy(browser, tmp_path, request, fixture):
    """Some of the values that benchmarks/page_values.py compares."""
    runs, (names, count) = request.getfixturevalue(fixture), VALUES[fixture]
    runs = runs / "runs" if (runs / "runs").is_dir() else runs
    studio = page_values.LocalStudio(runs, tmp_path)
    try:
        with open_page(browser, studio.address) as page:
            for name in names:
                text = page_values.TEXTS.get(name, TEXT)
                found = page_values.compare(page, studio, runs / name, name, text, count)
                assert len(found) == count and max(one.relative for one in found) < 2e-5, found
    finally:
        studio.server.should_exit = True


def test_a_classifiers_logit_is_explained_down_to_a_weight_matrix(browser, single_pass_server):
    trace = single_pass_server.trace("critic", "it is great")
    with open_page(browser, single_pass_server.address) as page:
        go(page, single_pass_server, f"#/t/{trace['id']}?tab=numbers&tensor=logits")
        page.locator("table.numbers button.cell").first.click()
        page.wait_for_selector(".drawer .agreement")
        assert "features times the vector" in page.locator(".drawer").inner_text()
        assert page.locator(".drawer h3", has_text="As a probability").is_visible()
        value = page.locator(".drawer .big").get_attribute("data-exact")
        page.locator(".drawer .operand button.cell").first.click()
        page.wait_for_selector(".drawer .back")
        assert page.locator(".drawer .name").inner_text() == "features"
        page.locator(".drawer .back").click()
        page.wait_for_selector(f".drawer .big[data-exact='{value}']")
        page.locator(".drawer button", has_text="Open matrix").first.click()
        page.wait_for_selector("dialog .matrix canvas")
        assert "row 0" in page.locator("dialog").inner_text()
        assert single_pass_server.get(f"/api/v1/traces/{trace['id']}").status == 200


def test_a_page_without_a_server_explains_by_recorded_tensors_or_says_where_the_weights_are(browser, server, tmp_path):
    trace = server.trace("transformer", TEXT)
    file = tmp_path / "page.html"
    file.write_bytes(server.get(f"/api/v1/traces/{trace['id']}/export?format=html").body)
    texts = []
    for tensor in ("decoder.layers.0.cross.products", "decoder.layers.0.cross.queries"):
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{file.as_uri()}#/t/{trace['id']}?tab=numbers&tensor={tensor}")
        page.locator("table.numbers button.cell").first.click()
        page.wait_for_selector(".drawer .big")
        texts.append(page.locator(".drawer").inner_text())
        context.close()
    assert "products" in texts[0] and "sum to" in texts[0]
    assert "regard studio" in texts[1]


def test_numpy_of_the_benchmark_is_right():
    """On numbers that can be checked by hand, and convolution and pooling beside torch."""
    weights = {"a.weight": np.array([[1.0, 2.0]]), "a.bias": np.array([3.0])}
    assert page_values.linear(np.array([[4.0, 5.0]]), weights, "a").tolist() == [[17.0]]
    assert np.allclose(page_values.softmax(np.log(np.array([1.0, 3.0]))), [0.25, 0.75])
    x, filters = torch.randn(2, 5, 7, dtype=torch.double), torch.randn(3, 2, 3, 3, dtype=torch.double)
    expected = F.conv2d(x[None], filters, padding=1)[0].numpy()
    np.testing.assert_allclose(page_values.convolve(x.numpy(), filters.numpy()), expected, atol=1e-12)
    pooled = F.max_pool2d(x[None], 2, ceil_mode=True)[0].numpy()
    np.testing.assert_array_equal(page_values.max_pool(x.numpy()), pooled)
