"""Details of the page that a reader meets: the top bar between phone and desktop, titles and sentences by task."""

import re

import pytest

from browsing import TEXT, go, open_page

pytestmark = pytest.mark.slow
OVERLAPS = """() => {
    const controls = [...document.querySelectorAll(".topbar button, .topbar select, .topbar input, .topbar a")];
    const boxes = controls.filter((e) => e.checkVisibility() && !e.matches(".skip"))
        .map((e) => [e.textContent.trim() || e.ariaLabel, e.getBoundingClientRect()]);
    const found = [];
    for (const [i, [a, p]] of boxes.entries())
        for (const [b, q] of boxes.slice(i + 1))
            if (Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1
                && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 1) found.push(`${a} / ${b}`);
    return found;
}"""
CUT = "() => { const e = document.querySelector('.scene-view'); return e.scrollWidth - e.clientWidth; }"


def scene(page, server, trace):
    """Text of the scene of a trace."""
    go(page, server, f"#/t/{trace['id']}?tab=scene")
    page.wait_for_selector(".scene-picture")
    return page.locator(".scene").inner_text()


def image_trace(server, run, image):
    response = server.post("/api/v1/traces", {"model": server.models()[run], "image": image})
    assert response.status == 201, response.body
    return response.table


@pytest.mark.parametrize("width", [640, 800])
def test_the_controls_of_the_top_bar_do_not_cover_each_other(browser, caption_server, single_pass_server, width):
    """640 pixels are a window of 1280 at a zoom of 200 %."""
    series = single_pass_server.get(f"/api/v1/models/{single_pass_server.models()['teller']}/example").table["text"]
    cases = (
        (caption_server, image_trace(caption_server, "caption", "shapes#test/3")),
        (caption_server, image_trace(caption_server, "clips", "clips#test/3")),
        (single_pass_server, single_pass_server.trace("teller", series)),
    )
    for server, trace in cases:
        with open_page(browser, server.address) as page:
            page.set_viewport_size({"width": width, "height": 450})
            go(page, server, f"#/t/{trace['id']}")
            assert page.evaluate(OVERLAPS) == []
            assert page.locator(".topbar").bounding_box()["height"] < 180


@pytest.mark.parametrize("width", [640, 800, 900])
def test_the_picture_of_two_stacks_fits_a_window_between_phone_and_desktop(page, server, width):
    page.set_viewport_size({"width": width, "height": 700})
    scene(page, server, server.trace("transformer", TEXT))
    assert page.evaluate(CUT) <= 0


def test_the_scene_names_what_its_columns_are(browser, single_pass_server, caption_server):
    series = single_pass_server.get(f"/api/v1/models/{single_pass_server.models()['teller']}/example").table["text"]
    with open_page(browser, single_pass_server.address) as page:
        text = scene(page, single_pass_server, single_pass_server.trace("teller", series))
        assert "each column is a row of the series" in text
        assert "Rows of the series" in text and "Source tokens" not in text
        assert re.search(r"-12\s*-11\s*-10", text)  # as in Saliency
        text = scene(page, single_pass_server, single_pass_server.trace("critic", "it is great"))
        assert "each column is a token" in text and "Input tokens" in text
    with open_page(browser, caption_server.address) as page:
        text = scene(page, caption_server, image_trace(caption_server, "position", "clips#test/3"))
        assert "each column is a frame of the clip" in text
        assert "First frame" in text and "Predicted numbers" in text
        text = scene(page, caption_server, image_trace(caption_server, "caption", "shapes#test/3"))
        assert "The encoder reads the image" in text


def test_rows_of_a_series_have_the_same_numbers_in_every_tab(browser, single_pass_server):
    series = single_pass_server.get(f"/api/v1/models/{single_pass_server.models()['teller']}/example").table["text"]
    trace = single_pass_server.trace("teller", series)
    found = {}
    with open_page(browser, single_pass_server.address) as page:
        for tab in ("states", "saliency"):
            go(page, single_pass_server, f"#/t/{trace['id']}?tab={tab}")
            page.wait_for_selector(".tokens.colored .token")
            labels = page.locator(".tokens.colored .token > :first-child").all_inner_texts()
            found[tab] = [label.strip() for label in labels]
    assert found["states"] == found["saliency"] == [str(i) for i in range(-12, 0)]


def test_the_tour_counts_recurrent_layers_and_not_the_stages_of_images(browser, caption_server):
    trace = image_trace(caption_server, "position", "clips#test/3")
    with open_page(browser, caption_server.address) as page:
        go(page, caption_server, f"#/t/{trace['id']}?tour=gates")
        page.wait_for_selector(".tour-text")
        stops = page.locator(".tour select option").all_inner_texts()
        assert len(stops) > 5 and not any(stop.endswith(": Layers") for stop in stops)


def test_a_network_of_convolutions_has_no_insight_tab(browser, image_server):
    for run, shown in (("cnn", False), ("vit", True)):
        trace = image_trace(image_server, run, "digits#test/7")
        with open_page(browser, image_server.address) as page:
            go(page, image_server, f"#/t/{trace['id']}")
            assert ("Insight" in page.get_by_role("tab").all_inner_texts()) == shown


def test_patches_are_drawn_in_their_image(browser, image_server):
    trace = image_trace(image_server, "vit", "digits#test/7")
    with open_page(browser, image_server.address) as page:
        go(page, image_server, f"#/t/{trace['id']}?tab=scene&at=encoder.patches")
        page.wait_for_selector(".scene-grid", state="attached")
        assert "Patches: 4 × 4, read row by row" in page.locator(".scene-picture").text_content()


def test_blanks_are_visible_in_the_gradients_of_characters(browser, language_server):
    trace = language_server.trace("gpt", "The wind")
    with open_page(browser, language_server.address) as page:
        go(page, language_server, f"#/t/{trace['id']}?tab=gradients")
        page.wait_for_selector(".chart-card")
        page.locator("summary", has_text="As a table").first.click()
        assert "␣" in page.locator("table.numbers tbody").first.inner_text()
        assert page.locator(".chart-card h2").inner_text() == "Decay with distance"
        assert page.locator(".chart-card output").inner_text().startswith("distance 6: mean ")
