"""The line of systems in the studio: the API, and the start page in a browser."""

import json

import pytest

from browsing import go
from regard.line.table import line_table


def test_the_api_gives_the_line_with_the_models_of_each_kind(server):
    table = server.get("/api/v1/line").table
    ids = server.models()
    models = {row["id"]: [model["id"] for model in row["models"]] for row in table["entries"]}
    assert models["transformer"] == [ids["transformer"]] and models["rnnsearch"] == [ids["rnnsearch"]]
    assert models["seq2seq"] == models["lstm"] == [ids["seq2seq"]] and models["gru"] == models["perceptron"] == []
    for row in table["entries"]:
        del row["models"]
    assert table == line_table()


def test_the_line_is_shown_without_models(bare_server):
    assert all(row["models"] == [] for row in bare_server.get("/api/v1/line").table["entries"])


@pytest.mark.slow
def test_the_start_page_shows_the_line_and_leads_to_lessons_and_models(page, server):
    go(page, server, "#/")
    rows = page.locator(".line > li")
    table = line_table()
    assert rows.count() == len(table["entries"]) + len(table["events"])
    years = [int(text[:4]) for text in rows.all_inner_texts()]
    assert years == sorted(years)
    assert page.locator(".line .undisclosed b").all_inner_texts() == ["2022: GPT-3.5", "2023: GPT-4"]
    system = page.locator('[data-system="rnnsearch"]')
    system.locator("summary").click()
    entry = next(row for row in table["entries"] if row["id"] == "rnnsearch")
    shown = system.inner_text()
    for text in (entry["paper"], entry["new"], entry["file"], f"{entry['lines']} lines", entry["command"]):
        assert text in shown
    assert entry["result"] in shown
    system.get_by_role("button", name="Use rnnsearch").click()
    chosen = page.get_by_label("Model", exact=True).evaluate("select => select.selectedOptions[0].textContent")
    assert "rnnsearch" in json.dumps(chosen)
    system.get_by_role("link", name="bahdanau").click()
    page.wait_for_selector("h1:text('Additive attention')")
