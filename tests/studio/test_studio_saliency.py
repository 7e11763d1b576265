"""Saliency of classifiers, taggers and forecasters: the page and its files have the numbers of the model."""

import csv
import io
import json

import numpy as np
import pytest

import regard
from browsing import LOOKS, axe_violations, fits, go, open_look, open_page, read, shows, until
from readers import LOAD

ROWS = LOAD.splitlines(keepends=True)
TEXTS = {"critic": "this movie is great", "tagger": "Ada lives in Oslo .", "teller": "".join(ROWS[:1] + ROWS[-30:])}
# row and column that the address selects
CHOSEN = {"critic": (0, 3), "tagger": (3, 1), "teller": (1, 11)}


@pytest.fixture(scope="module")
def expected(readers):
    return {name: regard.load(readers / name).saliency(text) for name, text in TEXTS.items()}


@pytest.mark.parametrize("name", TEXTS)
def test_the_server_sends_the_saliency_of_the_model(single_pass_server, expected, name):
    trace, saliency = single_pass_server.trace(name, TEXTS[name]), expected[name]
    answer = single_pass_server.get(f"/api/v1/traces/{trace['id']}/saliency").table
    assert (answer["rows"], answer["columns"], answer["sides"]) == (
        list(saliency.rows),
        saliency.columns,
        list(saliency.sides),
    )
    np.testing.assert_allclose(answer["scores"], saliency.scores, rtol=1e-5, atol=1e-7)
    assert trace["kind"] == regard.load(single_pass_server.studio.root / name).recipe.kind()


def test_exported_files_have_the_same_scores(single_pass_server, expected):
    for name, text in TEXTS.items():
        path = f"/api/v1/traces/{single_pass_server.trace(name, text)['id']}/export?view=saliency&format="
        assert single_pass_server.get(f"{path}svg").body.decode() == expected[name].svg()
        assert single_pass_server.get(f"{path}png").body.startswith(b"\x89PNG")
        assert json.loads(single_pass_server.get(f"{path}json").body)["scores"] == expected[name].to_dict()["scores"]
        _, *rows = csv.reader(io.StringIO(single_pass_server.get(f"{path}csv").body.decode()))
        assert [float(row[2]) for row in rows] == expected[name].scores.ravel().tolist()
        assert single_pass_server.get(f"{path}exe").status == 422


def test_a_series_is_never_interpreted_as_a_file_name(single_pass_server, readers):
    """Otherwise a request could read any file of this machine."""
    response = single_pass_server.post(
        "/api/v1/traces", {"model": single_pass_server.models()["teller"], "text": f"{readers.parent}/load.csv"}
    )
    assert (response.status, response.error["code"]) == (422, "no-series")
    long = "".join(ROWS) * 20
    assert (
        single_pass_server.post("/api/v1/traces", {"model": single_pass_server.models()["teller"], "text": long}).status
        == 413
    )


def test_a_model_that_generates_has_no_saliency(server):
    trace = server.trace("transformer", "je suis")
    response = server.get(f"/api/v1/traces/{trace['id']}/saliency")
    assert (response.status, response.error["code"]) == (422, "no-saliency")


def test_a_model_trained_further_has_no_saliency_for_an_old_trace(single_pass_server):
    trace = single_pass_server.trace("critic", TEXTS["critic"])
    path = single_pass_server.studio.trace_store.folder / f"{trace['id']}.json"
    header = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(header | {"model": {**header["model"], "step": 1}}), encoding="utf-8")
    single_pass_server.studio.trace_store._memory.clear()
    response = single_pass_server.get(f"/api/v1/traces/{trace['id']}/saliency")
    assert (response.status, response.error["code"]) == (409, "trained-on")


@pytest.fixture
def page(browser, single_pass_server):
    with open_page(browser, single_pass_server.address) as page:
        yield page


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_tokens_bars_and_matrix_show_the_scores(page, single_pass_server, expected, name):
    saliency, (row, column) = expected[name], CHOSEN[name]
    trace = single_pass_server.trace(name, TEXTS[name])["id"]
    go(page, single_pass_server, f"#/t/{trace}?tab=saliency&query={row}&key={column}")
    values = saliency.scores[row]
    tokens = page.locator(".tokens .token").all()
    assert [token.locator("bdi").inner_text() for token in tokens] == [text.strip() for text in saliency.columns]
    assert all(abs(read(t.locator("small").inner_text()) - v) <= 0.0051 for t, v in zip(tokens, values))
    bars = page.locator("table.candidates tbody tr").all()
    assert all(shows(bar.locator("td").first.inner_text(), v) for bar, v in zip(bars, values, strict=True))
    wide = [bar.locator(".meter").evaluate("(node) => node.getBoundingClientRect().width") for bar in bars]
    top = np.abs(saliency.scores).max()
    np.testing.assert_allclose(wide, 96 * np.abs(values) / top, atol=0.6)
    assert shows(page.locator(".readout .value").first.inner_text(), values[column])
    if len(saliency.rows) > 1:
        page.locator("summary", has_text="As a table").click()
        page.wait_for_selector("figure table")
        cells = [[td.inner_text() for td in tr.locator("td").all()] for tr in page.locator("figure tbody tr").all()]
        assert all(shows(a, b) for texts, row in zip(cells, saliency.scores, strict=True) for a, b in zip(texts, row))


@pytest.mark.slow
def test_arrow_keys_move_between_tokens_and_enter_selects_one(page, single_pass_server, expected):
    go(page, single_pass_server, f"#/t/{single_pass_server.trace('critic', TEXTS['critic'])['id']}?tab=saliency")
    assert page.get_by_role("tab", name="Gradients").count() == 0
    page.locator(".tokens .token").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    assert "key=1" in page.evaluate("location.hash")
    assert shows(page.locator(".readout .value").inner_text(), expected["critic"].scores[0, 1])
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    page.locator("main").focus()
    page.keyboard.press("e")
    link = page.get_by_role("dialog", name="Export").get_by_role("link", name="SVG")
    assert "view=saliency" in link.get_attribute("href")


@pytest.mark.slow
def test_a_series_is_read_from_a_file_and_truncated_at_the_start(page, single_pass_server, tmp_path):
    (tmp_path / "long.csv").write_text("".join(ROWS[:1] + ROWS[1:] * 30 + ROWS[1:]), encoding="utf-8")
    go(page, single_pass_server, "#/")
    page.get_by_label("Model", exact=True).select_option(single_pass_server.models()["teller"])
    assert page.get_by_label("Sentence", exact=True).is_hidden()
    page.get_by_label("Series", exact=True).set_input_files(tmp_path / "long.csv")
    until(page, "document.querySelector('.series .muted').textContent.endsWith('rows of 2 columns')")
    rows = int(page.locator(".series .muted:not(.image-name)").inner_text().split()[0])
    assert 121 < rows < 31 * 121  # the maximum that can be sent
    (tmp_path / "short.csv").write_text(TEXTS["teller"], encoding="utf-8")
    page.get_by_label("Series", exact=True).set_input_files(tmp_path / "short.csv")
    until(page, "document.querySelector('.series .muted').textContent === '30 rows of 2 columns'")
    page.get_by_role("button", name="Run").click()
    page.wait_for_selector(".inspector")
    assert page.locator(".inspector h1").inner_text() == "30 rows of 2 columns → 4 rows ahead"


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "size"), LOOKS)
def test_the_saliency_tab_has_no_severe_violations(browser, single_pass_server, axe, theme, size):
    violations = []
    with open_look(browser, theme, size) as page:
        for name, text in TEXTS.items():
            go(page, single_pass_server, f"#/t/{single_pass_server.trace(name, text)['id']}?tab=saliency&key=1")
            assert fits(page)
            violations += axe_violations(page, axe, name)
    assert violations == []
