"""Word embeddings: the server sends the numbers of the word table, and the page shows them."""

from urllib.parse import urlencode

import numpy as np
import pytest

import regard
from browsing import go, open_page, shows, until
from regard.look.tokens import make_visible
from regard.studio import embeddings_api
from regard.studio.errors import ApiError
from regard.tasks.vectors.predict import embedding_table

WORDS = ["cat", "dog", "saw", "drill", "eats"]


def ask(server, name, what, **query):
    return server.get(f"/api/v1/embeddings/{server.models()[name]}/{what}?{urlencode(query)}")


def neighbor_dicts(neighbors):
    labels = {word: make_visible(word.removeprefix(" ")) for word, _ in neighbors}
    return [{"word": word, "label": labels[word], "cosine": cosine} for word, cosine in neighbors]


@pytest.mark.parametrize(("name", "side"), [("words", "source"), ("transformer", "source"), ("transformer", "target")])
def test_the_server_sends_the_numbers_of_the_table_to_the_bit(words_server, words_folder, name, side):
    table = embedding_table(regard.load(words_folder / name), side)
    every = [table.display_word(at) for at in range(len(table))]
    words = [word for word in every if not any(map(str.isspace, word))][:5]
    one, sum_of = every[-1], f"{words[0]} - {words[1]} + {words[2]}"
    found = ask(words_server, name, "neighbors", word=one, side=side, count=4).table
    assert (found["word"], found["side"], found["neighbors"]) == (one, side, neighbor_dicts(table.neighbors(one, 4)))
    assert ask(words_server, name, "analogy", sum=sum_of, side=side).table["neighbors"] == neighbor_dicts(
        table.analogy(sum_of)
    )
    word_map, expected = ask(words_server, name, "map", words=" ".join(words), side=side).table, table.pca_map(words)
    assert [[point["x"], point["y"]] for point in word_map["words"]] == expected.points.tolist()
    assert ([point["word"] for point in word_map["words"]], word_map["explained_variance"]) == (
        words,
        list(expected.explained_variance),
    )
    assert (word_map["size"], word_map["width"]) == table.vectors.shape


def test_a_map_without_words_has_some_whole_words(words_server):
    word_map = ask(words_server, "transformer", "map").table
    assert word_map["sides"] == ["source", "target"] and word_map["side"] == "source"
    assert 3 <= len(word_map["words"]) <= 40
    assert all(point["word"].startswith(" ") and point["word"].strip().isalpha() for point in word_map["words"])
    assert {point["word"] for point in ask(words_server, "words", "map").table["words"]} >= set(WORDS)


def test_a_subword_is_found_by_the_word_and_by_its_label(words_server):
    piece = ask(words_server, "transformer", "map").table["words"][0]
    assert piece["word"] == f" {piece['label']}"
    assert ask(words_server, "transformer", "neighbors", word=piece["label"]).table["word"] == piece["word"]
    again = ask(words_server, "transformer", "map", words=f"{piece['label']} a e i").table
    assert again["words"][0]["word"] == piece["word"]


@pytest.mark.parametrize(
    ("what", "query", "status", "code", "message"),
    [
        ("neighbors", {"word": "catt"}, 404, "unknown-word", "did you mean cat"),
        ("neighbors", {}, 422, "no-text", "word: expected words, got nothing"),
        ("neighbors", {"word": "cat", "count": 0}, 422, "bad-request", "expected 1 to 100, got 0"),
        ("neighbors", {"word": "cat", "count": 101}, 422, "bad-request", "expected 1 to 100, got 101"),
        ("neighbors", {"word": "cat", "count": "many"}, 422, "bad-request", "expected a whole number"),
        ("neighbors", {"word": "cat", "side": "target"}, 422, "no-side", "this model has source, got 'target'"),
        ("neighbors", {"word": "x" * 2001}, 413, "too-long", "the limit is 2,000"),
        ("analogy", {"sum": "cat dog"}, 422, "bad-request", "expected words with + and - between them"),
        ("analogy", {"sum": "cat - dgo + saw"}, 404, "unknown-word", "did you mean dog"),
        ("map", {"words": "cat dog"}, 422, "bad-request", "at least 3 words, got 2"),
        ("map", {"words": "cat " * 201}, 413, "too-many", "a map has at most 200"),
    ],
)
def test_invalid_requests_are_refused_with_a_message(words_server, what, query, status, code, message):
    response = ask(words_server, "words", what, **query)
    assert (response.status, response.error["code"]) == (status, code) and message in response.error["message"]
    assert ask(words_server, "words", "neighbors", word="cat").status == 200


def test_a_model_without_word_embeddings_is_reported(single_pass_server):
    response = ask(single_pass_server, "teller", "map")
    assert (response.status, response.error["code"]) == (422, "no-words")
    assert "trained to forecast on these data has no word vectors" in response.error["message"]
    words = {model["name"]: model["words"] for model in single_pass_server.get("/api/v1/models").table["models"]}
    assert words == {"critic": True, "tagger": True, "teller": False}


def test_tables_are_cached(words_server, monkeypatch):
    first = ask(words_server, "words", "neighbors", word="cat").table

    def refuse(model):
        raise AssertionError("the table is cached")

    monkeypatch.setattr(embeddings_api, "load_tables", refuse)
    assert ask(words_server, "words", "neighbors", word="cat").table == first


def test_vectors_that_are_not_finite_are_reported(words_folder):
    model = regard.load(words_folder / "words")
    model.module.embed.weight.data[7, 1] = float("nan")
    with pytest.raises(ApiError, match="not finite"):
        embeddings_api.load_tables(model)


def test_word_vectors_cannot_be_traced(words_server):
    response = words_server.post("/api/v1/traces", {"model": words_server.models()["words"], "text": "cat"})
    assert (response.status, response.error["code"]) == (422, "no-sentence")


@pytest.fixture
def page(browser, words_server):
    with open_page(browser, words_server.address) as page:
        yield page


def rows(page, label):
    """Words and cosines of a list on the page."""
    found = page.get_by_role("region", name=label, exact=True).locator("tbody tr")
    found.first.wait_for()
    return [(row.locator("th").inner_text(), row.locator("td").first.inner_text()) for row in found.all()]


def equals(rows_, neighbors):
    return len(rows_) == len(neighbors) and all(
        word == found["label"] and shows(text, found["cosine"]) for (word, text), found in zip(rows_, neighbors)
    )


@pytest.mark.slow
def test_the_page_shows_neighbors_and_analogies(page, words_server):
    model_id = words_server.models()["words"]
    go(page, words_server, f"#/embed/{model_id}?word=cat&sum=cat+-+dog+%2B+saw")
    neighbors = ask(words_server, "words", "neighbors", word="cat").table["neighbors"]
    assert equals(rows(page, "Neighbors of cat"), neighbors)
    answers = ask(words_server, "words", "analogy", sum="cat - dog + saw").table["neighbors"]
    assert equals(rows(page, "Nearest to cat - dog + saw"), answers)
    nearest = neighbors[0]["label"]
    page.get_by_role("region", name="Neighbors of cat").get_by_role("button").first.click()
    assert equals(
        rows(page, f"Neighbors of {nearest}"), ask(words_server, "words", "neighbors", word=nearest).table["neighbors"]
    )
    assert page.get_by_label("Word", exact=True).input_value() == nearest
    assert f"word={nearest}" in page.evaluate("location.hash")
    page.get_by_label("Word", exact=True).fill("catt")
    page.get_by_role("button", name="Find").click()
    page.locator(".bad", has_text='"catt" is none of the').wait_for()
    assert page.get_by_role("region", name="Neighbors of").count() == 0
    page.get_by_label("Word", exact=True).fill("dog")
    page.keyboard.press("Enter")
    assert rows(page, "Neighbors of dog") and page.locator(".bad", has_text="catt").count() == 0


@pytest.mark.slow
def test_the_map_keeps_proportions_and_a_point_shows_its_neighbors(page, words_server):
    go(page, words_server, f"#/embed/{words_server.models()['words']}?words={'+'.join(WORDS)}")
    dots = page.locator(".map-point .point")
    dots.first.wait_for()
    expected = ask(words_server, "words", "map", words=" ".join(WORDS)).table
    word_map = np.array([[float(dot.get_attribute("cx")), -float(dot.get_attribute("cy"))] for dot in dots.all()])
    points = np.array([[point["x"], point["y"]] for point in expected["words"]])
    differences, drawn_differences = points[1:] - points[0], word_map[1:] - word_map[0]
    np.testing.assert_allclose(
        drawn_differences, differences * (np.linalg.norm(drawn_differences) / np.linalg.norm(differences)), atol=1e-6
    )
    across, up = (f"{100 * share:.1f} %" for share in expected["explained_variance"])
    assert f"horizontal {across}, vertical {up} of the variance" in page.locator("section", has=dots).inner_text()
    drill = page.locator(".map-point[aria-label=drill]")
    drill.click()
    assert rows(page, "Neighbors of drill")
    drill.focus()
    for _ in WORDS:
        page.keyboard.press("ArrowLeft")
    leftmost = WORDS[word_map[:, 0].argmin()]
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == leftmost
    page.keyboard.press("Enter")
    assert rows(page, f"Neighbors of {leftmost}")
    page.get_by_role("button", name="Add to the map").click()
    until(page, "(before) => document.querySelectorAll('.map-point').length > before", len(WORDS))
    page.set_viewport_size({"width": 390, "height": 844})
    until(page, "document.querySelector('.word-map').viewBox.baseVal.width < 360")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
def test_a_translator_has_target_embeddings(page, words_server):
    go(page, words_server, "#/")
    page.locator("tr", has_text="transformer").get_by_role("link", name="Words").click()
    page.get_by_role("button", name="target").click()
    page.locator("button[aria-pressed=true]", has_text="target").wait_for()
    first = ask(words_server, "transformer", "map", side="target").table["words"][0]
    neighbors = ask(words_server, "transformer", "neighbors", side="target", word=first["word"]).table["neighbors"]
    assert equals(rows(page, f"Neighbors of {first['label']}"), neighbors)
    assert "side=target" in page.evaluate("location.hash")


@pytest.mark.slow
def test_a_word_vector_model_opens_its_words_from_every_screen(page, words_server):
    model_id = words_server.models()["words"]
    title = page.get_by_role("heading", name="Words of words")
    go(page, words_server, "#/")
    assert page.get_by_role("link", name="Compare them").count() == 0
    page.locator("tr", has_text="word2vec").get_by_role("button", name="Use").click()
    title.wait_for()
    page.get_by_label("Word or sum").fill("cat - dog + saw")
    page.get_by_role("button", name="Run", exact=True).click()
    assert rows(page, "Nearest to cat - dog + saw")
    go(page, words_server, f"#/runs/{model_id}")
    assert page.get_by_role("heading", name="Training of words").is_visible()
    page.get_by_label("Model", exact=True).select_option(label="transformer")
    page.get_by_label("Model", exact=True).select_option(label="words")
    assert not title.is_visible()  # selecting in the list does not navigate
    page.get_by_label("Word or sum").fill("")
    page.get_by_role("button", name="Run", exact=True).click()
    title.wait_for()
