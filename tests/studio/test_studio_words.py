"""Words as points in the studio: the server's numbers are the table's, and the page shows them."""

from urllib.parse import urlencode

import numpy as np
import pytest

import regard
from browsing import faultless, go, shows, until
from regard.look.tokens import visible
from regard.studio import embeddings_api
from regard.studio.errors import Refusal
from regard.tasks.vectors.embeddings import embeddings

SOME = ["cat", "dog", "saw", "drill", "eats"]


def told(server, name, what, **query):
    return server.get(f"/api/v1/embeddings/{server.models()[name]}/{what}?{urlencode(query)}")


def listed(near):
    return [{"word": word, "shown": visible(word), "cosine": cosine} for word, cosine in near]


@pytest.mark.parametrize(("name", "side"), [("words", "source"), ("transformer", "source"), ("transformer", "target")])
def test_the_server_tells_the_numbers_of_the_table_bit_for_bit(worded, wordy, name, side):
    table = embeddings(regard.load(wordy / name), side)
    every = [table.spelled(at) for at in range(len(table))]
    words = [word for word in every if not any(map(str.isspace, word))][:5]
    one, sum_of = every[-1], f"{words[0]} - {words[1]} + {words[2]}"
    found = told(worded, name, "neighbors", word=one, side=side, count=4).table
    assert (found["word"], found["side"], found["near"]) == (one, side, listed(table.neighbours(one, 4)))
    assert told(worded, name, "analogy", sum=sum_of, side=side).table["near"] == listed(table.calculate(sum_of))
    drawn, wanted = told(worded, name, "map", words=" ".join(words), side=side).table, table.map(words)
    assert [[spot["x"], spot["y"]] for spot in drawn["words"]] == wanted.points.tolist()
    assert ([spot["word"] for spot in drawn["words"]], drawn["shares"]) == (words, list(wanted.shares))
    assert (drawn["size"], drawn["width"]) == table.numbers.shape


def test_without_words_some_whole_ones_are_drawn(worded):
    drawn = told(worded, "transformer", "map").table
    assert drawn["sides"] == ["source", "target"] and drawn["side"] == "source"
    assert 3 <= len(drawn["words"]) <= 40
    assert all(spot["word"].startswith(" ") and spot["word"].strip().isalpha() for spot in drawn["words"])
    assert {spot["word"] for spot in told(worded, "words", "map").table["words"]} >= set(SOME)


def test_a_piece_that_begins_a_word_is_found_by_the_word_and_by_how_it_is_shown(worded):
    piece = told(worded, "transformer", "map").table["words"][0]
    assert piece["shown"] == f"␣{piece['word'][1:]}"
    assert told(worded, "transformer", "neighbors", word=piece["shown"]).table["word"] == piece["word"]
    again = told(worded, "transformer", "map", words=f"{piece['shown']} a e i").table
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
        ("neighbors", {"word": "x" * 2001}, 413, "too-long", "at most 2,000 are read"),
        ("analogy", {"sum": "cat dog"}, 422, "bad-request", "expected words with + and - between them"),
        ("analogy", {"sum": "cat - dgo + saw"}, 404, "unknown-word", "did you mean dog"),
        ("map", {"words": "cat dog"}, 422, "bad-request", "at least 3 words, got 2"),
        ("map", {"words": "cat " * 201}, 413, "too-many", "at most 200 are drawn"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_the_reason(worded, what, query, status, code, message):
    said = told(worded, "words", what, **query)
    assert (said.status, said.error["code"]) == (status, code) and message in said.error["message"]
    assert told(worded, "words", "neighbors", word="cat").status == 200


def test_a_model_without_words_says_so_and_is_listed_without(answering):
    said = told(answering, "teller", "map")
    assert (said.status, said.error["code"]) == (422, "no-words")
    assert "trained to forecast on these data has no vectors of words" in said.error["message"]
    words = {model["name"]: model["words"] for model in answering.get("/api/v1/models").table["models"]}
    assert words == {"critic": True, "tagger": True, "teller": False}


def test_a_second_question_makes_no_table_again(worded, monkeypatch):
    first = told(worded, "words", "neighbors", word="cat").table

    def refuse(model):
        raise AssertionError("the table was there")

    monkeypatch.setattr(embeddings_api, "tables", refuse)
    assert told(worded, "words", "neighbors", word="cat").table == first


def test_vectors_that_are_no_numbers_any_more_are_told(wordy):
    model = regard.load(wordy / "words")
    model.module.embed.weight.data[7, 1] = float("nan")
    with pytest.raises(Refusal, match="not finite any more"):
        embeddings_api.tables(model)


def test_word_vectors_cannot_be_asked_for_a_trace(worded):
    said = worded.post("/api/v1/traces", {"model": worded.models()["words"], "text": "cat"})
    assert (said.status, said.error["code"]) == (422, "no-sentence")


@pytest.fixture
def opened(browser, worded):
    with faultless(browser, worded.address) as page:
        yield page


def rows(page, label):
    """The words and cosines of a list, once it is there."""
    found = page.get_by_role("region", name=label, exact=True).locator("tbody tr")
    found.first.wait_for()
    return [(row.locator("th").inner_text(), row.locator("td").first.inner_text()) for row in found.all()]


def equal(shown, near):
    return len(shown) == len(near) and all(
        word == found["shown"] and shows(text, found["cosine"]) for (word, text), found in zip(shown, near)
    )


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_the_page_shows_the_neighbours_and_sums_that_the_server_tells(opened, worded):
    number = worded.models()["words"]
    go(opened, worded, f"#/embed/{number}?word=cat&sum=cat+-+dog+%2B+saw")
    near = told(worded, "words", "neighbors", word="cat").table["near"]
    assert equal(rows(opened, "Neighbours of cat"), near)
    answers = told(worded, "words", "analogy", sum="cat - dog + saw").table["near"]
    assert equal(rows(opened, "Nearest to cat - dog + saw"), answers)
    nearest = near[0]["shown"]
    opened.get_by_role("region", name="Neighbours of cat").get_by_role("button").first.click()
    assert equal(
        rows(opened, f"Neighbours of {nearest}"), told(worded, "words", "neighbors", word=nearest).table["near"]
    )
    assert opened.get_by_label("Word", exact=True).input_value() == nearest
    assert f"word={nearest}" in opened.evaluate("location.hash")
    opened.get_by_label("Word", exact=True).fill("catt")
    opened.get_by_role("button", name="Find").click()
    opened.locator(".bad", has_text='"catt" is none of the').wait_for()
    assert opened.get_by_role("region", name="Neighbours of").count() == 0
    opened.get_by_label("Word", exact=True).fill("dog")
    opened.keyboard.press("Enter")
    assert rows(opened, "Neighbours of dog") and opened.locator(".bad", has_text="catt").count() == 0


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_the_map_has_one_scale_and_a_dot_tells_its_neighbours(opened, worded):
    go(opened, worded, f"#/embed/{worded.models()['words']}?words={'+'.join(SOME)}")
    dots = opened.locator(".spot .point")
    dots.first.wait_for()
    wanted = told(worded, "words", "map", words=" ".join(SOME)).table
    drawn = np.array([[float(dot.get_attribute("cx")), -float(dot.get_attribute("cy"))] for dot in dots.all()])
    points = np.array([[spot["x"], spot["y"]] for spot in wanted["words"]])
    apart, seen = points[1:] - points[0], drawn[1:] - drawn[0]
    np.testing.assert_allclose(seen, apart * (np.linalg.norm(seen) / np.linalg.norm(apart)), atol=1e-6)
    across, up = (f"{100 * share:.1f} %" for share in wanted["shares"])
    assert f"across {across}, up {up} of the variance" in opened.locator("section", has=dots).inner_text()
    drill = opened.locator(".spot[aria-label=drill]")
    drill.click()
    assert rows(opened, "Neighbours of drill")
    drill.focus()
    for _ in SOME:
        opened.keyboard.press("ArrowLeft")
    leftmost = SOME[drawn[:, 0].argmin()]
    assert opened.evaluate("document.activeElement.getAttribute('aria-label')") == leftmost
    opened.keyboard.press("Enter")
    assert rows(opened, f"Neighbours of {leftmost}")
    opened.get_by_role("button", name="Put them on the map").click()
    until(opened, "(before) => document.querySelectorAll('.spot').length > before", len(SOME))
    opened.set_viewport_size({"width": 390, "height": 844})
    until(opened, "document.querySelector('.word-map').viewBox.baseVal.width < 360")
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_what_a_translator_says_has_words_of_its_own(opened, worded):
    go(opened, worded, "#/")
    opened.locator("tr", has_text="transformer").get_by_role("link", name="Words").click()
    opened.get_by_role("button", name="says").click()
    opened.locator("button[aria-pressed=true]", has_text="says").wait_for()
    first = told(worded, "transformer", "map", side="target").table["words"][0]
    near = told(worded, "transformer", "neighbors", side="target", word=first["word"]).table["near"]
    assert equal(rows(opened, f"Neighbours of {first['shown']}"), near)
    assert "side=target" in opened.evaluate("location.hash")


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_word_vectors_open_on_their_words_wherever_they_are_chosen(opened, worded):
    number = worded.models()["words"]
    title = opened.get_by_role("heading", name="Words of words")
    go(opened, worded, "#/")
    assert opened.get_by_role("link", name="Compare them").count() == 0
    opened.locator("tr", has_text="word2vec").get_by_role("button", name="Use").click()
    title.wait_for()
    opened.get_by_label("Word or sum").fill("cat - dog + saw")
    opened.get_by_role("button", name="Run", exact=True).click()
    assert rows(opened, "Nearest to cat - dog + saw")
    go(opened, worded, f"#/runs/{number}")
    assert opened.get_by_role("heading", name="Training of words").is_visible()
    opened.get_by_label("Model", exact=True).select_option(label="transformer")
    opened.get_by_label("Model", exact=True).select_option(label="words")
    assert not title.is_visible()  # who goes through the list by keyboard stays
    opened.get_by_label("Word or sum").fill("")
    opened.get_by_role("button", name="Run", exact=True).click()
    title.wait_for()
