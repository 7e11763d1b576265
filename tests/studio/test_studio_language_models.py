"""Language models on the page: logit lens, candidates at each position, and generation with its KV cache."""

import numpy as np
import pytest

import regard
from browsing import LOOKS, SIZES, axe_violations, fits, go, open_look, open_page, read, shows, until
from language_runs import PROMPT
from regard.cli import invoke

pytestmark = pytest.mark.slow
CACHED = ("gpt", "llama")
TICK = 900
"""milliseconds per step of a generation that is played at speed 1"""


@pytest.fixture
def language_page(browser, language_server):
    with open_page(browser, language_server.address) as page:
        yield page


def stored(server, trace):
    """The recorded tensors of a trace, by name."""
    recording = server.studio.trace_store.get(trace["id"]).recording
    return {record.name: record.data[0].numpy() for record in recording.records}


def shown_step(page):
    return int(page.evaluate("new URLSearchParams(location.hash.split('?')[1]).get('step')"))


def tabs(page):
    return page.get_by_role("tab").all_inner_texts()


@pytest.mark.parametrize("name", ["gpt", "llama", "rnnlm"])
def test_the_lens_shows_token_and_probability_of_each_layer_and_position(
    language_page, language_server, language_runs, name
):
    trace = language_server.trace(name, PROMPT)
    go(language_page, language_server, f"#/t/{trace['id']}?tab=lens")
    grid = language_page.locator(".token-grid")
    numbers, ids = (stored(language_server, trace)[f"lens.{kind}"] for kind in ("probabilities", "ids"))
    rows = grid.locator("tbody tr").all()
    layers = [row.locator("th").inner_text() for row in rows]
    names = next(t["names"]["layer"] for t in trace["tensors"] if t["name"] == "lens.ids")
    assert layers == ["next token", *reversed(names)]
    token = regard.load(language_runs / name).id_to_token()["target"]
    labels = trace["lens_tokens"]
    for layer, row in zip(range(len(names) - 1, -1, -1), rows[1:], strict=True):
        cells = row.locator("td").all()
        assert len(cells) == numbers.shape[1]
        for position, cell in list(enumerate(cells))[::5]:
            best = int(ids[layer, position, 0])
            assert labels[str(best)]["token"] == token(best)
            assert cell.get_attribute("title").startswith(f"{labels[str(best)]['label']} ")
            assert shows(cell.get_attribute("title").rpartition(" ")[2], float(numbers[layer, position, 0]))


def test_pointing_and_arrow_keys_show_the_candidates_of_a_cell(language_page, language_server):
    trace = language_server.trace("gpt", PROMPT)
    page, numbers = language_page, stored(language_server, trace)["lens.probabilities"]
    go(page, language_server, f"#/t/{trace['id']}?tab=lens&layer=1&position=3")
    assert page.locator(".lens-details h2").inner_text().startswith("layer 0, after")
    page.locator(".token-grid td[aria-selected=true]").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    assert "layer=2&position=4" in page.evaluate("location.hash")
    shown = [cell.inner_text() for cell in page.locator(".lens-details tbody td:nth-child(3)").all()]
    assert len(shown) == numbers.shape[2]
    assert all(shows(text, float(value)) for text, value in zip(shown, numbers[2, 4]))
    page.locator(".token-grid tbody tr").last.locator("td").first.hover()
    assert page.locator(".lens-details h2").inner_text().startswith("embedding, after")
    page.locator("h1").hover()
    until(page, "document.querySelector('.lens-details h2').textContent.startsWith('layer 1, after')")
    page.locator("main").focus()
    page.keyboard.press("[")
    assert "layer=1&position=4" in page.evaluate("location.hash")


@pytest.mark.parametrize("name", ["gpt", "rnnlm"])
def test_candidates_stand_at_each_position_of_prompt_and_answer(language_page, language_server, name):
    trace = language_server.trace(name, PROMPT)
    tensors = stored(language_server, trace)
    logits = tensors["logits"].astype("f8")
    steps = np.exp(logits - logits.max(-1, keepdims=True))
    steps /= steps.sum(-1, keepdims=True)
    before = len(trace["sequences"]["read"]) - len(trace["steps"])
    go(language_page, language_server, f"#/t/{trace['id']}?tab=predictions")
    rows = language_page.locator(".token-grid tbody tr").all()
    assert [row.locator("th").inner_text() for row in rows] == [t["label"] for t in trace["sequences"]["read"]]
    for position, row in list(enumerate(rows))[::4]:
        shown = [row.locator("td").nth(i).get_attribute("title").rpartition(" ")[2] for i in range(5)]
        inside = tensors["lens.probabilities"][-1, position, :5]
        expected = inside if position < before else np.sort(steps[position - before])[::-1][:5]
        assert all(shows(text, float(value)) for text, value in zip(shown, expected))
    rank = 1 + int((logits[-1] > logits[-1][trace["steps"][-1]["chosen"]["id"]]).sum())
    assert rows[-1].locator("td").last.inner_text() == f"#{rank}"


@pytest.mark.parametrize("name", CACHED)
def test_generation_shows_query_keys_scores_weights_and_values_of_each_step(language_page, language_server, name):
    trace = language_server.trace(name, PROMPT)
    tensors, page = stored(language_server, trace), language_page
    before = len(trace["sequences"]["read"]) - len(trace["steps"])
    base, head, step = "decoder.layers.1.attention", 1, 4
    go(page, language_server, f"#/t/{trace['id']}?tab=generation&tensor={base}.weights&head={head}&step={step}")
    position = before + step
    rows = page.locator("table.cache tbody tr").all()
    assert len(rows) == position + 1  # the keys that existed at this step
    q, keys = tensors[f"{base}.queries"][head, position], tensors[f"{base}.keys"][head, : position + 1]
    products = keys.astype("f8") @ q.astype("f8")
    scores = products / np.sqrt(len(q))
    weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    for key, row in enumerate(rows):
        shown = [row.locator("button.cell").nth(i).inner_text() for i in (1, 2, 3)]
        for text, value in zip(shown, (products[key], scores[key], weights[key])):
            assert read(text) == pytest.approx(value, abs=2e-4)
    assert [row.locator("small", has_text="new").count() for row in rows] == [0] * position + [1]
    values = weights @ tensors[f"{base}.values"][head, : position + 1].astype("f8")
    np.testing.assert_allclose(tensors[f"{base}.context"][head, position], values, atol=1e-5)
    page.get_by_role("button", name="context at this step").focus()
    shown = page.locator(".vector", has_text="sum of weight").locator(".strip-readout").inner_text()
    assert read(shown.split(": ")[1]) == pytest.approx(values[0], abs=2e-4)
    rows[2].locator("button").first.click()
    assert page.locator("table.cache tr.picked").count() == 1
    page.get_by_role("button", name="keys at this step").focus()
    shown = page.locator(".vector", has_text="key of").locator(".strip-readout").inner_text()
    assert read(shown.split(": ")[1]) == pytest.approx(float(keys[2][0]), abs=1e-4)
    best = page.locator("table.bars tbody tr").first
    assert trace["steps"][step]["best"][0]["label"] in best.locator("th").inner_text()


def test_generation_plays_pauses_and_steps_at_a_chosen_speed(language_page, language_server):
    trace, page = language_server.trace("gpt", PROMPT), language_page
    page.clock.install(time=0)
    go(page, language_server, f"#/t/{trace['id']}?tab=generation")
    assert (
        page.locator("table.cache small", has_text="new").count()
        == len(trace["sequences"]["read"]) - len(trace["steps"]) + 1
    )  # the whole prompt is read in the first step
    page.get_by_label("Speed").select_option("4")
    page.clock.pause_at(3600)  # from here on the page's time passes only when it is told to
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(3.5 * TICK / 4)
    assert shown_step(page) == 3
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(10 * TICK)
    assert shown_step(page) == 3
    page.locator("main").focus()
    page.keyboard.press(" ")
    assert page.get_by_role("button", name="Pause").count() == 1
    page.keyboard.press(" ")
    assert page.get_by_role("button", name="Play").count() == 1
    page.clock.resume()
    page.keyboard.press(".")
    assert shown_step(page) == 4
    page.keyboard.press("]")
    assert "tensor=decoder.layers.1.attention.weights" in page.evaluate("location.hash")
    page.keyboard.press("}")
    until(page, "document.querySelector('[aria-label=Head]').value === '1'")


def test_a_recurrent_language_model_has_no_cache_to_play(language_page, language_server):
    go(language_page, language_server, f"#/t/{language_server.trace('rnnlm', PROMPT)['id']}")
    assert "Generation" not in tabs(language_page) and {"Predictions", "Lens", "Decode"} <= set(tabs(language_page))


@pytest.mark.parametrize(("theme", "size"), LOOKS)
def test_the_tabs_of_a_language_model_are_accessible_and_fit(browser, language_server, axe, theme, size):
    trace, found = language_server.trace("gpt", PROMPT)["id"], []
    with open_look(browser, theme, size) as page:
        for tab in ("generation", "predictions", "lens"):
            go(page, language_server, f"#/t/{trace}?tab={tab}&step=5")
            found += axe_violations(page, axe, tab)
            assert fits(page)
            box = page.get_by_role("tab", name=tab.capitalize()).bounding_box()
            assert box["x"] >= 0 and box["x"] + box["width"] <= SIZES[size][0]  # the chosen tab is in sight
    assert found == []


def test_a_text_that_is_read_has_predictions_and_a_lens_in_a_file(browser, language_runs, tmp_path):
    path = tmp_path / "a.html"
    assert invoke(["look", str(language_runs / "gpt"), PROMPT, "-o", str(path)]) == 0
    model = regard.load(language_runs / "gpt")
    with model.record() as recording:
        model.run_for_trace(PROMPT)
    view = recording.candidates()
    page = browser.new_page()
    try:
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=standalone]", state="attached")
        assert {"Predictions", "Lens"} <= set(tabs(page)) and "Generation" not in tabs(page)
        page.get_by_role("tab", name="Predictions").click()
        page.wait_for_selector(".token-grid")
        rows = page.locator(".token-grid tbody tr").all()
        assert len(rows) == len(view.contexts)
        for i, row in enumerate(rows):
            assert shows(row.locator("td").first.get_attribute("title").rpartition(" ")[2], view.probabilities[i, 0])
            expected = f"#{view.ranks[i]}" if view.ranks[i] else ""
            assert row.locator("td").last.inner_text() == expected
    finally:
        page.close()


def test_every_window_of_a_long_text_is_reached_from_the_page(language_page, language_server):
    trace, page = language_server.trace("long", PROMPT), language_page
    go(page, language_server, f"#/t/{trace['id']}?tab=generation")
    note = page.get_by_role("region", name="Window")
    first = trace["window"]["tokens"]
    assert (
        f"tokens 1 to {first} of the 60 that were generated (window 1 of {trace['window']['count']})"
        in note.inner_text()
    )
    shown = []
    for number in range(trace["window"]["count"]):
        note.get_by_role("link", name=str(number + 1), exact=True).click()
        page.wait_for_selector(f".window-link[aria-current]:text-is('{number + 1}')")
        page.wait_for_selector(".panel .tokens")
        shown += page.locator(".tokens button.token.target").all_inner_texts()
    assert len(shown) == 60
    step = page.locator(".transport .muted").inner_text()
    assert (
        step
        == f"step 1 of {60 - len(language_server.get(f'/api/v1/traces/{current(page)}').table['window']['before'])}"
    )


def current(page):
    return page.evaluate("location.hash").split("/")[2].split("?")[0]


def test_a_token_is_forced_and_a_head_switched_off_on_the_page_of_a_gpt(language_page, language_server):
    trace, page = language_server.trace("gpt", PROMPT), language_page
    go(page, language_server, f"#/t/{trace['id']}?tab=generation&step=2")
    other = next(one for one in trace["steps"][2]["best"][:10] if one["id"] != trace["steps"][2]["chosen"]["id"])
    page.get_by_role("button", name=f"force: {other['label']} at step 3", exact=True).click()
    page.wait_for_selector(".fork")
    until(page, "document.querySelector('.bars tr.picked') !== null")
    assert other["label"] in page.locator(".bars tr.picked th").inner_text()
    go(page, language_server, f"#/t/{trace['id']}?tab=attention&tensor=decoder.layers.0.attention.weights&head=1")
    page.get_by_role("button", name="Switch this head off").click()
    page.wait_for_selector(".fork")
    weights = language_server.studio.trace_store.get(current(page)).recording.find("decoder.layers.0.attention.weights")
    assert not weights[0].data[0, 1].any()


def test_every_layer_and_head_of_bert_is_on_the_page(language_page, language_server):
    trace, page = language_server.trace("bert", "this movie is great"), language_page
    go(page, language_server, f"#/t/{trace['id']}?tab=attention&head=1")
    page.wait_for_selector(".heads canvas")
    assert page.get_by_role("img", name="4 heads of 2 attention modules").count() == 1
    page.get_by_role("button", name="Edit this row").click()
    page.get_by_role("button", name="Uniform").click()
    page.get_by_role("button", name="Run with this row").click()
    page.wait_for_selector(".fork")
    weights = language_server.studio.trace_store.get(current(page)).recording.find("encoder.layers.1.attention.weights")
    assert weights[0].data[0, 1, 0].tolist() == pytest.approx([0.25] * 4)


MASKED = "the cat eats [MASK] today . [SEP] the [MASK] eats hay ."


def test_masks_have_ranked_words_with_the_probabilities_of_regard_fill(language_page, language_server, language_runs):
    trace, page = language_server.trace("fill", MASKED), language_page
    filled = regard.load(language_runs / "fill").fill(MASKED, k=5)
    go(page, language_server, f"#/t/{trace['id']}?tab=predictions")
    assert tabs(page) == ["Scene", "Attention", "Predictions", "Lens", "States", "Insight", "Numbers"]
    rows = page.locator(".token-grid tbody tr").all()
    assert [row.locator("th").inner_text() for row in rows] == ["[MASK] 1", "[MASK] 2"]
    for row, words in zip(rows, filled.masks, strict=True):
        for cell, candidate in zip(row.locator("td").all(), words, strict=True):
            assert cell.locator("bdi").inner_text() == candidate.token
            assert shows(cell.get_attribute("title").rpartition(" ")[2], candidate.probability)
    buttons = page.get_by_role("group", name="Text with masks").get_by_role("button")
    assert buttons.count() == 2
    buttons.nth(1).click()
    assert page.locator(".panel h2").nth(1).inner_text() == "[MASK] 2"
    best = page.locator("table.bars tbody tr").first
    assert best.locator("th").inner_text() == filled.masks[1][0].token
    assert shows(best.locator("td").nth(1).inner_text(), filled.masks[1][0].probability)
    assert "beam" not in page.locator(".trace-head").inner_text() and page.get_by_label("Beam").is_hidden()


def test_the_lens_of_a_masked_language_model_opens_at_its_first_mask(language_page, language_server):
    trace, page = language_server.trace("fill", MASKED), language_page
    go(page, language_server, f"#/t/{trace['id']}?tab=lens")
    assert page.locator(".token-grid tbody th").all_inner_texts() == ["layer 1", "layer 0", "embedding"]
    position = [token["token"] for token in trace["sequences"]["source"]].index("[MASK]")
    assert page.locator(".lens-details h2").inner_text() == f"layer 1, at [MASK] (position {position + 1})"
    last = stored(language_server, trace)["lens.probabilities"][-1, position]
    logits = stored(language_server, trace)["logits"][0].astype("f8")
    own = np.sort(np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum())[::-1]
    np.testing.assert_allclose(last, own[: len(last)], atol=1e-5)  # the last layer is the model's own prediction
    shown = [cell.inner_text() for cell in page.locator(".lens-details tbody td:nth-child(3)").all()]
    assert all(shows(text, float(value)) for text, value in zip(shown, last))


def test_a_run_without_a_typed_text_fills_the_masks_of_the_example(language_page, language_server):
    go(language_page, language_server, "#/")
    language_page.get_by_label("Model", exact=True).select_option(label="fill")
    language_page.get_by_label("Text with [MASK]").wait_for()
    until(language_page, "() => document.querySelector('[placeholder*=\"[MASK]\"]') !== null")


def test_a_large_language_model_continues_a_text_by_as_many_tokens_as_can_be_recorded(
    language_page, language_server, monkeypatch
):
    whole = language_server.trace("gpt", PROMPT)
    tokens = len(whole["sequences"]["read"]) - len(whole["steps"]) + 1  # the last token is not read
    limit = 16 * (tokens + 7.5) ** 2 * 16 * 2 / 1e9  # two layers of width 16
    monkeypatch.setattr("regard.studio.service.MAX_GIGABYTES", limit)
    trace = language_server.trace("gpt", PROMPT)
    assert (len(trace["steps"]), trace["decode"]["length"], whole["decode"]["length"]) == (7, 7, None)
    assert [step["chosen"]["id"] for step in trace["steps"]] == [step["chosen"]["id"] for step in whole["steps"][:7]]
    go(language_page, language_server, f"#/t/{trace['id']}?tab=generation")
    assert "sampled, at most 7 tokens, as many as are recorded of this model" in language_page.inner_text("main")
