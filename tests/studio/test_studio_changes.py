"""The page when something is changed, when several models stand side by side, and on the way from scores to weights."""

import itertools
import random

import numpy as np
import pytest

from browsing import TEXT, go, read, shows, until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
OWN = "decoder.layers.1.attention.weights"
CROSS = "decoder.layers.1.cross.weights"


def numbers(server, number, name, part=""):
    said = server.get(f"/api/v1/traces/{number}/tensors/{name}" + (f"?slice={part}" if part else ""))
    shape = [int(size) for size in said.headers["x-shape"].split(",")]
    return np.frombuffer(said.body, "<f4").reshape(shape)


def table(page):
    """The numbers of the first matrix, as its table shows them."""
    page.locator("summary", has_text="As a table").first.click()
    page.wait_for_selector("figure table")
    rows = page.locator("figure table").first.locator("tbody tr").all()
    return [[cell.inner_text() for cell in row.locator("td").all()] for row in rows]


def same(cells, values):
    return np.shape(cells) == np.shape(values) and all(
        shows(text, float(value)) for row, line in zip(cells, values) for text, value in zip(row, line)
    )


def now(page):
    return page.evaluate("location.hash").split("/")[2].split("?")[0]


def test_scores_scaled_masked_and_softmax_are_the_models(page, server):
    trace = server.trace("transformer", TEXT, beam=1)
    queries, keys, scores, weights = (
        numbers(server, trace["id"], OWN.replace("weights", name), "head:1").astype("f8")
        for name in ("queries", "keys", "scores", "weights")
    )
    masked = np.where(weights > 0, scores, np.nan)
    dotted = queries @ keys.T
    dotted[np.isnan(scores)] = np.nan  # a word that was not said yet had no key
    for mode, expected in {"scores q·k": dotted, "scaled": scores, "masked": masked, "softmax": weights}.items():
        go(page, server, f"#/t/{trace['id']}?tab=attention&tensor={OWN}&head=1")
        page.get_by_role("button", name=mode, exact=True).click()
        page.wait_for_selector(f"button[aria-pressed=true]:text-is('{mode}')")
        cells = table(page)
        near = [
            [abs(read(a) - b) < 2e-3 if b == b else a == "–" for a, b in zip(r, v)] for r, v in zip(cells, expected)
        ]
        assert np.all(near), mode
    assert "mode" not in page.evaluate("location.hash")


def test_a_row_is_written_on_the_page_and_what_came_of_it_is_shown(page, server):
    trace = server.trace("transformer", TEXT, beam=1)
    go(page, server, f"#/t/{trace['id']}?tab=attention&tensor={CROSS}&head=1&query=1&key=2")
    page.get_by_role("button", name="Edit this row").click()
    page.wait_for_selector(".row-editor")
    inputs = page.locator(".row-editor input")
    row = numbers(server, trace["id"], CROSS, "head:1,query:1")
    assert [float(i.input_value()) for i in inputs.all()] == pytest.approx(row.tolist(), abs=1e-4)
    page.get_by_role("button", name="Only at").click()
    inputs.nth(0).fill("1")
    assert "made to be 1" in page.locator(".row-editor output").inner_text()
    page.get_by_role("button", name="Try it").click()
    page.wait_for_selector(".fork")
    word = server.get(f"/api/v1/traces/{now(page)}").table["sequences"]["target"][1]["shown"]
    assert f"where “{word}” looks in d1 cross head 1 written by hand" in page.locator(".fork").inner_text()
    after = numbers(server, now(page), CROSS, "head:1")
    assert after[1].tolist() == pytest.approx([0.5, 0, 0.5] + [0] * (len(row) - 3))
    page.get_by_role("button", name="− before").click()
    page.wait_for_selector("button[aria-pressed=true]:text-is('− before')")
    before = numbers(server, trace["id"], CROSS, "head:1")
    rows = min(len(before), len(after))
    assert same(table(page)[:rows], after[:rows].astype("f8") - before[:rows])


def test_another_word_is_said_from_the_table(page, server):
    trace = server.trace("transformer", TEXT, beam=1)
    go(page, server, f"#/t/{trace['id']}?tab=decode&step=1")
    step = trace["steps"][1]
    other = next(word for word in step["best"][1:20] if word["id"] != step["chosen"]["id"])
    page.get_by_role("button", name=f"say this: {other['shown']} at step 2", exact=True).click()
    page.wait_for_selector(".fork")
    assert f"“{other['shown']}” said at step 2" in page.locator(".fork").inner_text()
    made = server.get(f"/api/v1/traces/{now(page)}").table
    assert made["steps"][1]["chosen"]["id"] == other["id"]
    until(page, "document.querySelectorAll('.candidates tr.picked').length === 1")
    assert other["shown"] in page.locator(".candidates tr.picked th").inner_text()


@pytest.mark.parametrize(
    ("button", "told"), [("Drop the positions", "no positions"), ("Take the mask away", "no mask")]
)
def test_what_concerns_the_whole_model_is_one_button(page, server, button, told):
    trace = server.trace("transformer", TEXT, beam=2)
    go(page, server, f"#/t/{trace['id']}?tab=attention&tensor={OWN}&head=0")
    page.get_by_role("button", name=button).click()
    page.wait_for_selector(".fork")
    assert f"What if: {told}" in page.locator(".fork").inner_text()
    made = server.get(f"/api/v1/traces/{now(page)}").table
    total = sum(step["log"] for step in made["steps"])
    shown = page.locator(".fork").inner_text().split("Log-probability ")[1].split(", before ")
    assert shows(shown[0], total) and shows(shown[1].split(".\n")[0].rstrip("."), made["fork"]["log"])
    page.locator(".fork summary").click()
    rows = page.locator(".fork tbody tr").all()
    assert len(rows) == len(made["fork"]["moved"]) > 0
    assert shows(rows[0].locator("td").nth(1).inner_text(), made["fork"]["moved"][0]["most"])
    assert page.get_by_role("button", name=button).count() == 0
    page.get_by_role("link", name="Back to the model as it is").click()
    until(page, "!document.querySelector('.fork')")


def test_a_model_without_positions_and_mask_is_not_asked_to_lose_them(page, server):
    go(page, server, f"#/t/{server.trace('seq2seq', TEXT)['id']}?tab=states")
    assert page.get_by_role("group", name="What if").count() == 0


def test_what_is_chosen_in_one_column_is_chosen_in_all(page, server):
    first, again, other = (
        server.trace("transformer", TEXT),
        server.trace("transformer", TEXT),
        server.trace("rnnsearch", TEXT),
    )
    go(page, server, f"#/compare?t={first['id']},{again['id']},{other['id']}")
    assert page.locator(".lineup > section h2").all_inner_texts() == ["transformer", "transformer", "rnnsearch"]
    page.locator(".lineup .matrix").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):  # the first key enters at 0, 0
        page.keyboard.press(key)
    source = first["sequences"]["source"][2]["shown"]
    told = page.locator(".lineup .matrix + .readout").all_inner_texts()
    assert told[0] == told[1] and f"{first['sequences']['target'][0]['shown']} → {source}:" in told[0]
    picked = page.locator(".lineup > section").nth(1).locator("tr.picked th").all_inner_texts()
    assert picked == [first["sequences"]["target"][0]["shown"]]
    page.locator(".lineup > section").nth(1).locator("tbody button").nth(1).click()
    assert page.locator(".lineup > section").first.locator("tr.picked").count() == 1


def longest(a, b):
    """The length of the longest common subsequence."""
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            best[i + 1][j + 1] = best[i][j] + 1 if x == y else max(best[i][j + 1], best[i + 1][j])
    return best[-1][-1]


def test_words_of_two_answers_are_paired_as_well_as_can_be(page, server):
    go(page, server, "#/")
    draw = random.Random(5)
    cases = [[[draw.choice("abcd") for _ in range(draw.randrange(9))] for _ in range(2)] for _ in range(300)]
    found = page.evaluate(
        """async (cases) => {
            const { paired } = await import("/page/words.js");
            return cases.map(([a, b]) => paired(a, b));
        }""",
        cases,
    )
    for (a, b), pairs in zip(cases, found, strict=True):
        assert len(pairs) == longest(a, b) and all(a[i] == b[j] for i, j in pairs)
        assert all(i < k and j < m for (i, j), (k, m) in itertools.pairwise(pairs))


def test_all_heads_come_after_the_one_and_arrows_walk_through_them(page, server):
    trace = server.trace("transformer", TEXT)
    go(page, server, f"#/t/{trace['id']}?tab=attention&tensor=encoder.layers.0.attention.weights&head=3")
    page.wait_for_selector(".heads canvas")
    assert page.get_by_role("img", name="24 heads of 6 attentions").count() == 1
    page.locator(".heads").focus()
    page.keyboard.press("ArrowRight")
    address = page.evaluate("location.hash")
    assert "tensor=encoder.layers.1.attention.weights" in address and "head=0" in address
    until(
        page, "document.querySelector('.heads + .readout').textContent.includes('layers.1.attention.weights, head 0')"
    )
