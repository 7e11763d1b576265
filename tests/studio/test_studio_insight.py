"""Insight tab: the server streams what the Python API computes, and the page shows it."""

import http.client
import json

import numpy as np
import pytest

import regard
from browsing import open_page, shows, until
from helpers import PATIENCE
from regard.look.head_importance import head_importance_steps
from regard.look.logit_attribution import logit_attribution

TEXT = "je suis étudiant"


def insight(server, trace, tool, query=""):
    """The lines of a tool."""
    response = server.get(f"/api/v1/traces/{trace['id']}/insight/{tool}?{query}")
    return response, [json.loads(line) for line in response.body.splitlines() if response.status == 200]


@pytest.mark.parametrize("name", ["transformer", "rnnsearch"])
def test_the_server_streams_progress_and_the_numbers_of_the_api(server, folder, name):
    trace, replay = server.trace(name, TEXT), regard.load(folder / name).replay(TEXT)
    _, lines = insight(server, trace, "attribution", "at=1")
    found, view = lines[-1]["result"], logit_attribution(replay, 1)
    assert [part["label"] for part in found["parts"]] == view.labels
    np.testing.assert_allclose([part["value"] for part in found["parts"]], view.values, atol=1e-6)
    step = trace["steps"][1]  # the logit of the recorded search
    assert sum(part["value"] for part in found["parts"]) == pytest.approx(step["chosen"]["logit"], abs=1e-4)
    _, lines = insight(server, trace, "importance")
    *_, view = head_importance_steps(replay)
    np.testing.assert_allclose(lines[-1]["result"]["changes"], view.changes, atol=1e-5)
    recorded = [step["log_prob"] for step in trace["steps"]]
    np.testing.assert_allclose(lines[-1]["result"]["log_probs"], recorded, atol=1e-5)


def test_an_ablated_head_changes_as_much_as_the_same_what_if(server):
    """Beside the fork of a trace, whose search may go another way after the first word."""
    trace = server.trace("transformer", TEXT, beam=1)
    _, lines = insight(server, trace, "importance")
    result, name = lines[-1]["result"], "decoder.layers.1.cross.weights"
    row = next(i for i, head in enumerate(result["heads"]) if (head["name"], head["head"]) == (name, 2))
    change = {"kind": "head", "tensor": name, "head": 2}
    fork = server.post(f"/api/v1/traces/{trace['id']}/fork", {"change": change}).table
    logits = {candidate["id"]: candidate["logit"] for candidate in fork["steps"][0]["best"]}
    first, again = trace["steps"][0]["chosen"]["id"], fork["steps"][0]
    log_prob = logits[first] - again["chosen"]["logit"] + again["log_prob"]
    assert result["changes"][row][0] == pytest.approx(log_prob - trace["steps"][0]["log_prob"], abs=1e-4)


def test_a_reader_who_leaves_releases_the_model(server):
    """The connection is closed after the first line, while most passes of the tool are still to come."""
    trace = server.trace("transformer", TEXT)
    for _ in range(3):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request("GET", f"/api/v1/traces/{trace['id']}/insight/importance")
        response = connection.getresponse()
        assert "done" in json.loads(response.readline())
        response.close()
        connection.close()
        assert server.trace("transformer", TEXT)["id"]


def test_bad_requests_are_refused_with_a_message(server):
    trace = server.trace("transformer", TEXT)
    for tool, query, status, message in (
        ("nothing", "", 404, "tool: expected attribution, importance, integrated, patch, got 'nothing'"),
        ("attribution", "at=99", 422, "output: expected 0 to"),
        ("patch", "text=je", 422, "patching needs two texts with the same number of tokens"),
        ("patch", "", 422, "the text is empty"),
    ):
        response, _ = insight(server, trace, tool, query)
        assert response.status == status and response.error["message"].startswith(message), response.body


def test_the_page_shows_all_panels(browser, server):
    trace = server.trace("transformer", TEXT)
    with open_page(browser, server.address) as page:
        page.goto(f"{server.address}/#/t/{trace['id']}?tab=insight&step=1")
        tool = {
            name: page.locator(f"[data-tool={name}]") for name in ("attribution", "importance", "integrated", "patch")
        }
        tool["attribution"].locator("tbody tr").first.wait_for()
        values = [tool["attribution"].locator(f"[data-value={name}]").text_content() for name in ("logit", "sum")]
        assert values[0] == values[1] == f"{trace['steps'][1]['chosen']['logit']:.4f}".replace("-", "−")
        tool["importance"].get_by_role("button").click()
        tool["integrated"].get_by_role("button").click()
        tool["integrated"].locator("canvas").first.wait_for()
        page.get_by_label("Other text").fill("je suis")
        tool["patch"].get_by_role("button", name="Patch").click()
        tool["patch"].locator("[role=alert]").wait_for()
        assert "same number of tokens" in tool["patch"].text_content()
        page.get_by_label("Other text").fill(TEXT)
        tool["patch"].get_by_role("button", name="Patch").click()
        tool["patch"].locator("canvas").first.wait_for()
        tool["importance"].locator("tbody tr").first.wait_for()
        page.get_by_role("combobox", name="Output").select_option(
            "2"
        )  # another output: no pass is needed for the heads
        until(page, "location.hash.includes('step=2')")
        tool["importance"].locator("tbody button").first.click()
        page.wait_for_selector(".head-roles tbody tr")
        page.get_by_text("Highlight a token of the source").click()
        page.locator(".lit-token").first.hover()
        until(page, "document.querySelector('.heads + .readout').textContent.includes('→')")


CHANGES = {
    "head": {"kind": "head", "tensor": "decoder.layers.1.cross.weights", "head": 2},
    "row": {"kind": "row", "tensor": "encoder.layers.0.attention.weights", "head": 1, "query": 1},
    "positions": {"kind": "positions"},
    "mask": {"kind": "mask"},
    "token": {"kind": "token", "step": 1},
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_changed_trace_is_explained_with_its_changes(server, kind):
    """The logits of the replayed pass are those that the changed pass recorded."""
    trace, change = server.trace("transformer", TEXT, beam=1), dict(CHANGES[kind])
    if kind == "row":
        keys = next(t["shape"][2] for t in trace["tensors"] if t["name"] == change["tensor"])
        change["weights"] = [1.0] + [0.0] * (keys - 1)
    elif kind == "token":
        change["id"] = trace["steps"][1]["best"][3]["id"]
    fork = server.post(f"/api/v1/traces/{trace['id']}/fork", {"change": change}).table
    for at in (0, 2):
        response, lines = insight(server, fork, "attribution", f"at={at}")
        assert response.status == 200, response.body
        step, found = fork["steps"][at], lines[-1]["result"]
        assert found["outputs"][at]["label"] == step["chosen"]["label"]
        assert sum(part["value"] for part in found["parts"]) == pytest.approx(step["chosen"]["logit"], abs=1e-4)
    _, lines = insight(server, fork, "integrated", "at=2")
    if kind != "token":
        assert lines[-1]["result"]["score"] == pytest.approx(fork["steps"][2]["log_prob"], abs=1e-4)
    if kind == "head":
        _, lines = insight(server, fork, "importance", "at=2")
        heads = lines[-1]["result"]["heads"]
        row = next(i for i, head in enumerate(heads) if (head["name"], head["head"]) == (change["tensor"], 2))
        assert lines[-1]["result"]["changes"][row] == [0] * len(fork["steps"])  # it is off already
        assert server.get(f"/api/v1/traces/{fork['id']}/saliency").status == 422  # of unchanged traces only


def test_a_tagger_with_a_crf_says_that_its_logits_are_emissions(browser, single_pass_server):
    trace = single_pass_server.trace("tagger", "Ada lives in Oslo .")
    _, lines = insight(single_pass_server, trace, "attribution", "at=1")
    found = lines[-1]["result"]
    decoded = [label["label"] for label in trace["parts"]["tokens"]]
    assert [output["token"] for output in found["outputs"][:5]] == decoded
    with open_page(browser, single_pass_server.address) as page:
        page.goto(f"{single_pass_server.address}/#/t/{trace['id']}?tab=insight&step=1")
        card = page.locator("[data-tool=attribution]")
        card.locator("tbody tr").first.wait_for()
        assert "Viterbi" in page.locator("[data-value=note]").inner_text()
        text = card.inner_text()
        assert "emission logit" in text and f"transition from {decoded[0]}" in text
        assert shows(card.locator("[data-value=transition]").inner_text(), found["chain"][1]["transition"])
        assert shows(card.locator("[data-value='next transition']").inner_text(), found["chain"][1]["next_transition"])


def test_rollout_of_a_text_is_a_colored_text_and_a_matrix(browser, server):
    trace = server.trace("transformer", TEXT)
    numbers = {
        side: np.frombuffer(server.get(f"/api/v1/traces/{trace['id']}/tensors/{side}.rollout").body, "<f4")
        for side in ("encoder", "decoder")
    }
    with open_page(browser, server.address) as page:
        page.goto(f"{server.address}/#/t/{trace['id']}?tab=attention&position=1")
        panel = page.locator("[data-panel=rollout]")
        for side, rollout in numbers.items():
            if side == "decoder":
                panel.get_by_role("button", name="decoder").click()
            size = int(len(rollout) ** 0.5)
            until(page, f"document.querySelectorAll('[data-panel=rollout] .token').length === {size}")
            for row in (1, size - 1):
                panel.locator(".token").nth(row).click()
                shares = panel.locator(".token small").all_inner_texts()
                assert shares == [f"{share:.2f}" for share in rollout.reshape(size, size)[row].astype(float)]
                assert panel.locator(".token").nth(row).get_attribute("aria-pressed") == "true"
                assert f"position={row}" in page.evaluate("location.hash")
            best = rollout.reshape(size, size)[size - 1].max()
            assert shows(panel.locator("output .value").first.inner_text(), float(best))
            assert panel.locator("canvas").first.is_visible()
