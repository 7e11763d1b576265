"""The tour: its stops follow from the graph, its numbers are recorded ones; play backward; labels that were decoded."""

import pytest

from browsing import SIZES, TEXT, axe_violations, go, shows, until

STOP = "document.querySelector('.tour')?.dataset.stop"
TRANSFORMER = [
    "tokens", "embedding", "position", "layers", "query", "weights", "heads", "residual", "norm", "feed-forward",
    "memory", "decoder", "cross-attention", "logits", "softmax", "decoding",
]  # fmt: skip
RNNSEARCH = [
    "tokens", "embedding", "unrolled", "step", "gates", "candidate", "both-directions", "memory", "bridge", "decoder",
    "alignment", "cross-attention", "logits", "softmax", "decoding", "gradients",
]  # fmt: skip
SEQ2SEQ = [
    "tokens", "embedding", "unrolled", "step", "gates", "cell", "sequential", "layers", "bridge", "decoder", "logits",
    "softmax", "decoding", "gradients",
]  # fmt: skip
READS = ["tokens", "embedding", "position", "layers", "query", "weights", "heads"]
SUBLAYERS = ["residual", "norm", "feed-forward"]


def visit(page, server, trace):
    """Names of all stops, in their order, by the key for the next step; every number is compared with its record."""
    recording = server.studio.trace_store.get(trace["id"]).recording
    go(page, server, f"#/t/{trace['id']}?tour=")
    page.wait_for_selector(".tour[data-stop]")
    names, count = [], page.get_by_label("Stop", exact=True).locator("option").count()
    for _ in range(count):
        names.append(page.evaluate(STOP))
        until(page, "(name) => location.hash.includes(`tour=${name}`)", names[-1])
        for number in page.locator(".tour-number").all():
            name, _, rest = number.get_attribute("data-number").rstrip("]").partition("[")
            places = [int(part) if part.isdigit() else slice(None) for part in rest.split(",")]
            recorded = recording.find(name)[0].data[0][tuple(places)].double().mean().item()
            assert float(number.get_attribute("data-exact")) == pytest.approx(recorded, rel=1e-5, abs=1e-7)
            assert shows(number.inner_text(), recorded)
        assert not page.locator(".tour-text", has_text="undefined").count()
        assert not page.locator(".tour-text", has_text="NaN").count()
        if len(names) < count:
            page.keyboard.press(".")
            until(page, f"(name) => {STOP} !== name", names[-1])
    return names


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "expected"), [("transformer", TRANSFORMER), ("rnnsearch", RNNSEARCH), ("seq2seq", SEQ2SEQ)]
)
def test_a_tour_visits_what_its_model_has_and_shows_recorded_numbers(page, server, family, expected):
    page.set_viewport_size({"width": 1280, "height": 900})
    assert visit(page, server, server.trace(family, TEXT)) == expected
    page.get_by_role("button", name="End", exact=True).click()
    page.wait_for_selector(".tour", state="hidden")


@pytest.mark.slow
def test_models_that_read_only_have_tours_without_a_decoder(browser, language_server, single_pass_server):
    from browsing import open_page

    with open_page(browser, language_server.address) as page:
        text = {"gpt": "The wind", "fill": "it [MASK] great"}
        gpt, fill = (visit(page, language_server, language_server.trace(name, text[name])) for name in ("gpt", "fill"))
    assert gpt == [*READS, "causal", *SUBLAYERS, "logits", "softmax", "decoding"]
    assert fill == [*READS, *SUBLAYERS, "softmax"]
    with open_page(browser, single_pass_server.address) as page:
        critic = visit(page, single_pass_server, single_pass_server.trace("critic", "it is lovely"))
    assert critic[-2:] == ["pooling", "softmax"] and "decoding" not in critic


@pytest.mark.slow
def test_stops_have_addresses_lessons_and_a_lit_part_and_work_on_a_phone(page, server, axe):
    trace = server.trace("transformer", TEXT)
    for size, theme in (("desktop", "light"), ("phone", "dark")):
        page.set_viewport_size(dict(zip(("width", "height"), SIZES[size])))
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        go(page, server, f"#/t/{trace['id']}?tour=cross-attention")
        page.wait_for_selector(".tour[data-stop='cross-attention']")
        lit = page.locator(".scene-framed").first
        lit.wait_for()
        until(page, "() => document.querySelector('.scene-framed').getBoundingClientRect().top < innerHeight - 40")
        panel = page.locator(".tour").bounding_box()
        assert lit.bounding_box()["y"] >= panel["y"] + panel["height"]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert axe_violations(page, axe, f"tour {size} {theme}") == []
        assert page.locator(".tour-foot a").get_attribute("href").startswith("#/learn/")
        page.get_by_role("button", name="Next", exact=True).click()
        page.wait_for_selector(".tour[data-stop='logits']")
        page.get_by_label("Stop", exact=True).select_option("query")
        page.wait_for_selector(".tour[data-stop='query']")
        until(page, "() => document.querySelector('.scene').dataset.drawn === 'encoder.layers.0.attention'")
        page.locator(".tour-number").first.click()
        page.wait_for_selector(".drawer .big")
        for stop in ("query", "logits", "cross-attention"):
            page.go_back()
            page.wait_for_selector(f".tour[data-stop='{stop}']")
        page.go_forward()
        page.wait_for_selector(".tour[data-stop='logits']")


@pytest.mark.slow
def test_a_tour_of_an_untrained_model_says_so_and_a_trace_without_a_graph_has_none(page, server):
    store = server.studio.trace_store
    trace = server.trace("transformer", TEXT)
    stored = store.get(trace["id"])
    random = {**stored.header, "model": {**trace["model"], "untrained": True}}
    old = {**stored.header, "graph": None, "format": "trace/1"}
    for header, name in ((random, "random0000"), (old, "oldtrace00")):
        store.put(stored.recording, {**header, "id": name}, name)
    go(page, server, "#/t/random0000?tour=tokens")
    assert "was not trained" in page.locator(".tour-warning").inner_text()
    go(page, server, "#/t/oldtrace00?tour=tokens")
    assert "run the sentence again" in page.locator(".panel .empty").inner_text()
    page.get_by_role("tab", name="Attention").click()
    page.wait_for_selector(".panel canvas")


@pytest.mark.slow
def test_gradients_are_played_backward_with_the_norms_of_the_gradients_tab(page, server):
    trace = server.trace("seq2seq", TEXT)
    go(page, server, f"#/t/{trace['id']}")
    page.get_by_role("button", name="Gradients backward").click()
    page.wait_for_selector(".scene-gradient")
    text = page.locator(".transport .muted")
    name = "decoder.stack.layers.1.hidden"
    norms = server.get(f"/api/v1/traces/{trace['id']}/gradients?name={name}").table["norms"][-1]
    for norm in reversed(norms):  # time step by time step, from the last
        assert shows(text.inner_text().rpartition(": ")[2], norm)
        page.keyboard.press(".")
    assert "decoder, layer 0" in text.inner_text()
    assert page.locator(".scene-gradient").count() == len(norms) + 1
    page.get_by_role("button", name="Forward", exact=True).click()
    page.wait_for_selector(".scene-gradient", state="detached")


@pytest.mark.slow
def test_a_tab_that_an_address_names_can_be_seen_on_a_phone(page, server):
    page.set_viewport_size(dict(zip(("width", "height"), SIZES["phone"])))
    trace = server.trace("transformer", TEXT)
    for tab in ("numbers", "decode"):
        go(page, server, f"#/t/{trace['id']}?tab={tab}")
        bar = page.locator(".tabs").bounding_box()
        until(
            page,
            """([name, left, right]) => { const box = document.getElementById(`tab-${name}`).getBoundingClientRect();
            return box.left >= left - 1 && box.right <= right + 1; }""",
            [tab, bar["x"], bar["x"] + bar["width"]],
        )
