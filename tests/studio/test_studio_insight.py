"""Insight tab: the server streams what the Python API computes, and the page shows it."""

import json

import numpy as np
import pytest

import regard
from browsing import open_page, until
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
        page.get_by_text("Light a token (source)").click()
        page.locator(".lit-token").first.hover()
        until(page, "document.querySelector('.heads + .readout').textContent.includes('→')")
