"""The built-in example: small, by its recipe, traced before the page is served, and open to sentences of one's own."""

from pathlib import Path

import pytest

import regard
from browsing import go
from regard.studio import example


def test_the_package_holds_a_small_model_that_was_trained_by_its_recipe(tmp_path):
    folder = Path(example.__file__).parent
    assert (folder / "example.regard").stat().st_size < 1 << 20
    packed = example.Example(tmp_path)
    assert packed.ready() is None
    packed.extract()
    packed.extract()
    model = regard.load(packed.path)
    assert model.recipe == regard.Recipe.read(folder / "example.toml")
    assert model.translate(example.TEXT) == "I am a student"
    assert [path.name for path in tmp_path.iterdir()] == [packed.path.name]


def test_a_studio_without_models_starts_with_the_trace_of_the_example(empty):
    assert empty.get("/api/v1/models").table == {"models": []}
    assert empty.studio.start() == "#/t/example"
    assert [model["name"] for model in empty.get("/api/v1/models").table["models"]] == ["built-in example"]
    trace = empty.get("/api/v1/traces/example").table
    assert (trace["text"], trace["answer"], trace["model"]["untrained"]) == (
        "je suis étudiant",
        "I am a student",
        False,
    )
    assert empty.studio.start() == "#/t/example"
    assert empty.get("/api/v1/traces/example").table["created"] == trace["created"]
    assert empty.trace("built-in example", "il mange une pomme")["answer"] == "he eats an apple"


@pytest.mark.slow
def test_the_start_page_of_an_empty_folder_leads_to_tour_picture_and_lessons(browser, empty):
    from browsing import open_page

    empty.studio.start()
    with open_page(browser, empty.address) as page:
        go(page, empty, "#/")
        links = page.locator(".first-steps a").evaluate_all("all => all.map((a) => a.getAttribute('href'))")
        assert links == ["#/t/example?tour=", "#/t/example", "#/learn"]
        page.get_by_role("link", name="Take the tour").click()
        page.wait_for_selector(".tour[data-stop='tokens']")
