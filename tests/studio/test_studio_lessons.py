"""Lessons on the page: the numbers are those of Python, and every input can be changed, also by keyboard."""

import json
import shutil
import threading

import pytest

from browsing import go, shows, until
from helpers import wait_until
from regard.lessons import LESSONS, lesson_plan, teach
from regard.lessons.engine.cached_models import cache_paths
from regard.studio.lessons_api import LessonsApi

WITHOUT_MODEL = [name for name, entry in LESSONS.items() if not entry.needs]


def lesson(server, name, **changes):
    response = server.post(f"/api/v1/lessons/{name}", {"changes": changes}) if changes else server.get(address(name))
    assert response.status == 200, response.body
    return response.table


def address(name):
    return f"/api/v1/lessons/{name}"


def results(steps):
    return {value["name"]: value["data"] for step in steps for value in step["results"]}


def test_all_lessons_are_listed_in_order_with_a_summary(server):
    listed = server.get("/api/v1/lessons").table["lessons"]
    assert [row["name"] for row in listed] == list(LESSONS)
    assert all(row["title"] and row["summary"] and row["part"] for row in listed)


@pytest.mark.parametrize("name", WITHOUT_MODEL)
def test_the_server_sends_the_numbers_of_the_lesson(server, name):
    sent, taught = lesson(server, name), teach(name).to_dict()
    assert results(sent["steps"]) == results(taught["steps"])
    assert [{key: row[key] for key in taught["checks"][0]} for row in sent["checks"]] == taught["checks"]
    assert [row["data"] for row in sent["inputs"]] == [row["data"] for row in taught["inputs"]]


def test_a_lesson_that_is_drawn_while_another_is_opened_leaves_its_address(page, server):
    """The change of the theme draws the lesson that is still shown, whose inputs stand in its address."""
    go(page, server, "#/learn/neuron")
    page.evaluate("""() => {
        delete document.documentElement.dataset.ready;
        location.hash = "#/learn/perceptron";
        document.querySelector("[aria-label='Light or dark theme']").click();
    }""")
    page.wait_for_selector("html[data-ready='#/learn/perceptron']", state="attached")
    assert page.evaluate("location.hash") == "#/learn/perceptron"


def test_formulas_and_symbols_are_trees_of_known_mathml_elements(server):
    def names(tree):
        yield tree[0]
        for part in tree[2:]:
            if isinstance(part, list):
                yield from names(part)

    found = set()
    for name in WITHOUT_MODEL:
        for step in lesson(server, name)["steps"]:
            trees = [value["tree"] for value in (*step["operands"], *step["results"])]
            for tree in [*trees, *([step["formula"]["tree"]] if step["formula"] else [])]:
                found |= set(names(tree))
    assert {"math", "mfrac", "msqrt", "msub"} <= found
    leaves, boxes = {"mi", "mo", "mn", "mtext", "mspace"}, {"math", "mrow", "mfrac", "msqrt"}
    assert found <= leaves | boxes | {"msub", "msup", "msubsup", "munder", "mover", "munderover"}


def test_results_of_a_changed_input_come_with_the_original_ones(server):
    sent = lesson(server, "rnn", x=[2, 0])
    assert results(sent["steps"]) == results(teach("rnn", {"x": [2, 0]}).to_dict()["steps"])
    assert sent["changed"] == ["x"]
    values = {value["name"]: value for step in sent["steps"] for value in step["results"]}
    assert (values["o"]["changed"], values["o"]["original"], values["o"]["text"]) == (True, "1", "2")
    assert (values["Vh"]["changed"], values["Vh"]["original"]) == (False, None)


def test_a_model_is_selected_by_its_id_and_no_path_is_sent(server, folder):
    number = server.models()["transformer"]
    sent = lesson(server, "transformer", model=number, limit=3)
    assert sent["chosen"] == {"model": number}
    assert {run["name"] for run in sent["runs"]} == {"transformer"}
    assert str(folder) not in json.dumps(sent)
    assert "model" not in {row["name"] for row in sent["inputs"]}
    expected = teach("transformer", {"model": str(folder / "transformer"), "limit": 3}).to_dict()
    assert results(sent["steps"]) == results(expected["steps"])


@pytest.mark.parametrize(("name", "table", "status", "message"), [
    ("rn", {}, 404, "no such lesson"),
    ("../rnn", {}, 404, "no such address"),
    ("rnn", {"changes": [1]}, 422, "changes: expected an object"),
    ("rnn", {"changes": {"x": [1, "a"]}}, 422, "x: expected a list of 2 numbers (input), got 'a'"),
    ("rnn", {"changes": {"x": [1]}}, 422, "x: expected a list of 2 numbers (input), got a list of 1"),
    ("rnn", {"changes": {"x": "[" * 400}}, 422, "x: expected a list of 2 numbers (input), got '[["),
    ("rnn", {"changes": {"x": {"a": 1}}}, 422, "x: expected a list of 2 numbers (input), got {'a': 1}"),
    ("rnn", {"changes": {"x": None}}, 422, "x: expected a list of 2 numbers (input), got None"),
    ("rnn", {"changes": {"z": 1}}, 422, 'there is no input "z"; there are U, V, W, h, x, b, f'),
    ("rnn", {"changes": {"model": "x"}}, 404, "no such model"),
    ("bidirectional", {"changes": {"first": "a" * 501}}, 413, "a text input of a lesson has at most 500 characters"),
    ("padding", {"changes": {"sentences": ["a" * 501]}}, 413, "a text input of a lesson has at most 500 characters"),
    ("transformer", {"changes": {"model": "../../etc/passwd"}}, 404, "no such model"),
    ("transformer", {"changes": {"model": 7}}, 422, "model: expected the id of a model"),
    ("transformer", {"changes": {"limit": 0}}, 422, "limit: expected numbers from 1 to 60, got 0"),
    ("training", {"changes": {"rate": 2}}, 422, "rate: expected numbers from 0 to 1, got 2"),
])  # fmt: skip
def test_invalid_inputs_are_refused_with_a_message(server, name, table, status, message):
    response = server.post(address(name), table)
    assert (response.status, response.error["message"][: len(message)]) == (status, message)
    assert lesson(server, "rnn")["name"] == "rnn"


def test_malformed_values_are_refused_for_every_input(server):
    for name in WITHOUT_MODEL:
        for entry in lesson_plan(name).inputs:
            for value in ([[[[1]]]], [], [[]], True, {}, 1e400, [[1], [2, 3]], "\x00"):
                response = server.post(address(name), {"changes": {entry.name: value}})
                assert response.status in (200, 422), (name, entry.name, value, response.body)


def test_answers_to_exercises_are_checked_by_the_server(server):
    def post(**body):
        return server.post("/api/v1/lessons/rnn/exercises", body)

    hint = lesson_plan("rnn").exercises[0].hint
    assert post(number=1, answer="0, 1, 1").table == {"right": True, "message": "right", "hint": hint}
    assert post(number=1, answer="0 1").table["message"] == "expected 3 numbers, got 2"
    assert post(number=1, answer=None).table == {"solution": "[0  1  1]", "changes": {"x": [0, 1]}}
    for body, status in [
        ({"number": 9, "answer": "1"}, 422),
        ({"number": "1", "answer": "1"}, 422),
        ({"number": True, "answer": "1"}, 422),
        ({"number": 1, "answer": [1]}, 422),
        ({"number": 1, "answer": "1" * 501}, 413),
        ({"number": 1, "answer": "1", "chosen": {"x": 1}}, 422),
        ({"number": 1, "answer": "1", "chosen": {"model": "none"}}, 404),
    ]:
        assert post(**body).status == status, body
    assert server.post("/api/v1/lessons/rn/exercises", {"number": 1, "answer": "1"}).status == 404


def test_models_of_lessons_are_trained_once_and_stopped_with_the_server(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path))
    api = LessonsApi()
    assert api.training_status("transformer")["training"] == ["transformer"]
    wait_until(lambda: api._process, "a training is started")
    process = api._process
    assert api.training_status("beam-search")["training"] == ["transformer"]
    assert api._process is process
    api.close()
    assert process.poll() is not None


def test_a_get_never_starts_a_training_and_a_foreign_page_gets_nothing(empty, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "kept"))
    before = {thread.name for thread in threading.enumerate()}
    first = empty.get(address("transformer"))
    assert (first.status, first.table["training"], first.table["seconds"]) == (202, ["transformer"], None)
    assert {t for t in threading.enumerate() if t.name not in before and "_train" in t.name} == set()
    for method, body in (("GET", None), ("POST", b"{}")):
        foreign = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors", "content_type": "application/json"}
        refused = empty.request(method, address("transformer"), body, **foreign)
        assert (refused.status, refused.error["code"]) == (403, "other-origin")
    assert empty.get(address("transformer")).table["seconds"] is None  # still not started


@pytest.mark.slow
def test_a_lesson_waits_until_its_model_is_trained(empty, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "kept"))
    first = empty.post(address("transformer"), {})
    assert (first.status, first.table["training"]) == (202, ["transformer"])
    place = cache_paths()["transformer"]
    wait_until(lambda: list(place.parent.glob("transformer-*/run")), "it is trained in a temporary folder")
    assert empty.get(address("transformer")).status == 202
    shutil.copytree(folder / "transformer", place, symlinks=True)  # another process was faster
    response = empty.get(address("transformer"))
    assert response.status == 200, response.body
    expected = teach("transformer", {"model": str(folder / "transformer")}).to_dict()
    assert results(response.table["steps"]) == results(expected["steps"])


def displayed(page, name):
    """The numbers of a result on the page: exact, and as displayed."""
    cells = page.locator(f".lesson-value.result[data-value='{name}'] [data-exact]").all()
    return [(cell.get_attribute("data-exact"), cell.inner_text()) for cell in cells]


def flat(data):
    return [number for item in data for number in flat(item)] if isinstance(data, list) else [data]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rnn", "attention", "positions", "lstm"])
def test_all_numbers_on_the_page_equal_those_of_python(page, server, name):
    go(page, server, f"#/learn/{name}")
    compared = 0
    for step in teach(name).steps:
        for value in step.results:
            if value.look in ("numbers", "weights") and not isinstance(flat(value.data)[0], str):
                exact = [float(number) for number, _ in displayed(page, value.name)]
                assert exact == flat(value.data), value.name
                compared += len(exact)
    assert compared >= 10
    assert page.locator(".lesson-checks .good").count() == len(teach(name).checks)


@pytest.mark.slow
def test_records_show_every_text_under_its_label(page, server):
    go(page, server, "#/learn/sizes")
    value, records = teach("sizes").value("quoted"), page.locator(".result[data-value=quoted] section")
    assert records.locator("h3").all_inner_texts() == value.labels["model"]
    assert records.locator("dd").all_inner_texts() == flat(value.data)
    assert records.locator("dt").all_inner_texts() == value.labels["column"] * len(value.data)
    assert displayed(page, "total") == [("174604259328", "174,604,259,328")]
    page.get_by_label("show", exact=True).select_option("GPT-4")
    until(page, "document.querySelectorAll('.result[data-value=quoted] section').length === 1")
    assert records.locator("h3").all_inner_texts() == ["GPT-4"]


@pytest.mark.slow
def test_a_listing_keeps_its_indentation(page, server):
    go(page, server, "#/learn/encoder-decoder-code")
    lines = teach("encoder-decoder-code").value("decoder_code").data
    code = page.locator(".result[data-value=decoder_code] code")
    assert code.all_inner_texts() == [line for line, _ in lines]
    indents = code.evaluate_all("""(all) => all.map((node) => {
        const range = document.createRange();
        range.setStart(node.firstChild, node.textContent.search(/\\S/));
        range.setEnd(node.firstChild, node.textContent.length);
        return Math.round(range.getBoundingClientRect().left - node.getBoundingClientRect().left);
    })""")
    spaces = [len(line) - len(line.lstrip()) for line, _ in lines]
    assert max(spaces) == 8 and indents[0] == 0
    deeper = [(indent, space) for indent, space in zip(indents, spaces) if space]
    assert all(abs(indent / space - deeper[0][0] / deeper[0][1]) < 0.5 and indent > 10 for indent, space in deeper)


@pytest.mark.slow
def test_the_table_of_a_heat_map_has_the_weights(page, server):
    go(page, server, "#/learn/kinds-of-attention")
    assert "√" in page.locator(".lesson-step .formula").first.inner_text()  # also without a mathematical font
    figure = page.locator(".result[data-value=A_masked] figure")
    figure.locator("summary").click()
    figure.locator("table").wait_for()
    cells = [cell.inner_text() for cell in figure.locator("td:not(:empty)").all()]
    expected = flat(teach("kinds-of-attention").value("A_masked").data)
    assert len(cells) == len(expected)
    assert all(shows(text, number) for text, number in zip(cells, expected))


@pytest.mark.slow
def test_a_changed_number_changes_the_results_and_the_address(page, server):
    go(page, server, "#/learn/attention")
    page.get_by_label("y, from 1", exact=True).fill("0.5")
    until(page, "document.querySelector('.result[data-value=z]').classList.contains('changed')")
    expected = teach("attention", {"y": [0.5, -1, 0]}).value("z").data
    assert [float(number) for number, _ in displayed(page, "z")] == expected
    assert page.locator(".result[data-value=z]").inner_text().endswith("the lesson has [0.4239 0.5761]")
    assert page.evaluate("decodeURIComponent(location.hash)") == "#/learn/attention?y=[0.5,-1,0]"
    page.reload()
    page.wait_for_selector(".result[data-value=z].changed")
    assert [float(number) for number, _ in displayed(page, "z")] == expected
    page.get_by_role("button", name="Back to the lesson's own numbers").click()
    until(page, "!document.querySelector('.result[data-value=z]').classList.contains('changed')")
    assert page.evaluate("location.hash") == "#/learn/attention"
    assert page.get_by_label("y, from 1", exact=True).input_value() == "1"


@pytest.mark.slow
def test_an_input_error_is_shown_at_its_field_and_the_previous_numbers_stay(page, server):
    go(page, server, "#/learn/rnn")
    page.get_by_label("x, input 1", exact=True).fill("a")
    field = page.locator("[data-input=x]")
    field.locator(".field-error").wait_for(state="visible")
    assert field.locator(".field-error").inner_text() == "expected a list of 2 numbers (input), got 'a'"
    assert page.get_by_label("x, input 1", exact=True).get_attribute("aria-invalid") == "true"
    assert [float(number) for number, _ in displayed(page, "o")] == [1.0]
    page.get_by_label("x, input 1", exact=True).fill("3")
    field.locator(".field-error").wait_for(state="hidden")
    until(page, "document.querySelector('.result[data-value=o] .value').dataset.exact === '3'")


@pytest.mark.slow
def test_sizes_are_changed_as_text_and_choices_are_selected(page, server):
    go(page, server, "#/learn/gradients")
    page.locator("[data-input=radii]").get_by_role("button", name="as text").click()
    page.get_by_label("radii as text").fill("[0.2, 0.4]")
    until(page, "document.querySelectorAll('.result[data-value=fates] td').length === 2")
    assert [text for _, text in displayed(page, "fates")] == ["fades", "fades"]
    go(page, server, "#/learn/rnn")
    page.get_by_label("f", exact=True).select_option("tanh")
    until(page, "document.querySelector('.result[data-value=h_new] td').dataset.exact.startsWith('0.76')")


@pytest.mark.slow
def test_a_lesson_is_operated_by_keyboard_alone(page, server):
    go(page, server, "#/learn")
    page.get_by_role("link", name="One cell of a recurrent network").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".lesson-checks")
    page.get_by_label("U, unit 1, input 1", exact=True).focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "U, unit 2, input 1"
    page.keyboard.press("Tab")
    page.keyboard.type("5")
    until(page, "document.querySelector('[data-input=U]').classList.contains('changed')")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "U, unit 2, input 2"
    page.locator("main").focus()
    page.keyboard.press(".")
    page.keyboard.press(".")
    assert page.evaluate("document.activeElement.textContent") == "2 The input part"
    page.keyboard.press(",")
    assert page.evaluate("document.activeElement.textContent") == "1 The recurrent part"


@pytest.mark.slow
def test_hostile_texts_in_a_lesson_stay_text(page, server):
    bad = "<img/src=x/onerror=alert(1)>"
    given = json.dumps(f"a {bad} b")
    changes = f"first={given}&second={given}&word={json.dumps(bad)}".replace("<", "%3C").replace(">", "%3E")
    go(page, server, f"#/learn/bidirectional?{changes}")
    page.wait_for_selector(".lesson-checks")
    assert bad in page.locator(".result[data-value=onward_first]").inner_text()
    assert page.locator("#app img:not(.preview), #app script, #app [onerror]").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize(("width", "theme"), [(1280, "dark"), (390, "light")])
def test_lessons_fit_the_screen_and_their_controls_have_accessible_names(browser, server, width, theme):
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=theme)
    page, number = context.new_page(), server.models()["transformer"]
    try:
        for where in (
            "",
            "/positions",
            "/translation-scores",
            "/stack",
            "/noam",
            "/sizes",
            f'/beam-search?model="{number}"&limit=4',
        ):
            go(page, server, f"#/learn{where}")
            page.wait_for_selector(".lessons, .lesson-checks")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, where
            nameless = page.evaluate(
                """() => [...document.querySelectorAll("button, input, textarea, select, a, [role=img], [role=group]")]
                    .filter((e) => e.checkVisibility() && !e.getAttribute("aria-label"))
                    .filter((e) => !(e.textContent.trim() || e.title || e.labels?.length))
                    .map((e) => e.outerHTML.slice(0, 120))"""
            )
            assert nameless == [], where
    finally:
        context.close()


@pytest.mark.slow
def test_an_exercise_is_answered_on_the_page_and_the_figure_has_the_lessons_numbers(page, server):
    go(page, server, "#/learn/rnn")
    field = page.get_by_label("Answer to exercise 1", exact=True)
    field.fill("1 1 1")
    field.press("Enter")
    result = page.locator(".lesson-exercises li").first.locator(".exercise-result")
    result.get_by_text("2 of 3 numbers are right; hint:").wait_for()
    page.get_by_label("x, input 1", exact=True).fill("2")
    until(page, "document.querySelector('.result[data-value=o]').classList.contains('changed')")
    assert field.input_value() == "1 1 1"  # what was typed stays while numbers change
    titles = page.locator(".lesson-figure .figure-cell title").all_text_contents()
    assert {"2", "1", "-1"} <= set(titles)
    field.fill("0 1 1")
    page.get_by_label("Check the answer to exercise 1").click()
    result.get_by_text("right").wait_for()
    page.get_by_label("Show the answer to exercise 2").click()
    page.locator(".exercise-result a").wait_for()
    assert page.locator(".exercise-result b").inner_text() == "21"
    assert page.locator(".lesson-reading dd").count() == 3
