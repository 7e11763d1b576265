"""Interventions on the page, comparison of several models, and the stages from scores to weights."""

import itertools
import random

import numpy as np
import pytest

from browsing import TEXT, go, shows, until

pytestmark = pytest.mark.slow
SELF = "decoder.layers.1.attention.weights"
CROSS = "decoder.layers.1.cross.weights"


def numbers(server, trace_id, name, part=""):
    response = server.get(f"/api/v1/traces/{trace_id}/tensors/{name}" + (f"?slice={part}" if part else ""))
    shape = [int(size) for size in response.headers["x-shape"].split(",")]
    return np.frombuffer(response.body, "<f4").reshape(shape)


def table(page):
    """The numbers of the first matrix, from its table."""
    page.locator("summary", has_text="As a table").first.click()
    page.wait_for_selector("figure table")
    rows = page.locator("figure table").first.locator("tbody tr").all()
    return [[cell.inner_text() for cell in row.locator("td").all()] for row in rows]


def same(cells, values):
    return np.shape(cells) == np.shape(values) and all(
        shows(text, float(value)) for row, line in zip(cells, values) for text, value in zip(row, line)
    )


def current_trace(page):
    return page.evaluate("location.hash").split("/")[2].split("?")[0]


def stages(page):
    """The stages from scores to weights that the page offers."""
    return [button.inner_text() for button in page.get_by_role("group", name="Numbers").get_by_role("button").all()]


def test_products_scaled_scores_and_weights_equal_the_recorded_values(page, server):
    trace = server.trace("transformer", TEXT, beam=1)
    recorded = {"scores q·k": "products", "scaled": "scores", "softmax": "weights"}
    for mode, name in recorded.items():
        expected = numbers(server, trace["id"], SELF.replace("weights", name), "head:1")
        go(page, server, f"#/t/{trace['id']}?tab=attention&tensor={SELF}&head=1")
        assert stages(page) == list(recorded)  # decoded step by step: no key was masked
        page.get_by_role("button", name=mode, exact=True).click()
        page.wait_for_selector(f"button[aria-pressed=true]:text-is('{mode}')")
        assert same(table(page), expected.astype("f8")), mode
    assert "mode" not in page.evaluate("location.hash")


def test_a_model_that_does_not_scale_its_scores_has_no_such_stage(page, server):
    trace = server.trace("rnnsearch", TEXT)
    (name,) = [tensor["name"] for tensor in trace["tensors"] if tensor["name"].endswith("weights")]
    go(page, server, f"#/t/{trace['id']}?tab=attention&tensor={name}")
    assert stages(page) == ["scores", "softmax"]
    page.get_by_role("button", name="scores", exact=True).click()
    page.wait_for_selector("button[aria-pressed=true]:text-is('scores')")
    assert same(table(page), numbers(server, trace["id"], name.replace("weights", "scores"), "head:0").astype("f8"))
    assert "it does not scale them" in page.locator("main").inner_text()


def test_an_attention_row_is_edited_on_the_page_and_its_effect_is_shown(page, server):
    trace = server.trace("transformer", TEXT, beam=1)
    go(page, server, f"#/t/{trace['id']}?tab=attention&tensor={CROSS}&head=1&query=1&key=2")
    page.get_by_role("button", name="Edit this row").click()
    page.wait_for_selector(".row-editor")
    inputs = page.locator(".row-editor input")
    row = numbers(server, trace["id"], CROSS, "head:1,query:1")
    assert [float(i.input_value()) for i in inputs.all()] == pytest.approx(row.tolist(), abs=1e-4)
    page.get_by_role("button", name="Only ").click()
    inputs.nth(0).fill("1")
    assert "normalized to 1" in page.locator(".row-editor output").inner_text()
    page.get_by_role("button", name="Run with this row").click()
    page.wait_for_selector(".fork")
    word = server.get(f"/api/v1/traces/{current_trace(page)}").table["sequences"]["target"][1]["label"]
    assert f"attention of “{word}” in d1 cross head 1 edited" in page.locator(".fork").inner_text()
    after = numbers(server, current_trace(page), CROSS, "head:1")
    assert after[1].tolist() == pytest.approx([0.5, 0, 0.5] + [0] * (len(row) - 3))
    page.get_by_role("button", name="difference").click()
    page.wait_for_selector("button[aria-pressed=true]:text-is('difference')")
    before = numbers(server, trace["id"], CROSS, "head:1")
    rows = min(len(before), len(after))
    assert same(table(page)[:rows], after[:rows].astype("f8") - before[:rows])


def test_a_token_is_forced_from_the_table(page, server):
    trace = server.trace("transformer", TEXT, beam=1)
    go(page, server, f"#/t/{trace['id']}?tab=decode&step=1")
    step = trace["steps"][1]
    other = next(word for word in step["best"][1:20] if word["id"] != step["chosen"]["id"])
    page.get_by_role("button", name=f"force: {other['label']} at step 2", exact=True).click()
    page.wait_for_selector(".fork")
    assert f"“{other['label']}” forced at step 2" in page.locator(".fork").inner_text()
    header = server.get(f"/api/v1/traces/{current_trace(page)}").table
    assert header["steps"][1]["chosen"]["id"] == other["id"]
    until(page, "document.querySelectorAll('.candidates tr.picked').length === 1")
    assert other["label"] in page.locator(".candidates tr.picked th").inner_text()


@pytest.mark.parametrize(
    ("button", "description"), [("Remove positions", "no positions"), ("Remove the causal mask", "no causal mask")]
)
def test_positions_and_mask_are_removed_by_one_button(page, server, button, description):
    trace = server.trace("transformer", TEXT, beam=2)
    go(page, server, f"#/t/{trace['id']}?tab=attention&tensor={SELF}&head=0")
    page.get_by_role("button", name=button).click()
    page.wait_for_selector(".fork")
    assert f"What if: {description}" in page.locator(".fork").inner_text()
    header = server.get(f"/api/v1/traces/{current_trace(page)}").table
    total = sum(step["log_prob"] for step in header["steps"])
    displayed = page.locator(".fork").inner_text().split("Log-probability ")[1].split(", before ")
    assert shows(displayed[0], total) and shows(displayed[1].split(".\n")[0].rstrip("."), header["fork"]["log_prob"])
    page.locator(".fork summary").click()
    rows = page.locator(".fork tbody tr").all()
    assert len(rows) == len(header["fork"]["differences"]) > 0
    assert shows(rows[0].locator("td").nth(1).inner_text(), header["fork"]["differences"][0]["max"])
    assert page.get_by_role("button", name=button).count() == 0
    page.get_by_role("link", name="Back to the unchanged model").click()
    until(page, "!document.querySelector('.fork')")


def test_a_model_without_positions_and_mask_has_no_buttons_to_remove_them(page, server):
    go(page, server, f"#/t/{server.trace('seq2seq', TEXT)['id']}?tab=states")
    assert page.get_by_role("group", name="What if").count() == 0


def test_a_selection_in_one_column_applies_to_all(page, server):
    first, again, other = (
        server.trace("transformer", TEXT),
        server.trace("transformer", TEXT),
        server.trace("rnnsearch", TEXT),
    )
    go(page, server, f"#/compare?t={first['id']},{again['id']},{other['id']}")
    assert page.locator(".comparison > section h2").all_inner_texts() == ["transformer", "transformer", "rnnsearch"]
    page.locator(".comparison .matrix").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):  # the first key enters at 0, 0
        page.keyboard.press(key)
    source = first["sequences"]["source"][2]["label"]
    readouts = page.locator(".comparison .matrix + .readout").all_inner_texts()
    assert readouts[0] == readouts[1] and f"{first['sequences']['target'][0]['label']} → {source}:" in readouts[0]
    picked = page.locator(".comparison > section").nth(1).locator("tr.picked th").all_inner_texts()
    assert picked == [first["sequences"]["target"][0]["label"]]
    page.locator(".comparison > section").nth(1).locator("tbody button").nth(1).click()
    assert page.locator(".comparison > section").first.locator("tr.picked").count() == 1


def longest_common(a, b):
    """The length of the longest common subsequence."""
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            best[i + 1][j + 1] = best[i][j] + 1 if x == y else max(best[i][j + 1], best[i + 1][j])
    return best[-1][-1]


def test_two_answers_are_aligned_by_a_longest_common_subsequence(page, server):
    go(page, server, "#/")
    draw = random.Random(5)
    cases = [[[draw.choice("abcd") for _ in range(draw.randrange(9))] for _ in range(2)] for _ in range(300)]
    found = page.evaluate(
        """async (cases) => {
            const { commonSubsequence } = await import("/page/core/diff.js");
            return cases.map(([a, b]) => commonSubsequence(a, b));
        }""",
        cases,
    )
    for (a, b), pairs in zip(cases, found, strict=True):
        assert len(pairs) == longest_common(a, b) and all(a[i] == b[j] for i, j in pairs)
        assert all(i < k and j < m for (i, j), (k, m) in itertools.pairwise(pairs))


def test_arrow_keys_move_between_the_heads_of_the_grid(page, server):
    trace = server.trace("transformer", TEXT)
    go(page, server, f"#/t/{trace['id']}?tab=attention&tensor=encoder.layers.0.attention.weights&head=3")
    page.wait_for_selector(".heads canvas")
    assert page.get_by_role("img", name="24 heads of 6 attention modules").count() == 1
    page.locator(".heads").focus()
    page.keyboard.press("ArrowRight")
    address = page.evaluate("location.hash")
    assert "tensor=encoder.layers.1.attention.weights" in address and "head=0" in address
    until(
        page, "document.querySelector('.heads + .readout').textContent.includes('layers.1.attention.weights, head 0')"
    )
