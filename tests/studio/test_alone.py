"""A trace as one HTML file: the page's own modules, every number, and nothing from anywhere."""

import base64
import hashlib
import json
import re

import numpy as np
import pytest
import torch

import regard
from browsing import TEXT, shows
from regard.look import Recording, html
from regard.trace import Record, Trace

EVIL = ["</script><script>alert(1)</script>", "<!--", "]]>", '"><img src=x onerror=alert(1)>', "&lt;b&gt;", "\u202e<b>"]


def parts(text):
    """The policy, the header, the numbers and the script of a page."""
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1]
    header = json.loads(re.search(r'id="trace-header">(.*?)</script>', text, re.DOTALL)[1])
    numbers = base64.b64decode(re.search(r'id="trace-numbers">(.*?)</script>', text, re.DOTALL)[1])
    script = re.search(r"<script>(.*)</script>", text, re.DOTALL)[1]
    return policy, header, numbers, script


@pytest.fixture(scope="module")
def seen(folder):
    model = regard.load(folder / "transformer")
    with regard.record(model) as recording:
        answer = model.answer(TEXT)
    return recording, answer


@pytest.fixture(scope="module")
def whole(seen):
    recording, answer = seen
    return recording.html({"text": TEXT, "answer": answer, "model": {"id": "", "name": "transformer"}})


def test_every_tensor_is_in_the_file_bit_for_bit(seen, whole):
    _, header, numbers, _ = parts(whole)
    at = 0
    for tensor, record in zip(header["tensors"], seen[0].condensed().records, strict=True):
        count = int(np.prod(tensor["shape"]))
        found = np.frombuffer(numbers, "<f4" if tensor["dtype"] == "f4" else "<i4", count, at).reshape(tensor["shape"])
        np.testing.assert_array_equal(found, record.data[0].numpy())
        at += 4 * count
    assert at == len(numbers) and header["left"] == []


def test_its_policy_lets_nothing_in_but_its_own_script_and_style(whole):
    policy, _, _, script = parts(whole)
    style = re.search(r"<style>(.*?)</style>", whole, re.DOTALL)[1]
    for text in (script, style):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert not re.search(r"(src|href)\s*=\s*[\"']?https?:", whole.replace("http://www.w3.org", ""))


def test_no_text_can_leave_its_place(seen):
    text = seen[0].html({"text": EVIL[0], "answer": EVIL[1], "model": {"id": "", "name": EVIL[3]}}, EVIL[3])
    _, header, _, script = parts(text)
    assert (header["text"], header["answer"]) == (EVIL[0], EVIL[1])
    assert text.count("<script") == 3 == text.count("</script>") and script == html.bundle(html.ENTRY)
    assert "<img" not in text.split("<script>")[0]


def test_what_does_not_fit_is_left_out_and_named(seen):
    recording, _ = seen
    _, header, numbers, _ = parts(recording.html(room=20_000))
    kept = {tensor["name"] for tensor in header["tensors"]}
    assert len(numbers) <= 20_000 and header["left"] and not kept & set(header["left"])
    assert {name for name in (r.name for r in recording.condensed().records) if name.endswith("weights")} <= kept


def test_a_recording_out_of_a_file_gives_the_same_page(seen, tmp_path):
    short = seen[0].condensed()
    short.save(tmp_path / "a.safetensors")
    again = parts(Recording.load(tmp_path / "a.safetensors").html())
    assert again[2] == parts(short.html())[2]
    assert again[1]["sequences"] == parts(seen[0].html())[1]["sequences"]


def test_a_notebook_gets_a_frame_that_reaches_nothing_around_it(seen):
    shown = seen[0]._repr_html_()
    assert shown.startswith('<div><iframe sandbox="allow-scripts" ') and "allow-same-origin" not in shown
    assert len(shown) < 2_000_000


def test_records_that_nobody_can_join_are_still_listed_in_a_notebook():
    strange = Recording(Trace(records=[Record("a", ("key",), torch.ones(2), {}, {"step": 1})]))
    assert "<td>a</td>" in strange._repr_html_()


def test_a_terminal_gets_the_attention_as_text(seen):
    assert str(seen[0]) == seen[0].attention().text() and "decoder.layers.1.cross.weights" in str(seen[0])
    assert repr(seen[0]).startswith("Recording(")


def test_modules_in_a_circle_and_unknown_forms_are_refused(monkeypatch):
    files = {"a.js": 'import { b } from "./b.js";\n', "b.js": 'import { a } from "./a.js";\n'}
    monkeypatch.setattr(html, "source", files.__getitem__)
    with pytest.raises(ValueError, match="in a circle: a -> b -> a"):
        html.bundle.__wrapped__("a.js")
    with pytest.raises(ValueError, match=r"x\.js imports or exports in a way that cannot be joined"):
        html.module("x", "export default 1;\n")


def opened(browser, path, width=1280):
    """A page from the disk; what it asked for, and what went wrong."""
    page, asked, wrong = browser.new_page(viewport={"width": width, "height": 900}), [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=alone]", state="attached")
    return page, asked, wrong


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_from_a_disk_it_shows_the_models_numbers_and_asks_nobody(browser, seen, whole, tmp_path):
    (tmp_path / "a.html").write_text(whole, encoding="utf-8")
    page, asked, wrong = opened(browser, tmp_path / "a.html")
    try:
        names = page.get_by_role("tab").all_inner_texts()
        assert names == ["Story", "Attention", "Decode", "States", "Numbers"]
        for name in names:
            page.get_by_role("tab", name=name).click()
            page.wait_for_selector(f"#panel[aria-labelledby=tab-{name.lower()}]:not([aria-busy]) > *")
        page.get_by_label("Tensor", exact=True).select_option("decoder.layers.1.cross.weights")
        page.wait_for_selector(".scroll[aria-label='decoder.layers.1.cross.weights as a table']")
        values = seen[0].condensed().find("decoder.layers.1.cross.weights")[0].data[0, 0].numpy()
        cells = page.locator("button.cell").all()
        assert len(cells) == values.size
        assert all(shows(cell.inner_text(), float(value)) for cell, value in zip(cells, values.ravel()))
        page.get_by_role("tab", name="Decode").click()
        page.wait_for_selector(".candidates")
        assert page.locator(".candidates button.small").count() == 0  # nobody could be asked for another pass
        assert (asked, wrong) == ([(tmp_path / "a.html").as_uri()], [])
    finally:
        page.close()


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_hostile_words_stay_words_in_the_file_and_in_a_frame(browser, seen, tmp_path):
    recording = seen[0].condensed()
    words = {"source": [EVIL], "target": [EVIL], "read": [EVIL]}
    cross = recording.find("decoder.layers.1.cross.weights")[0]
    data = torch.rand(1, 2, len(EVIL), len(EVIL)).softmax(-1)
    scene = {**words, "condensed": True}
    labels = {"query": words["target"], "key": words["source"]}
    evil = Recording(Trace(records=[Record(cross.name, cross.axes, data, labels, scene)]))
    told = {"text": EVIL[0], "answer": EVIL[3], "model": {"id": "", "name": EVIL[0]}}
    (tmp_path / "a.html").write_text(evil.html(told), encoding="utf-8")
    notebook = f"<!doctype html><meta charset=utf-8><title>n</title>{html.framed(evil.html(told))}"
    (tmp_path / "n.html").write_text(notebook, encoding="utf-8")
    page, asked, wrong = opened(browser, tmp_path / "a.html", 390)
    try:
        assert page.locator("#app script, #app img, #app b b").count() == 0
        assert page.locator(".inspector h1").inner_text().startswith("</script><script>alert(1)")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.goto((tmp_path / "n.html").as_uri())
        frame = page.frame_locator("iframe")
        frame.locator("html[data-ready=alone]").wait_for(state="attached")
        frame.get_by_role("tab", name="Numbers").click()
        frame.locator("button.cell").first.wait_for()
        assert wrong == [] and all(url.startswith("file:") for url in asked)
    finally:
        page.close()


def shown_norms(page):
    page.get_by_role("tab", name="Gradients").click()
    page.locator("summary", has_text="As a table").click()
    page.wait_for_selector("figure table")
    return [[td.inner_text() for td in tr.locator("td").all()] for tr in page.locator("figure tbody tr").all()]


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_the_studios_file_has_the_gradients_at_the_usual_and_at_the_chosen_states(browser, server, folder, tmp_path):
    trace, name = server.trace("seq2seq", TEXT), "decoder.stack.layers.1.hidden"
    said = server.get(f"/api/v1/traces/{trace['id']}/export?format=html&tensor={name}")
    (tmp_path / "a.html").write_bytes(said.body)
    model = regard.load(folder / "seq2seq")
    page, asked, wrong = opened(browser, tmp_path / "a.html")
    try:
        reading = model.reading(TEXT)
        views = {view.name: view for view in (reading.gradients(model.module), reading.gradients(model.module, name))}
        for wanted in (name, next(iter(views))):
            page.get_by_role("tab", name="Gradients").click()
            page.get_by_label("States", exact=True).select_option(wanted)
            page.wait_for_selector(f".matrix[aria-label*='{wanted}']")
            cells, norms = shown_norms(page), views[wanted].norms
            assert np.shape(cells) == norms.shape
            assert all(shows(a, float(b)) for row, values in zip(cells, norms) for a, b in zip(row, values))
        assert page.get_by_label("States", exact=True).locator("option").all_inner_texts() == list(views)
        assert (asked, wrong) == ([(tmp_path / "a.html").as_uri()], [])
    finally:
        page.close()


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_the_studios_file_has_what_an_answer_hung_on(browser, answering, readers, tmp_path):
    text = "this movie is great"
    trace = answering.trace("critic", text)
    (tmp_path / "a.html").write_bytes(answering.get(f"/api/v1/traces/{trace['id']}/export?format=html").body)
    page, _, wrong = opened(browser, tmp_path / "a.html")
    try:
        page.get_by_role("tab", name="Saliency").click()
        page.wait_for_selector("table.candidates")
        cells = [row.locator("td").first.inner_text() for row in page.locator("table.candidates tbody tr").all()]
        values = regard.load(readers / "critic").saliency(text).scores[0]
        assert all(shows(a, float(b)) for a, b in zip(cells, values, strict=True)) and wrong == []
    finally:
        page.close()
