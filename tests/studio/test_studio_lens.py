"""The tab Lens of models that give labels, and of decoders that read a context: the numbers of the Python API."""

import numpy as np
import pytest

import regard
from browsing import open_page, shows

SENTENCE, NAMES, SOURCE = "this movie is great", "Ada lives in Oslo .", "je suis étudiant"


@pytest.mark.parametrize(
    ("where", "runs", "name", "text"),
    [
        ("single_pass_server", "readers", "critic", SENTENCE),
        ("single_pass_server", "readers", "tagger", NAMES),
        ("server", "folder", "rnnsearch", SOURCE),
        ("server", "folder", "seq2seq", SOURCE),
    ],
)
def test_the_lens_shows_what_each_layer_would_answer(request, browser, where, runs, name, text):
    server, model = request.getfixturevalue(where), regard.load(request.getfixturevalue(runs) / name)
    trace = server.trace(name, text)
    with model.record() as recording:
        model.run_for_trace(text)
    view = recording.lens()
    with open_page(browser, server.address) as page:
        page.goto(f"{server.address}/#/t/{trace['id']}?tab=lens")
        grid = page.locator(".token-grid")
        grid.locator("tbody tr").first.wait_for()
        rows = grid.locator("tbody th").all_inner_texts()
        assert rows[-len(view.layers) :] == view.layers[::-1]
        above = rows[: -len(view.layers)]
        assert above == ([] if view.whole else ["answer" if view.actual_title == "answer" else "next token"])
        notes = page.locator(".lens-note").all_inner_texts()
        assert notes == [f"Note: {note}." for note in view.notes]
        shown = [float(part.replace("<", "")) for part in grid.locator("td small").all_inner_texts()]
        expected = view.probabilities[::-1, 0] if view.whole else view.probabilities[::-1, :, 0]
        np.testing.assert_allclose(shown, expected[:, :5].ravel() if view.whole else expected.ravel(), atol=6e-3)
        grid.locator("tbody tr").last.locator("td").first.click()
        best = page.locator(".lens-details tbody td:nth-child(3)").all_inner_texts()
        assert all(shows(text, value) for text, value in zip(best, view.probabilities[0, 0].tolist()))
        heading = page.locator(".lens-details h2").inner_text()
        assert heading.startswith(view.layers[0]) and ("position" in heading) != view.whole
        if view.actual_title == "answer":
            marked = grid.locator("tbody tr").nth(len(above)).locator("td.marked")
            top = [best[0] == actual for best, actual in zip(view.candidates[-1], view.actual)]
            assert marked.count() == sum(top)


def test_a_model_of_numbers_has_no_lens(single_pass_server, readers):
    series = single_pass_server.get(f"/api/v1/models/{single_pass_server.models()['teller']}/example").table["text"]
    trace = single_pass_server.trace("teller", series)
    assert trace["lens"] is None and "lens.ids" not in {tensor["name"] for tensor in trace["tensors"]}
