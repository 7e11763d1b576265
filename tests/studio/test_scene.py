"""The scene: the graph of every family, the numbers of the picture, its levels in the address, play, and files."""

import json

import pytest
import torch

from browsing import SIZES, TEXT, axe_violations, go, shows, until
from regard.look import Recording
from regard.sequence import Tokens
from regard.trace import record, trace_context
from zoo import CAPTIONERS, READING, TARGET, ZOO, build, classifier, tagger, text

EVERY = [*ZOO, *CAPTIONERS, *(f"{name} classifier" for name in READING), *(f"{name} tagger" for name in READING)]


def condensed_pass(name):
    """The condensed recording of one pass of a model of the zoo."""
    kind = name.rpartition(" ")
    torch.manual_seed(0)
    if kind[1]:
        model = (classifier(kind[0], "mean") if kind[2] == "classifier" else tagger(kind[0])).eval()
        inputs = (text(1),)
    else:
        model, inputs = build(name), ((ZOO | CAPTIONERS)[name].source(1), Tokens.full(TARGET.data[:1]))
    sides = {side: rows.data for side, rows in zip(("source", "target"), inputs) if isinstance(rows, Tokens)}
    with record(model) as trace, torch.no_grad(), trace_context(**sides):
        model(*inputs)
    return Recording(trace).condense()


@pytest.mark.parametrize("name", EVERY)
def test_every_family_has_a_graph_whose_sums_add_up(name):
    """No dangling edge; every record exists; a sum, as of embedding and position, is that of its inputs' strips."""
    recording = condensed_pass(name)
    graph, data = recording.header()["graph"], {r.name: r.data for r in recording.records}
    nodes = {node["id"]: node for node in graph["nodes"]}
    json.dumps(graph)
    assert all(edge["from"] in nodes and edge["to"] in nodes for edge in graph["edges"])
    assert all(name in data for node in nodes.values() for name in (*node["tensors"], node.get("tensor", "")) if name)
    assert all(node.get("tensor") or node["kind"] == "tokens" for node in nodes.values())
    reached = {edge["to"] for edge in graph["edges"]}
    inputs = {"tokens", "image", "position", "segment", "rotary", "bridge"}
    assert [i for i, node in nodes.items() if i not in reached and node["kind"] not in inputs] == []
    for node in nodes.values():
        if node["kind"] == "sum":
            parts = [data[nodes[edge["from"]]["tensor"]] for edge in graph["edges"] if edge["to"] == node["id"]]
            torch.testing.assert_close(sum(parts), data[node["tensor"]], atol=1e-5, rtol=1e-4)


def test_a_graph_has_what_a_transformer_is_made_of():
    graph = condensed_pass("transformer").header()["graph"]
    layer = [node["kind"] for node in graph["nodes"] if node.get("layer") == "decoder.layers.1"]
    assert layer == ["self-attention", "sum", "norm", "cross-attention", "sum", "norm", "ffn", "sum", "norm"]
    memory = {edge["to"] for edge in graph["edges"] if edge["kind"] == "memory"}
    assert memory == {"decoder.layers.0.cross", "decoder.layers.1.cross"}
    assert Recording(type(condensed_pass("gpt").trace)()).header()["graph"] is None


def tensors(server, trace):
    """Function from name and index to the recorded number."""
    recording = server.studio.trace_store.get(trace["id"]).recording
    return lambda name, index: recording.find(name)[0].data[0][tuple(index)].item()


def picked(page):
    """(name, index, exact number) of the number that is described below the picture."""
    data = page.locator(".scene-readout").evaluate("node => ({ ...node.dataset })")
    name, _, rest = data["number"].partition("[")
    return name, rest.rstrip("]"), float(data["exact"])


@pytest.mark.slow
@pytest.mark.parametrize("family", ["transformer", "rnnsearch", "seq2seq"])
def test_numbers_of_the_picture_are_the_recorded_ones(page, server, family):
    """Under the pointer and by keyboard, on strips, cells, gates and attention; a click explains the same number."""
    trace = server.trace(family, TEXT)
    number = tensors(server, trace)
    page.set_viewport_size({"width": 1280, "height": 1800})
    go(page, server, f"#/t/{trace['id']}")
    rows = page.locator(".scene-row:is(.strips, .cells, .band)")
    rows.first.wait_for()
    compared = set()
    for i in range(0, rows.count(), 3 if family == "transformer" else 1):
        drawn = rows.nth(i).locator("image, .scene-lines path")
        for part, x, y in ((drawn.first, 0.1, 0.3), (drawn.last, 0.55, 0.8)):
            box = part.bounding_box()
            page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
            if page.locator(".scene-tip").is_hidden():
                continue
            name, index, exact = picked(page)
            places = [int(part) if part.isdigit() else slice(None) for part in index.split(",")]
            recorded = server.studio.trace_store.get(trace["id"]).recording.find(name)[0].data[0][tuple(places)]
            assert exact == pytest.approx(recorded.double().mean().item(), rel=1e-5, abs=1e-7)
            assert shows(page.locator(".scene-tip b").inner_text(), exact)
            compared.add(name)
    assert len(compared) >= 6
    page.locator(".scene-view").focus()
    for key in ("ArrowUp", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    name, index, exact = picked(page)
    assert exact == pytest.approx(number(name, map(int, index.split(","))), rel=1e-6)


@pytest.mark.slow
def test_levels_are_in_the_address_and_back_returns_to_each(page, server):
    trace = server.trace("transformer", TEXT)
    go(page, server, f"#/t/{trace['id']}?tab=scene")
    shown = lambda level: until(page, "(level) => document.querySelector('.scene')?.dataset.drawn === level", level)  # noqa: E731
    shown("model")
    page.get_by_text("Layer 1", exact=True).last.click()
    shown("decoder.layers.1")
    page.locator(".scene-title", has_text="Cross-attention").first.click()
    shown("decoder.layers.1.cross")
    page.locator(".scene-tile[data-head='2']").click()
    until(page, "location.hash.includes('head=2')")
    page.locator(".scene-inside").first.click(force=True)
    until(page, "location.hash.includes('number=')")
    page.wait_for_selector(".drawer .big")
    explained = page.locator(".drawer .name").inner_text()
    assert explained.startswith("decoder.layers.1.cross.")
    assert page.get_by_role("navigation", name="Levels").inner_text().split("\n") == [
        "Model", "Decoder, layer 1", "Cross-attention", "Head 2",
    ]  # fmt: skip
    page.get_by_role("tab", name="Numbers").click()
    until(page, "location.hash.includes('tab=numbers')")
    for level in ("number=", "head=2", "at=decoder.layers.1.cross", "at=decoder.layers.1"):
        page.go_back()
        until(page, "(level) => location.hash.includes(level)", level)
    shown("decoder.layers.1")
    assert page.locator(".drawer").is_hidden()
    page.go_back()
    shown("model")
    page.go_forward()
    shown("decoder.layers.1")
    page.locator(".scene-view").focus()
    page.keyboard.press("Escape")
    shown("model")
    go(page, server, f"#/t/{trace['id']}?tab=scene&at=no.such.part&number=nothing[1]")
    shown("no.such.part")
    assert page.locator(".scene-row.band").count() == 6


@pytest.mark.slow
def test_play_shows_what_is_computed_in_its_order_and_pictures_are_saved(page, server, tmp_path):
    trace = server.trace("transformer", TEXT)
    go(page, server, f"#/t/{trace['id']}?tab=scene&frame=0")
    page.wait_for_selector(".scene-lit")
    text = page.locator(".scene .transport .muted").last
    assert text.inner_text() == "Encoder, source tokens"
    chosen = page.locator(".scene-chosen")
    assert chosen.count() == 0
    page.get_by_role("button", name="Next step").click()
    assert text.inner_text() == "Encoder, embedding × √width"
    page.get_by_role("button", name="Last step").click()
    assert page.locator(".scene-lit").count() == 0 and chosen.count() == len(trace["steps"])
    page.get_by_role("button", name="Play").click()
    until(page, "location.hash.includes('frame=1')")
    page.get_by_role("button", name="Pause").click()
    for name, start in (("SVG", b"<svg "), ("PNG", b"\x89PNG")):
        with page.expect_download() as saved:
            page.get_by_role("button", name=name, exact=True).click()
        saved.value.save_as(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    drawing = (tmp_path / "SVG").read_text(encoding="utf-8")
    assert "var(" not in drawing and "class=" not in drawing and "data:image/png" in drawing


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_levels_have_no_severe_violations_and_do_not_scroll_sideways(page, server, axe, size):
    trace, found = server.trace("transformer", TEXT), []
    page.set_viewport_size(dict(zip(("width", "height"), SIZES[size], strict=True)))
    for at in (
        "decoder.layers.1",
        "decoder.layers.1.cross",
        "decoder.layers.1.cross&head=1",
        "encoder.layers.0.ffn",
        "logits",
    ):
        go(page, server, f"#/t/{trace['id']}?tab=scene&at={at}")
        page.wait_for_selector(".scene-picture")
        found += axe_violations(page, axe, at)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), at
    assert found == []


@pytest.mark.slow
def test_a_trace_without_a_graph_says_so_and_thirty_layers_stay_usable(page, server):
    stored = server.studio.trace_store.get(server.trace("transformer", TEXT)["id"])
    old = {name: value for name, value in stored.header.items() if name not in ("graph", "id")}
    trace = server.studio.trace_store.put(stored.recording, old).header["id"]
    go(page, server, f"#/t/{trace}?tab=scene")
    assert "no graph" in page.locator(".panel").inner_text()
    page.get_by_role("tab", name="Attention").click()
    page.wait_for_selector(".matrix")
    copies = [
        type(r)(r.name.replace("layers.1.", f"layers.{i}."), r.axes, r.data, r.labels, r.context)
        for i in range(1, 30)
        for r in stored.recording.records
        if ".layers.1." in r.name
    ]
    first = [r for r in stored.recording.records if ".layers.1." not in r.name]
    names = [r.name for r in first]
    split = next(i for i, name in enumerate(names) if name.startswith("decoder.input"))
    deep = Recording(type(stored.recording.trace)(records=[
        *first[:split], *(r for r in copies if r.name.startswith("encoder")),
        *first[split:-3], *(r for r in copies if r.name.startswith("decoder")), *first[-3:],
    ]), stored.recording.id_to_token)  # fmt: skip
    trace = server.studio.trace_store.put(deep, old | deep.header(deep)).header["id"]
    go(page, server, f"#/t/{trace}?tab=scene")
    page.wait_for_selector(".scene-picture")
    assert page.locator(".scene-layer").count() == 60
    assert float(page.locator(".scene-picture").get_attribute("height")) < 1600
    page.locator(".scene-title", has_text="Layer 17").first.click()
    until(page, "document.querySelector('.scene').dataset.drawn === 'encoder.layers.17'")
