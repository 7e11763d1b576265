"""Every task in the studio: answers that are drawn, inputs and options that fit the model, and the comparison."""

import shutil

import numpy as np
import pytest

import regard
from browsing import SIZES, TEXT, axe_violations, go, open_page, read, until
from readers import LOAD
from regard.studio.model_store import ModelStore

ROWS = LOAD.splitlines(keepends=True)
SERIES = "".join(ROWS[:1] + ROWS[-30:])
SENTENCE, NAMES = "this movie is great", "Ada lives in Oslo ."


def entries(server):
    return {entry["name"]: entry for entry in server.get("/api/v1/models").table["models"]}


def test_a_trace_has_the_parts_of_its_answer(single_pass_server, readers):
    forecast = single_pass_server.trace("teller", SERIES)["parts"]
    found = regard.load(readers / "teller").forecast(regard.load(readers / "teller").parse(SERIES))
    assert (forecast["time"], forecast["window"], forecast["level"]) == ("date", 12, 0.8)
    assert forecast["times"][-4:] == found.to_dict()["times"] and len(forecast["times"]) == 12 + 4
    for at, column in enumerate(forecast["columns"]):
        assert column["past"] == [float(row.split(",")[1 + at]) for row in ROWS[-12:]]
        for side, numbers in (("expected", found.mean), ("lower", found.lower), ("upper", found.upper)):
            np.testing.assert_allclose(column[side], numbers[:, at], rtol=1e-5)
    labels = single_pass_server.trace("tagger", NAMES)
    assert " ".join(f"{one['text']}/{one['label']}" for one in labels["parts"]["tokens"]) == labels["answer"]
    assert all(0 < one["probability"] <= 1 for one in labels["parts"]["tokens"])


def test_inputs_and_decoding_fit_the_model(single_pass_server, server, language_server):
    readers, families, language = entries(single_pass_server), entries(server), entries(language_server)
    assert [readers[name]["search"] for name in ("critic", "tagger", "teller")] == [None, None, None]
    assert (families["transformer"]["search"], language["gpt"]["search"]) == ("beam 4", "sampled")

    def example(where, name):
        return where.get(f"/api/v1/models/{where.models()[name]}/example").table["text"]

    assert example(single_pass_server, "teller").splitlines() == LOAD.splitlines()
    assert example(server, "transformer") == TEXT and "[MASK]" in example(language_server, "fill")
    model = server.models()["seq2seq"]
    assert server.post(f"/api/v1/models/{model}/load", {}).table == {"loaded": True}
    assert entries(server)["seq2seq"]["loaded"]
    greedy = [language_server.trace("gpt", "The wind", beam=1)["answer"] for _ in range(2)]
    expected = regard.load(language_server.studio.root / "gpt").generate("The wind", temperature=0)
    assert greedy == [expected, expected]


@pytest.mark.parametrize(
    ("where", "model", "body", "message"),
    [
        ("single_pass_server", "teller", {"text": "je suis"}, "this model reads a series"),
        ("single_pass_server", "critic", {"image": "digits#test/7"}, "this model reads a text, not an image"),
        ("single_pass_server", "teller", {"text": "a,b\n1,2\n"}, "this model was trained on load, price"),
        ("language_server", "fill", {"text": "no mask"}, "there is no [MASK] to fill"),
        ("language_server", "gpt", {"text": "x", "image": "digits#test/7"}, "reads a text, not an image"),
    ],
)
def test_an_input_of_another_task_is_answered_with_what_the_model_reads(where, model, body, message, request):
    server = request.getfixturevalue(where)
    response = server.post("/api/v1/traces", {"model": server.models()[model], **body})
    assert response.status == 422 and message in response.error["message"]


def test_links_list_no_run_twice_and_the_newest_runs_are_listed(folder, tmp_path, monkeypatch):
    shutil.copytree(folder / "seq2seq", tmp_path / "runs" / "old", symlinks=True)
    shutil.copytree(folder / "seq2seq", tmp_path / "runs" / "zoo", symlinks=True)
    (tmp_path / "runs" / "itself").symlink_to(tmp_path / "runs")
    (tmp_path / "runs" / "again").symlink_to(tmp_path / "runs" / "zoo")
    store = ModelStore(tmp_path / "runs")
    assert len(store.entries()) == 2
    monkeypatch.setattr("regard.studio.model_store.MAX_LISTED", 1)
    (tmp_path / "runs" / "zoo" / "recipe.toml").touch()
    (tmp_path / "runs" / "zoo" / "new").touch()
    assert len(store.entries()) == 1


def test_the_page_draws_the_answer_of_each_task(browser, single_pass_server, axe):
    traces = {name: single_pass_server.trace(name, text) for name, text in
              (("teller", SERIES), ("critic", SENTENCE), ("tagger", NAMES))}  # fmt: skip
    with open_page(browser, single_pass_server.address) as page:
        go(page, single_pass_server, f"#/t/{traces['teller']['id']}")
        column = traces["teller"]["parts"]["columns"][0]
        titles = page.locator(".time-chart").first.locator(".axis-title").all_text_contents()
        assert titles == ["load", "date"] and page.locator(".time-chart .band").count() == 2
        stage, readout = page.locator(".chart-stage").first, page.locator(".time-chart >> xpath=../../output").first
        stage.focus()
        page.keyboard.press("End")
        numbers = [read(part) for part in readout.inner_text().replace(",", "").split() if part[-1:].isdigit()]
        assert "80 % interval" in readout.inner_text()
        expected = [column[side][-1] for side in ("expected", "lower", "upper")]
        np.testing.assert_allclose([numbers[0], *numbers[-2:]], expected, rtol=1e-3)
        page.keyboard.press("Home")
        assert f"past {column['past'][0]:g}" in readout.inner_text()
        assert page.evaluate("document.querySelector('select[name=beam]').hidden")
        go(page, single_pass_server, f"#/t/{traces['critic']['id']}")
        assert page.locator(".bars tbody tr").count() == 2 and page.locator(".bars .picked th").count() == 1
        page.wait_for_selector(".colored-word")
        assert page.locator(".colored-word").all_inner_texts() == SENTENCE.split()
        go(page, single_pass_server, f"#/t/{traces['tagger']['id']}")
        assert page.locator("h1 .labeled-word").count() == 5
        page.locator("p.labeled button").nth(3).click()
        until(page, "document.querySelectorAll('.bars tbody tr').length === 3")
        assert "Oslo" in page.locator(".bars >> xpath=ancestor::section[1]//h2").inner_text()
        for size in SIZES.values():
            page.set_viewport_size({"width": size[0], "height": size[1]})
            for name, trace in traces.items():
                go(page, single_pass_server, f"#/t/{trace['id']}")
                assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
                assert axe_violations(page, axe, name) == []


def test_compare_takes_models_of_one_task_and_one_color_scale(page, server):
    traces = [server.trace(name, TEXT, beam=2)["id"] for name in ("transformer", "rnnsearch")]
    go(page, server, "#/compare")
    assert page.locator("h1").inner_text() == "Compare" and page.locator(".task-models").count() == 1
    assert page.locator(".task-models input:checked").count() == 2
    go(page, server, f"#/compare?t={','.join(traces)}")
    legends = {
        text.split("\n")[0].split(" smallest")[0] for text in page.locator(".comparison .legend").all_inner_texts()
    }
    assert len(legends) == 1
    assert page.locator(".tokenization").count() == 0  # one vocabulary
    go(page, server, f"#/t/{traces[0]}")
    assert page.locator("select[name=beam]").input_value() == "2"  # the options of a trace that is opened again
    go(page, server, f"#/t/{traces[0]}?tab=numbers&tensor=logits")
    page.locator("input.jump").last.fill("150")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('.pager:last-of-type, .pager').parentElement.innerText.includes('150 to 165')")
    go(page, server, f"#/t/{traces[1]}?tab=gradients")
    text = page.locator(".panel").inner_text()
    assert "it was predicted before any of these states existed" in text and "logarithmic color scale" in text


def test_compare_explains_different_tokens(browser, language_server):
    traces = [language_server.trace(name, "the wind said") for name in ("gpt", "bert")]
    with open_page(browser, language_server.address) as page:
        go(page, language_server, f"#/compare?t={','.join(trace['id'] for trace in traces)}")
        assert "split the text into different tokens" in page.locator(".tokenization p").inner_text()
        read, source = traces[0]["sequences"]["read"], traces[1]["sequences"]["source"]
        counts = [len(read) - len(traces[0]["steps"]) + 1, len(source)]
        rows = page.locator(".tokenization li").all()
        assert [row.locator(".token").count() for row in rows] == counts
        assert "different tasks" in page.locator("form .muted[role=status]").inner_text()
