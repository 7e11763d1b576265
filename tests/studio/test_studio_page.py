"""The page in a browser: its numbers are those of the model, and it makes no requests to other origins."""

import json
import math
import random

import numpy as np
import pytest
import torch

import regard
from browsing import TEXT, go, shows, until
from regard.decode.processors import compose, min_p, temperature, top_k, top_p

pytestmark = pytest.mark.slow


def record_pass(folder, name):
    """Recording of another pass of the model over the text."""
    model = regard.load(folder / name)
    with regard.record(model) as recording:
        model.predict_text(TEXT)
    return recording


def test_the_start_page_lists_models_and_runs_a_sentence(page, server):
    go(page, server, "#/")
    names = page.locator("section:has(h2:text-is('Models')) tbody th").all_inner_texts()
    assert sorted(names) == ["rnnsearch", "seq2seq", "transformer"]
    page.get_by_label("Model", exact=True).select_option(label="transformer")
    page.get_by_label("Sentence").fill(TEXT)
    page.get_by_role("button", name="Run").click()
    page.wait_for_selector(".inspector h1")
    assert TEXT in page.locator(".inspector h1").inner_text()
    assert page.get_by_role("tab").all_inner_texts() == [
        "Scene",
        "Attention",
        "Generation",
        "Predictions",
        "Lens",
        "Decode",
        "States",
        "Gradients",
        "Insight",
        "Numbers",
    ]


@pytest.mark.parametrize("name", ["transformer", "rnnsearch"])
def test_attention_on_the_page_equals_the_recorded_weights(page, server, folder, name):
    trace, recording = server.trace(name, TEXT), record_pass(folder, name)
    tensor = [t["name"] for t in trace["tensors"] if t["name"].endswith("weights")][-1]
    go(page, server, f"#/t/{trace['id']}?tab=attention&tensor={tensor}&head=0")
    page.locator("summary", has_text="As a table").first.click()
    page.wait_for_selector("figure table")
    table = page.locator("figure table").first
    cells = [[td.inner_text() for td in row.locator("td").all()] for row in table.locator("tbody tr").all()]
    weights = recording.attention(tensor, head=0).weights
    assert np.shape(cells) == weights.shape
    assert all(shows(text, value) for row, values in zip(cells, weights) for text, value in zip(row, values))
    stage = page.locator(".matrix").first  # the second is the attention rollout
    stage.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown"):  # the first key enters at 0, 0
        page.keyboard.press(key)
    assert shows(page.locator(".matrix + .readout .value").first.inner_text(), weights[1, 1])
    page.keyboard.press("Enter")
    page.wait_for_selector(".drawer .big")
    assert float(page.locator(".drawer .big").get_attribute("data-exact")) == pytest.approx(
        float(weights[1, 1]), rel=1e-6
    )
    assert float(page.locator(".agreement").get_attribute("data-off")) < 1e-6
    page.keyboard.press("Escape")
    assert page.locator(".drawer").is_hidden()


@pytest.mark.parametrize("name", ["transformer", "seq2seq", "rnnsearch"])
def test_fifty_random_numbers_on_the_page_equal_the_recorded_ones(page, server, folder, name):
    trace, draw = server.trace(name, TEXT), random.Random(7)
    records = {r.name: r.data[0].numpy() for r in record_pass(folder, name).condense().records}
    compared = 0
    go(page, server, f"#/t/{trace['id']}?tab=numbers")
    for tensor in draw.sample(trace["tensors"], min(14, len(trace["tensors"]))):
        page.get_by_label("Tensor", exact=True).select_option(tensor["name"])
        page.wait_for_selector(f".scroll[aria-label='{tensor['name']} as a table']")
        values = records[tensor["name"]]
        while values.ndim > 2:
            values = values[0]
        values = np.atleast_2d(values)[:40, :16]
        cells = page.locator("button.cell").all()
        assert len(cells) == values.size
        for at in draw.sample(range(len(cells)), min(5, len(cells))):
            expected = float(values.ravel()[at])
            assert shows(cells[at].inner_text(), expected)
            exact = cells[at].get_attribute("data-exact")
            assert (
                math.isnan(expected) if exact == "nan" else float(exact) == pytest.approx(expected, rel=1e-5, abs=1e-7)
            )
            compared += 1
    assert compared >= 50


def test_explanations_compute_the_recorded_values(page, server):
    attention = {
        "decoder.layers.0.cross.products": "head: 1, query: 1, key: 1",
        "decoder.layers.0.cross.scores": "head: 1, query: 1, key: 1",
        "decoder.layers.0.cross.context": "head: 1, query: 1, width: 2",
        "encoder.layers.1.attention.weights": "head: 3, query: 0, key: 2",
    }  # fmt: skip
    cells = {
        "decoder.stack.layers.0.cell": "position: 1, width: 3",
        "encoder.stack.layers.1.hidden": "position: 0, width: 1",
    }
    cells["encoder.stack.layers.0.cell"] = "position: 1, width: 5"
    for name, indices in (("transformer", attention), ("seq2seq", cells)):
        trace = server.trace(name, TEXT)
        go(page, server, f"#/t/{trace['id']}")
        for tensor, index in indices.items():
            off = page.evaluate(
                f"""async () => {{
                    const {{ openTrace }} = await import("/page/trace/server-source.js");
                    const {{ explain }} = await import("/page/widgets/explain.js");
                    const trace = await openTrace("{trace["id"]}");
                    const value = (await trace.tensor("{tensor}")).at({{ {index} }});
                    return Math.abs((await explain(trace, "{tensor}", {{ {index} }})).expression.value - value);
                }}"""
            )
            assert off < 1e-5, tensor


def test_probabilities_follow_the_sliders_like_the_logits_processors(page, server):
    trace = server.trace("transformer", TEXT)
    go(page, server, f"#/t/{trace['id']}?tab=decode&step=1")
    logits = np.frombuffer(server.get(f"/api/v1/traces/{trace['id']}/tensors/logits?slice=step:1").body, "<f4")
    for label, value in (("temperature", "0.7"), ("top-k", "10"), ("min-p", "0.1")):
        page.get_by_label(label, exact=True).fill(value)
    log = torch.tensor(logits.copy())[None].double().log_softmax(-1)
    filtered = compose([temperature(0.7), top_k(10), min_p(0.1)], log, None).softmax(-1)[0]
    rows = page.locator(".candidates tbody tr").all()
    best = trace["steps"][1]["best"]
    assert len(rows) == 20
    for row, candidate in zip(rows, best, strict=False):
        _, logit, plain, _, after, *_ = row.locator("td").all_inner_texts()
        assert shows(logit, candidate["logit"])
        assert shows(plain, float(log[0, candidate["id"]].exp()))
        expected = float(filtered[candidate["id"]])
        assert after == "cut" if expected == 0 else shows(after, expected)


def test_probabilities_in_javascript_equal_those_of_python(page, server):
    go(page, server, "#/")
    draw = random.Random(3)
    cases = []
    for _ in range(1000):
        logits = [draw.gauss(0, 3) for _ in range(draw.randint(2, 40))]
        rules = {
            "temperature": draw.choice([0.2, 0.7, 1, 1.9]),
            "topK": draw.choice([0, 1, 3, 10]),
            "topP": draw.choice([1, 0.9, 0.5, 0.1]),
            "minP": draw.choice([0, 0.05, 0.5]),
        }
        cases.append((logits, rules))
    found = page.evaluate(
        """async (cases) => {
            const { filterProbabilities, softmax } = await import("/page/trace/probability.js");
            return cases.map(([logits, rules]) =>
                [softmax(logits), filterProbabilities(logits, rules)].map((found) => Array.from(found)));
        }""",
        cases,
    )
    for (logits, rules), (plain, filtered) in zip(cases, found, strict=True):
        log = torch.tensor([logits], dtype=torch.double).log_softmax(-1)
        applied = [temperature(rules["temperature"])]
        applied += [top_k(rules["topK"])] if rules["topK"] else []
        applied += [top_p(rules["topP"])] if rules["topP"] < 1 else []
        applied += [min_p(rules["minP"])] if rules["minP"] else []
        np.testing.assert_allclose(plain, log.exp()[0], atol=1e-6)
        np.testing.assert_allclose(filtered, compose(applied, log, None).softmax(-1)[0], atol=1e-6)


def test_copied_code_reproduces_the_numbers(page, server):
    trace = server.trace("transformer", TEXT)
    name = "decoder.layers.0.cross.weights"
    go(page, server, f"#/t/{trace['id']}?tab=numbers&tensor={name}&head=1")
    page.get_by_role("button", name="Copy as NumPy").click()
    until(page, "document.body.innerText.includes('Copied')")
    names = {}
    exec(page.evaluate("navigator.clipboard.readText()"), names)
    expected = np.frombuffer(server.get(f"/api/v1/traces/{trace['id']}/tensors/{name}?slice=head:1").body, "<f4")
    np.testing.assert_array_equal(names["values"].ravel(), expected)
    page.get_by_role("button", name="Copy as CSV").click()
    until(page, "navigator.clipboard.readText().then((text) => !text.startsWith('import numpy'))")
    rows = page.evaluate("navigator.clipboard.readText()").splitlines()
    np.testing.assert_array_equal(np.array([row.split(",") for row in rows], dtype="f4").ravel(), expected)


def test_the_comparison_shows_answers_and_log_probabilities_of_all_models(page, server):
    go(page, server, "#/compare")
    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_label("Sentence for all models").fill(TEXT)
    page.get_by_role("button", name="Run all").click()
    page.wait_for_selector(".comparison > section:nth-child(3)")
    assert sorted(page.locator(".comparison h2").all_inner_texts()) == ["rnnsearch", "seq2seq", "transformer"]
    for section in page.locator(".comparison > section").all():
        expected = server.trace(section.locator("h2").inner_text(), TEXT)
        assert section.locator("p.sentence").inner_text().split() == expected["answer"].split()
        log_probs = [
            row.locator("td").first.inner_text() for row in section.locator("table").first.locator("tbody tr").all()
        ]
        assert len(log_probs) == len(expected["steps"])
        assert all(shows(text, step["log_prob"]) for text, step in zip(log_probs, expected["steps"]))


def test_an_ablated_head_is_shown_with_its_effect(page, server):
    trace = server.trace("transformer", TEXT)
    go(page, server, f"#/t/{trace['id']}?tab=attention&tensor=decoder.layers.0.cross.weights&head=1")
    page.get_by_role("button", name="Switch this head off").click()
    page.wait_for_selector(".fork")
    assert "d0 cross head 1 switched off" in page.locator(".fork").inner_text()
    page.get_by_role("link", name="Back to the unchanged model").click()
    until(page, "!document.querySelector('.fork')")
    assert page.evaluate("location.hash").startswith(f"#/t/{trace['id']}")


def test_the_page_of_a_training_follows_its_metrics_file(page, server, folder):
    file = folder / "rnnsearch" / "metrics.jsonl"
    before = file.read_bytes()
    rows = [json.loads(line) for line in before.splitlines()]
    loss = [row["loss"] for row in rows if row["event"] == "validated"][-1]
    go(page, server, f"#/runs/{server.models()['rnnsearch']}")
    assert "Ended at step 30: done." in page.locator("[role=status]").inner_text()
    assert shows(page.locator("figure:has(h2:text-is('Loss')) output").inner_text().split("validation ")[1], loss)
    try:
        running = [row for row in before.splitlines(keepends=True) if b'"ended"' not in row]
        file.write_bytes(b"".join(running))
        go(page, server, "#/")
        go(page, server, f"#/runs/{server.models()['rnnsearch']}")
        with file.open("ab") as more:
            more.write(
                b'{"event": "stepped", "step": 40, "loss": 0.125, "rate": 0.5, "norm": 1, "tokens": 9, "seconds": 1}\n'
            )
        until(page, "document.querySelector('[role=status]').textContent.startsWith('Step 40 of 30')")
        assert page.locator("figure:has(h2:text-is('Loss')) output").inner_text().startswith("training 0.1250")
    finally:
        file.write_bytes(before)


def test_the_mean_over_heads_is_explained_by_its_heads(page, server):
    trace, name = server.trace("transformer", TEXT), "decoder.layers.1.cross.weights"
    go(page, server, f"#/t/{trace['id']}?tab=attention&tensor={name}&query=1&key=0")
    page.locator(".matrix").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".heads-list")
    values = np.frombuffer(server.get(f"/api/v1/traces/{trace['id']}/tensors/{name}?slice=query:1,key:0").body, "<f4")
    assert shows(page.locator(".drawer .big").inner_text(), float(values.mean(dtype="f8")))
    displayed = [item.inner_text().split()[-1] for item in page.locator(".heads-list li").all()]
    assert len(displayed) == 4 and all(shows(text, float(value)) for text, value in zip(displayed, values))


def test_gradients_on_the_page_equal_those_of_the_model(page, server, folder):
    trace, model = server.trace("seq2seq", TEXT), regard.load(folder / "seq2seq")
    name = "decoder.stack.layers.1.hidden"
    expected = model.teacher_forced(TEXT).gradients(model.module, name)
    go(page, server, f"#/t/{trace['id']}?tab=gradients&tensor={name}")
    page.locator("summary", has_text="As a table").click()
    page.wait_for_selector("figure table")
    cells = [[td.inner_text() for td in row.locator("td").all()] for row in page.locator("figure tbody tr").all()]
    assert np.shape(cells) == expected.norms.shape
    assert all(shows(a, float(b)) for row, values in zip(cells, expected.norms) for a, b in zip(row, values))


def word_groups(words):
    """Indices of the tokens of each word: a token that begins with a space, and those after it that do not."""
    if not any(word["token"].startswith(" ") for word in words):
        return [[i] for i in range(len(words))]
    found = []
    for i, word in enumerate(words):
        special = [w["token"].startswith("<") and w["token"].endswith(">") for w in (word, words[i - 1])]
        if not i or word["token"].startswith(" ") or any(special):
            found.append([])
        found[-1].append(i)
    return found


def test_attention_is_merged_from_subwords_to_words(page, server):
    trace, name = server.trace("transformer", TEXT), "decoder.layers.1.cross.weights"
    whole = np.frombuffer(server.get(f"/api/v1/traces/{trace['id']}/tensors/{name}?slice=head:1").body, "<f4")
    down, across = (word_groups(trace["sequences"][side]) for side in ("target", "source"))
    whole = whole.reshape(len(trace["sequences"]["target"]), -1).astype("f8")
    assert len(across) < whole.shape[1]
    expected = np.array([[whole[np.ix_(rows, columns)].sum(1).mean() for columns in across] for rows in down])
    go(page, server, f"#/t/{trace['id']}?tab=attention&tensor={name}&head=1")
    page.get_by_role("button", name="whole words").click()
    page.wait_for_selector("button[aria-pressed=true]:text-is('whole words')")
    page.locator("summary", has_text="As a table").first.click()
    page.wait_for_selector("figure table")
    cells = [[td.inner_text() for td in row.locator("td").all()] for row in page.locator("figure tbody tr").all()]
    assert np.shape(cells) == expected.shape
    assert all(shows(a, float(b)) for row, values in zip(cells, expected) for a, b in zip(row, values))
