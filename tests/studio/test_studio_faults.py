"""Bad input and limited browsers: each gets a message in its place, and the rest of the page works."""

import os

import pytest

from browsing import SIZES, TABS, TEXT, go, open_page, screen_addresses, until
from regard.studio import slices

pytestmark = pytest.mark.slow
NO_CANVAS = "HTMLCanvasElement.prototype.getContext = () => null;"
FITS = "document.documentElement.scrollWidth <= innerWidth"


def test_a_text_that_a_model_cannot_read_is_answered_and_the_page_goes_on(browser, language_server):
    with open_page(browser, language_server.address) as page:
        go(page, language_server, "#/")
        for model, label, text, message in (
            ("fill", "Text with [MASK]", "the cat eats fish today .", "there is no [MASK] to fill"),
            ("fill", "Text with [MASK]", "the " * 40 + "[MASK]", "this model reads at most 24"),
            ("gpt", "Beginning of a text", "The wind " * 200, "the limit is 256"),
        ):
            page.get_by_label("Model", exact=True).select_option(label=model)
            page.get_by_label(label, exact=True).fill(text)
            page.get_by_role("button", name="Run").click()
            page.locator(".notice", has_text=message).wait_for()
            assert page.get_by_role("button", name="Run").is_enabled()
        page.get_by_label("Model", exact=True).select_option(label="bert")
        page.get_by_label("Sentence", exact=True).fill("it is lovely")
        page.get_by_role("button", name="Run").click()
        page.wait_for_selector(".inspector h1")
        assert page.locator(".notice").count() == 0


def older_header(header, name):
    """What a header of an earlier version may lack: the graph, roles, predictions, the beam, names along axes."""
    lacking = ("graph", "head_roles", "predictions", "beam", "lens_tokens", "windows", "parts", "supported_changes")
    tensors = [{key: row[key] for key in row if key not in ("names", "backwards")} for row in header["tensors"]]
    return {key: header[key] for key in header if key not in lacking} | {
        "id": name,
        "format": "trace/1",
        "tensors": tensors,
    }


def test_a_trace_of_an_earlier_version_is_shown_as_far_as_it_goes(page, server):
    store, trace = server.studio.trace_store, server.trace("transformer", TEXT)
    stored = store.get(trace["id"])
    store.put(stored.recording, older_header(stored.header, "oldheader0"), "oldheader0")
    for tab in ("attention", "decode", "states", "gradients", "numbers", "scene"):
        go(page, server, f"#/t/oldheader0?tab={tab}")
        assert "earlier version (trace/1)" in page.locator(".trace-note").inner_text()
        page.wait_for_selector(".panel canvas, .panel table, .panel .empty")
        assert page.locator(".panel [role=alert]").count() == 0, tab
    assert "run the sentence again for the picture" in page.locator(".panel .empty").inner_text()


def test_of_a_tensor_that_is_too_large_a_part_is_sent_and_all_numbers_can_be_read(page, server, monkeypatch):
    monkeypatch.setattr(slices, "MAX_NUMBERS", 700)
    trace, name = server.trace("transformer", TEXT), "logits"
    steps, words = next(tensor["shape"] for tensor in trace["tensors"] if tensor["name"] == name)
    sent = 700 // words
    assert 1 <= sent < steps
    for tab in TABS:
        go(page, server, f"#/t/{trace['id']}?tab={tab}&tensor={name}")
        assert f"logits (step 0 to {sent - 1} of {steps})" in page.locator(".trace-note").inner_text()
        page.wait_for_selector(".panel canvas, .panel table, .panel svg")
        assert page.locator(".panel [role=alert]").count() == page.locator(".notice").count() == 0, tab
    page.get_by_label("Rows: go to").or_(page.get_by_label("Columns: go to")).last.fill(str(words - 1))
    page.keyboard.press("Enter")
    page.locator(".pager", has_text=f"to {words - 1} of {words}").wait_for()
    page.locator("summary", has_text="Histogram").click()
    page.wait_for_selector("details.card svg, details.card canvas")


def test_a_browser_without_canvases_shows_the_numbers(browser, server):
    trace = server.trace("transformer", TEXT, beam=4)
    with open_page(browser, server.address) as page:
        page.add_init_script(NO_CANVAS)
        for address in screen_addresses(server):
            go(page, server, address)
            assert "does not draw on canvases" in page.locator(".page-note").inner_text()
            assert page.locator("[role=alert]", has_text="Error").count() == 0, address
        go(page, server, f"#/t/{trace['id']}?tab=attention&tensor=decoder.layers.1.cross.weights&head=1")
        page.locator("summary", has_text="As a table").first.click()
        page.wait_for_selector("figure table td")
        go(page, server, f"#/t/{trace['id']}?tab=scene")
        page.wait_for_selector(".scene-title")
        page.get_by_role("button", name="PNG").click()
        assert "save the picture as svg" in page.locator(".notice").inner_text().lower()


def file_stamps(paths):
    return [(path, os.lstat(path).st_mtime_ns, os.lstat(path).st_size) for path in paths]


def test_a_folder_that_cannot_be_written_is_read_by_every_screen_at_twice_the_size(browser, read_only):
    """200 %: half the width in CSS pixels, each of them two pixels of the screen; and the zoom of a style sheet."""
    server, paths = read_only
    before = file_stamps(paths)
    width, height = SIZES["desktop"]
    context = browser.new_context(viewport={"width": width // 2, "height": height // 2}, device_scale_factor=2)
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    for address in screen_addresses(server):
        page.set_viewport_size({"width": width // 2, "height": height // 2})
        go(page, server, address)
        assert page.evaluate(FITS), address
        assert page.locator(".notice, .panel [role=alert]").count() == 0, address
        if page.get_by_role("tab").count():
            chosen = page.locator("[role=tab][aria-selected=true]").bounding_box()
            bar = page.locator(".tabs").bounding_box()
            assert bar["x"] - 1 <= chosen["x"] and chosen["x"] + chosen["width"] <= bar["x"] + bar["width"] + 1, address
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("document.documentElement.style.zoom = 2")
        page.wait_for_timeout(100)
        assert page.evaluate(FITS), f"{address} zoomed"
        page.evaluate("document.documentElement.style.zoom = ''")
    context.close()
    assert errors == []
    assert sorted((paths[0].parent).rglob("*")) == paths and file_stamps(paths) == before


def test_a_new_screen_starts_at_its_top_and_back_leads_to_where_one_was(page, server):
    trace = server.trace("transformer", TEXT)["id"]
    go(page, server, "#/")
    assert page.evaluate("document.activeElement.tagName") == "BODY"  # the first screen leaves the focus alone
    go(page, server, f"#/t/{trace}?tab=states")
    page.wait_for_selector(".panel canvas")
    page.evaluate("document.getElementById('app').style.minHeight = '4000px'")
    page.evaluate("scrollTo(0, 900)")
    until(page, "history.state?.scroll === 900")  # the position is saved after a moment
    page.locator(".brand").focus()
    page.keyboard.press("Enter")
    until(page, "document.activeElement.textContent === 'What did the model really do?'")
    assert page.evaluate("scrollY") == 0
    heading, bar = page.locator("h1").bounding_box(), page.locator(".topbar").bounding_box()
    assert heading["y"] >= bar["y"] + bar["height"]
    page.go_back()
    page.wait_for_selector(".inspector h1")
    until(page, "scrollY === 900")
    assert page.evaluate("document.activeElement.closest('h1') !== null")
    page.get_by_role("tab", name="Numbers").dispatch_event("click")  # out of sight: the tabs are brought back
    page.wait_for_selector(".panel table.numbers")
    until(page, "scrollY < 400")
    tabs, bar = page.locator(".tabs").bounding_box(), page.locator(".topbar").bounding_box()
    assert tabs["y"] >= bar["y"] + bar["height"] - 1
    page.go_back()
    until(page, "scrollY === 900 && document.querySelector('#tab-states').ariaSelected === 'true'")


def test_back_from_attention_with_a_chosen_head_leads_to_the_scene_without_an_error(page, server):
    trace = server.trace("transformer", TEXT)["id"]
    go(page, server, f"#/t/{trace}?tab=scene")
    page.get_by_role("tab", name="Attention").click()
    page.get_by_label("Attention", exact=True).last.select_option("decoder.layers.0.cross.weights")
    page.wait_for_selector(".heads canvas")
    page.go_back()
    page.wait_for_selector(".scene-title")
    page.go_forward()
    page.wait_for_selector(".heads canvas")
    page.goto(f"{server.address}/#/t/{trace}?tab=attention")  # no tensor is named: the last cross-attention
    until(page, "document.querySelector('.field select').value === 'decoder.layers.1.cross.weights'")
    assert page.locator(".notice").count() == 0
