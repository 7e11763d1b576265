"""What an answer hung on, of classifiers, taggers and forecasts: on the page and in files, the model's own numbers."""

import csv
import io
import json

import numpy as np
import pytest

import regard
from browsing import SIZES, faultless, go, judged, read, shows, until
from readers import LOAD

ROWS = LOAD.splitlines(keepends=True)
TEXTS = {"critic": "this movie is great", "tagger": "Ada lives in Oslo .", "teller": "".join(ROWS[:1] + ROWS[-30:])}
# what is chosen on the page is what the address says
CHOSEN = {"critic": (0, 3), "tagger": (3, 1), "teller": (1, 11)}


@pytest.fixture(scope="module")
def expected(readers):
    return {name: regard.load(readers / name).saliency(text) for name, text in TEXTS.items()}


@pytest.mark.parametrize("name", TEXTS)
def test_the_server_tells_the_models_own_numbers(answering, expected, name):
    trace, wanted = answering.trace(name, TEXTS[name]), expected[name]
    told = answering.get(f"/api/v1/traces/{trace['id']}/saliency").table
    assert (told["rows"], told["columns"], told["sides"]) == (list(wanted.rows), wanted.columns, list(wanted.sides))
    np.testing.assert_allclose(told["scores"], wanted.scores, rtol=1e-5, atol=1e-7)
    assert trace["kind"] == regard.load(answering.studio.root / name).recipe.kind()


def test_a_file_holds_the_same(answering, expected):
    for name, text in TEXTS.items():
        path = f"/api/v1/traces/{answering.trace(name, text)['id']}/export?view=saliency&format="
        assert answering.get(f"{path}svg").body.decode() == expected[name].svg()
        assert answering.get(f"{path}png").body.startswith(b"\x89PNG")
        assert json.loads(answering.get(f"{path}json").body)["scores"] == expected[name].to_dict()["scores"]
        _, *rows = csv.reader(io.StringIO(answering.get(f"{path}csv").body.decode()))
        assert [float(row[2]) for row in rows] == expected[name].scores.ravel().tolist()
        assert answering.get(f"{path}exe").status == 422


def test_a_series_is_no_name_of_a_file(answering, readers):
    """A text of one line that names a file is never opened: it would be any file of this machine."""
    said = answering.post(
        "/api/v1/traces", {"model": answering.models()["teller"], "text": f"{readers.parent}/load.csv"}
    )
    assert (said.status, said.error["code"]) == (422, "no-series")
    long = "".join(ROWS) * 20
    assert answering.post("/api/v1/traces", {"model": answering.models()["teller"], "text": long}).status == 413


def test_who_says_word_after_word_hangs_on_nothing_one_could_tell(server):
    trace = server.trace("transformer", "je suis")
    said = server.get(f"/api/v1/traces/{trace['id']}/saliency")
    assert (said.status, said.error["code"]) == (422, "no-saliency")


def test_a_model_that_was_trained_on_is_not_taken_for_the_one_that_answered(answering):
    trace = answering.trace("critic", TEXTS["critic"])
    path = answering.studio.shelf.folder / f"{trace['id']}.json"
    header = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(header | {"model": {**header["model"], "step": 1}}), encoding="utf-8")
    answering.studio.shelf._memory.clear()
    said = answering.get(f"/api/v1/traces/{trace['id']}/saliency")
    assert (said.status, said.error["code"]) == (409, "trained-on")


@pytest.fixture
def opened(browser, answering):
    with faultless(browser, answering.address) as page:
        yield page


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("name", TEXTS)
def test_words_bars_and_matrix_show_them(opened, answering, expected, name):
    wanted, (row, column) = expected[name], CHOSEN[name]
    trace = answering.trace(name, TEXTS[name])["id"]
    go(opened, answering, f"#/t/{trace}?tab=saliency&query={row}&key={column}")
    values = wanted.scores[row]
    tokens = opened.locator(".tokens .token").all()
    assert [token.locator("bdi").inner_text() for token in tokens] == [text.strip() for text in wanted.columns]
    assert all(abs(read(t.locator("small").inner_text()) - v) <= 0.0051 for t, v in zip(tokens, values))
    bars = opened.locator("table.candidates tbody tr").all()
    assert all(shows(bar.locator("td").first.inner_text(), v) for bar, v in zip(bars, values, strict=True))
    wide = [bar.locator(".meter").evaluate("(node) => node.getBoundingClientRect().width") for bar in bars]
    top = np.abs(wanted.scores).max()
    np.testing.assert_allclose(wide, 96 * np.abs(values) / top, atol=0.6)
    assert shows(opened.locator(".readout .value").first.inner_text(), values[column])
    if len(wanted.rows) > 1:
        opened.locator("summary", has_text="As a table").click()
        opened.wait_for_selector("figure table")
        cells = [[td.inner_text() for td in tr.locator("td").all()] for tr in opened.locator("figure tbody tr").all()]
        assert all(shows(a, b) for texts, row in zip(cells, wanted.scores, strict=True) for a, b in zip(texts, row))


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_keys_go_from_word_to_word_and_choose_one(opened, answering, expected):
    go(opened, answering, f"#/t/{answering.trace('critic', TEXTS['critic'])['id']}?tab=saliency")
    assert opened.get_by_role("tab", name="Gradients").count() == 0
    opened.locator(".tokens .token").first.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Enter"):
        opened.keyboard.press(key)
    assert "key=1" in opened.evaluate("location.hash")
    assert shows(opened.locator(".readout .value").inner_text(), expected["critic"].scores[0, 1])
    assert opened.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    opened.locator("main").focus()
    opened.keyboard.press("e")
    link = opened.get_by_role("dialog", name="Export").get_by_role("link", name="SVG")
    assert "view=saliency" in link.get_attribute("href")


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_a_series_is_read_from_a_file_and_its_end_is_given(opened, answering, tmp_path):
    (tmp_path / "long.csv").write_text("".join(ROWS[:1] + ROWS[1:] * 30 + ROWS[1:]), encoding="utf-8")
    go(opened, answering, "#/")
    opened.get_by_label("Model", exact=True).select_option(answering.models()["teller"])
    assert opened.get_by_label("Sentence", exact=True).is_hidden()
    opened.get_by_label("Series", exact=True).set_input_files(tmp_path / "long.csv")
    until(opened, "document.querySelector('.series .muted').textContent.endsWith('rows of 2 columns')")
    rows = int(opened.locator(".series .muted").inner_text().split()[0])
    assert 121 < rows < 31 * 121  # as many as may be sent
    (tmp_path / "short.csv").write_text(TEXTS["teller"], encoding="utf-8")
    opened.get_by_label("Series", exact=True).set_input_files(tmp_path / "short.csv")
    until(opened, "document.querySelector('.series .muted').textContent === '30 rows of 2 columns'")
    opened.get_by_role("button", name="Run").click()
    opened.wait_for_selector(".inspector")
    assert opened.locator(".inspector h1").inner_text() == "30 rows of 2 columns → 4 rows ahead"


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_nothing_grave_there(browser, answering, axe, theme, size):
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    page, found = context.new_page(), []
    try:
        for name, text in TEXTS.items():
            go(page, answering, f"#/t/{answering.trace(name, text)['id']}?tab=saliency&key=1")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            found += judged(page, axe, name)
    finally:
        context.close()
    assert found == []
