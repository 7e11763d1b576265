"""A trace as one HTML file: the page's modules, every number, and no requests."""

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
def recorded(folder):
    model = regard.load(folder / "transformer")
    with regard.record(model) as recording:
        answer = model.predict_text(TEXT)
    return recording, answer


@pytest.fixture(scope="module")
def whole(recorded):
    recording, answer = recorded
    return recording.html({"text": TEXT, "answer": answer, "model": {"id": "", "name": "transformer"}})


def test_the_file_contains_every_tensor_to_the_bit(recorded, whole):
    _, header, numbers, _ = parts(whole)
    at = 0
    for tensor, record in zip(header["tensors"], recorded[0].condense().records, strict=True):
        count = int(np.prod(tensor["shape"]))
        found = np.frombuffer(numbers, "<f4" if tensor["dtype"] == "f4" else "<i4", count, at).reshape(tensor["shape"])
        np.testing.assert_array_equal(found, record.data[0].numpy())
        at += 4 * count
    assert at == len(numbers) and header["omitted"] == []


def test_the_security_policy_allows_only_its_own_script_and_style(whole):
    policy, _, _, script = parts(whole)
    style = re.search(r"<style>(.*?)</style>", whole, re.DOTALL)[1]
    for text in (script, style):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    assert not re.search(r"(src|href)\s*=\s*[\"']?https?:", whole.replace("http://www.w3.org", ""))


def test_hostile_texts_are_escaped(recorded):
    text = recorded[0].html({"text": EVIL[0], "answer": EVIL[1], "model": {"id": "", "name": EVIL[3]}}, EVIL[3])
    _, header, _, script = parts(text)
    assert (header["text"], header["answer"]) == (EVIL[0], EVIL[1])
    assert text.count("<script") == 3 == text.count("</script>") and script == html.bundle(html.ENTRY)
    assert "<img" not in text.split("<script>")[0]


def test_tensors_that_do_not_fit_are_omitted_and_listed(recorded):
    recording, _ = recorded
    _, header, numbers, _ = parts(recording.html(max_bytes=20_000))
    kept = {tensor["name"] for tensor in header["tensors"]}
    assert len(numbers) <= 20_000 and header["omitted"] and not kept & set(header["omitted"])
    assert {name for name in (r.name for r in recording.condense().records) if name.endswith("weights")} <= kept


def test_a_loaded_recording_gives_the_same_page(recorded, tmp_path):
    short = recorded[0].condense()
    short.save(tmp_path / "a.safetensors")
    again = parts(Recording.load(tmp_path / "a.safetensors").html())
    assert again[2] == parts(short.html())[2]
    assert again[1]["sequences"] == parts(recorded[0].html())[1]["sequences"]


def test_a_notebook_gets_a_sandboxed_frame(recorded):
    shown = recorded[0]._repr_html_()
    assert shown.startswith('<div><iframe sandbox="allow-scripts" ') and "allow-same-origin" not in shown
    assert len(shown) < 2_000_000


def test_records_that_cannot_be_condensed_are_listed_in_a_notebook():
    strange = Recording(Trace(records=[Record("a", ("key",), torch.ones(2), {}, {"step": 1})]))
    assert "<td>a</td>" in strange._repr_html_()


def test_str_is_the_attention_as_text(recorded):
    assert str(recorded[0]) == recorded[0].attention().text() and "decoder.layers.1.cross.weights" in str(recorded[0])
    assert repr(recorded[0]).startswith("Recording(")


def test_circular_imports_and_unknown_forms_are_refused(monkeypatch):
    files = {"a.js": 'import { b } from "./c/b.js";\n', "c/b.js": 'import { a } from "../a.js";\n'}
    monkeypatch.setattr(html, "source", files.__getitem__)
    with pytest.raises(ValueError, match="circular import of modules: a -> c/b -> a"):
        html.bundle.__wrapped__("a.js")
    with pytest.raises(ValueError, match=r"x\.js imports or exports in a way that cannot be bundled"):
        html.module("x", "export default 1;\n")


def open_file(browser, path, width=1280):
    """A page opened from disk, its requests, and its errors."""
    page, requests, problems = browser.new_page(viewport={"width": width, "height": 900}), [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=standalone]", state="attached")
    return page, requests, problems


@pytest.mark.slow
def test_a_file_shows_the_numbers_of_the_model_without_requests(browser, recorded, whole, tmp_path):
    (tmp_path / "a.html").write_text(whole, encoding="utf-8")
    page, requests, problems = open_file(browser, tmp_path / "a.html")
    try:
        names = page.get_by_role("tab").all_inner_texts()
        tabs = ["Scene", "Attention", "Generation", "Predictions", "Lens", "Decode", "States", "Insight", "Numbers"]
        assert names == tabs
        for name in names:
            page.get_by_role("tab", name=name).click()
            page.wait_for_selector(f"#panel[aria-labelledby=tab-{name.lower()}]:not([aria-busy]) > *")
        page.get_by_role("tab", name="Insight").click()
        page.wait_for_selector("#panel[aria-labelledby=tab-insight]:not([aria-busy]) .empty")
        assert "this page was saved without it" in page.locator("#panel").inner_text()  # not an endless wait
        page.get_by_role("tab", name="Numbers").click()
        page.get_by_label("Tensor", exact=True).select_option("decoder.layers.1.cross.weights")
        page.wait_for_selector(".scroll[aria-label='decoder.layers.1.cross.weights as a table']")
        values = recorded[0].condense().find("decoder.layers.1.cross.weights")[0].data[0, 0].numpy()
        cells = page.locator("button.cell").all()
        assert len(cells) == values.size
        assert all(shows(cell.inner_text(), float(value)) for cell, value in zip(cells, values.ravel()))
        page.get_by_role("tab", name="Decode").click()
        page.wait_for_selector(".candidates")
        assert page.locator(".candidates button.small").count() == 0  # there is no server to run another pass
        assert (requests, problems) == ([(tmp_path / "a.html").as_uri()], [])
    finally:
        page.close()


@pytest.mark.slow
def test_hostile_texts_stay_text_in_the_file_and_in_a_frame(browser, recorded, tmp_path):
    recording = recorded[0].condense()
    words = {"source": [EVIL], "target": [EVIL], "read": [EVIL]}
    cross = recording.find("decoder.layers.1.cross.weights")[0]
    data = torch.rand(1, 2, len(EVIL), len(EVIL)).softmax(-1)
    context = {**words, "condensed": True}
    labels = {"query": words["target"], "key": words["source"]}
    evil = Recording(Trace(records=[Record(cross.name, cross.axes, data, labels, context)]))
    header = {"text": EVIL[0], "answer": EVIL[3], "model": {"id": "", "name": EVIL[0]}}
    (tmp_path / "a.html").write_text(evil.html(header), encoding="utf-8")
    notebook = f"<!doctype html><meta charset=utf-8><title>n</title>{html.iframe(evil.html(header))}"
    (tmp_path / "n.html").write_text(notebook, encoding="utf-8")
    page, requests, problems = open_file(browser, tmp_path / "a.html", 390)
    try:
        assert page.locator("#app script, #app img, #app b b").count() == 0
        assert page.locator(".inspector h1").inner_text().startswith("</script><script>alert(1)")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        page.goto((tmp_path / "n.html").as_uri())
        frame = page.frame_locator("iframe")
        frame.locator("html[data-ready=standalone]").wait_for(state="attached")
        frame.get_by_role("tab", name="Numbers").click()
        frame.locator("button.cell").first.wait_for()
        assert problems == [] and all(url.startswith("file:") for url in requests)
    finally:
        page.close()


def displayed_norms(page):
    page.get_by_role("tab", name="Gradients").click()
    page.locator("summary", has_text="As a table").click()
    page.wait_for_selector("figure table")
    return [[td.inner_text() for td in tr.locator("td").all()] for tr in page.locator("figure tbody tr").all()]


@pytest.mark.slow
def test_an_exported_file_has_gradients_at_the_default_and_at_the_selected_states(browser, server, folder, tmp_path):
    trace, name = server.trace("seq2seq", TEXT), "decoder.stack.layers.1.hidden"
    response = server.get(f"/api/v1/traces/{trace['id']}/export?format=html&tensor={name}")
    (tmp_path / "a.html").write_bytes(response.body)
    model = regard.load(folder / "seq2seq")
    page, requests, problems = open_file(browser, tmp_path / "a.html")
    try:
        teacher_forced = model.teacher_forced(TEXT)
        views = {
            view.name: view
            for view in (teacher_forced.gradients(model.module), teacher_forced.gradients(model.module, name))
        }
        for states in (name, next(iter(views))):
            page.get_by_role("tab", name="Gradients").click()
            page.get_by_label("States", exact=True).select_option(states)
            page.wait_for_selector(f".matrix[aria-label*='{states}']")
            cells, norms = displayed_norms(page), views[states].norms
            assert np.shape(cells) == norms.shape
            assert all(shows(a, float(b)) for row, values in zip(cells, norms) for a, b in zip(row, values))
        assert page.get_by_label("States", exact=True).locator("option").all_inner_texts() == list(views)
        assert (requests, problems) == ([(tmp_path / "a.html").as_uri()], [])
    finally:
        page.close()


@pytest.mark.slow
def test_an_exported_file_has_the_saliency(browser, single_pass_server, readers, tmp_path):
    text = "this movie is great"
    trace = single_pass_server.trace("critic", text)
    (tmp_path / "a.html").write_bytes(single_pass_server.get(f"/api/v1/traces/{trace['id']}/export?format=html").body)
    page, _, problems = open_file(browser, tmp_path / "a.html")
    try:
        page.get_by_role("tab", name="Saliency").click()
        page.wait_for_selector("table.candidates")
        cells = [row.locator("td").first.inner_text() for row in page.locator("table.candidates tbody tr").all()]
        values = regard.load(readers / "critic").saliency(text).scores[0]
        assert all(shows(a, float(b)) for a, b in zip(cells, values, strict=True)) and problems == []
    finally:
        page.close()
