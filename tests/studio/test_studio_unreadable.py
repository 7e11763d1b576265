"""Damaged and hostile runs in the studio: each is one row of the list, and no request ends in status 500."""

from __future__ import annotations

import pytest


def test_a_strange_run_is_one_row_that_says_why(strange) -> None:
    response = strange.get("/api/v1/models")
    rows = {row["name"]: row for row in response.table["models"]}
    assert response.status == 200 and len(rows) == 6
    assert rows["good"]["unreadable"] is None and rows["good"]["usable"]
    assert rows["fifo"]["unreadable"].endswith("recipe.toml: cannot be read (it is a FIFO, expected a file)")
    assert "recipe.toml" in rows["nested"]["unreadable"] and not rows["nested"]["usable"]
    assert "state.json" in rows["infinite"]["unreadable"]


def test_no_request_about_a_strange_run_ends_in_500(strange) -> None:
    for row in strange.get("/api/v1/models").table["models"]:
        for path in (f"models/{row['id']}", f"runs/{row['id']}/metrics", f"embeddings/{row['id']}/neighbors?word=a"):
            assert strange.get(f"/api/v1/{path}").status < 500, (row["name"], path)
        for path in ("traces", "tokenize"):
            status = strange.post(f"/api/v1/{path}", {"model": row["id"], "text": "je suis"}).status
            assert status < 500, (row["name"], path, status)
    assert strange.trace("good", "je suis")["id"]


@pytest.mark.parametrize("kind", [[], {}, ["head"], None, 1])
def test_a_kind_that_is_no_text_is_refused(strange, kind) -> None:
    trace = strange.trace("good", "je suis")
    response = strange.post(f"/api/v1/traces/{trace['id']}/fork", {"change": {"kind": kind}})
    assert response.status == 422 and response.error["message"].startswith("change.kind: expected one of head, row, ")


@pytest.mark.parametrize("changes", [{"model": []}, {"model": [[]]}, {"models": []}, {"model": {}}])
def test_a_lesson_without_the_id_of_a_model_is_refused(strange, changes) -> None:
    response = strange.post("/api/v1/lessons/transformer", {"changes": changes})
    assert response.status == 422 and response.error["message"].endswith("expected the id of a model")
