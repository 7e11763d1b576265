"""API endpoints of lessons, which are computed here with the package's layers and models and drawn by the page."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree

from starlette.responses import JSONResponse, Response

from regard.errors import ConfigError
from regard.lessons.catalogue import LESSONS, find_exercise, lesson_plan, solve, teach
from regard.lessons.engine.cached_models import missing_models
from regard.lessons.engine.exercises import MAX_ANSWER, format_solution, grade
from regard.lessons.engine.formatting import format_brief, format_cells, format_table
from regard.lessons.engine.formula import mathml
from regard.lessons.engine.lesson import Data, Lesson, Value, shape
from regard.lessons.engine.reading import node_label
from regard.studio.errors import ApiError
from regard.studio.request import ApiRequest
from regard.studio.service import Studio

MAX_CHARACTERS = 500
"""length of a text input"""
MAX_ORIGINAL = 16
"""size of a result up to which the original is sent with a changed one"""
RUN_INPUTS = ("model", "models")
"""inputs that name runs: the page sends the ids of models, never paths"""


def list_lessons(studio: Studio, request: ApiRequest) -> Response:
    """The table of contents."""
    return JSONResponse({"lessons": [{"name": name, **entry_dict(name)} for name in LESSONS]})


def entry_dict(name: str) -> dict[str, str]:
    """Part, title and summary of a lesson."""
    entry = LESSONS[name]
    return {"part": entry.part, "title": entry.title, "summary": entry.summary}


class LessonsApi:
    """Computes one lesson at a time, and trains the small models that some of them inspect."""

    def __init__(self) -> None:
        self._compute_lock, self._lock = threading.Lock(), threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._started, self._error, self._closed = 0.0, "", False

    def show(self, studio: Studio, request: ApiRequest) -> Response:
        """A lesson with its default inputs; status 202 if its models are not trained yet. Nothing is started."""
        return self._respond(studio, request, may_train=False)

    def train_and_show(self, studio: Studio, request: ApiRequest) -> Response:
        """A lesson with changed inputs, if there are any; missing models are trained, with status 202 until then."""
        return self._respond(studio, request, may_train=True)

    def _respond(self, studio: Studio, request: ApiRequest, may_train: bool) -> Response:
        name = request.path["lesson"]
        if name not in LESSONS:
            raise ApiError(404, "unknown-lesson", "no such lesson", "choose one of the list")
        changes = request.body.get("changes", {})
        if not isinstance(changes, dict):
            raise ApiError(422, "bad-request", "changes: expected an object", "fix the request")
        for value in changes.values():
            check_lengths(value)
        chosen_runs = {key: value for key, value in changes.items() if key in RUN_INPUTS}
        try:
            lesson_plan(name).resolve({key: value for key, value in changes.items() if key not in RUN_INPUTS})
            if not chosen_runs and (status := self.training_status(name, may_train)):
                return JSONResponse(status | entry_dict(name), 202)
            with self._compute_lock:
                lesson = teach(name, resolve_runs(studio, changes))
                original = original_lesson(name) if lesson.changed_inputs and not chosen_runs else None
        except ConfigError as error:
            raise ApiError(422, "input", str(error), "change it, or reset the lesson") from None
        runs = {"runs": selectable_runs(studio, name), "chosen": chosen_runs}
        return JSONResponse(lesson_dict(lesson, original) | runs)

    def check_answer(self, studio: Studio, request: ApiRequest) -> Response:
        """Whether the answer to an exercise is right; without an answer: the solution."""
        name, number, answer = request.path["lesson"], request.body.get("number"), request.body.get("answer")
        if name not in LESSONS:
            raise ApiError(404, "unknown-lesson", "no such lesson", "choose one of the list")
        if isinstance(number, bool) or not isinstance(number, int) or not isinstance(answer, str | None):
            message = "expected a number and a text as the answer"
            raise ApiError(422, "bad-request", message, "fix the request")
        if answer is not None and len(answer) > MAX_ANSWER:
            raise ApiError(413, "too-long", f"an answer has at most {MAX_ANSWER} characters", "shorten it")
        chosen = request.body.get("chosen", {})
        if not isinstance(chosen, dict) or set(chosen) - set(RUN_INPUTS):
            raise ApiError(422, "bad-request", "chosen: expected the chosen models", "fix the request")
        if not chosen and missing_models(LESSONS[name].needs):
            raise ApiError(409, "not-trained", "the model of this lesson is not trained yet", "open the lesson first")
        try:
            exercise = find_exercise(name, number)
            with self._compute_lock:
                expected = solve(name, exercise, resolve_runs(studio, chosen)) if chosen else solution(name, number)
        except ConfigError as error:
            raise ApiError(422, "input", str(error), "choose another exercise") from None
        if answer is None:
            return JSONResponse({"solution": format_solution(expected), "changes": dict(exercise.changes)})
        result = grade(answer, expected, exercise.tolerance)
        return JSONResponse({"right": result.right, "message": result.message, "hint": exercise.hint})

    def training_status(self, name: str, may_train: bool = True) -> dict[str, Any] | None:
        """The missing models of a lesson, whose training is started if it may be; None if there are none."""
        missing = missing_models(LESSONS[name].needs)
        if not missing:
            return None
        with self._lock:
            if may_train and self._error:
                message, self._error = self._error, ""
                raise ApiError(500, "not-trained", message, "reload the page to try again")
            if may_train and not self._started and not self._closed:
                self._started = time.monotonic()
                threading.Thread(target=self._train, args=(name,), daemon=True).start()
            seconds = round(time.monotonic() - self._started, 1) if self._started else None
            return {"training": missing, "seconds": seconds}

    def close(self) -> None:
        """Stop training."""
        self._closed = True
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(20)

    def _train(self, name: str) -> None:
        """Run the lesson's command in a process of its own, which can be stopped."""
        try:
            command = [sys.executable, "-m", "regard", "lesson", name, "--json"]
            pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
            self._process = subprocess.Popen(command, text=True, encoding="utf-8", errors="replace", **pipes)  # type: ignore[call-overload]
            _, stderr = self._process.communicate()
            if self._process.returncode and not self._closed:
                self._error = f"the model of this lesson could not be trained: {stderr.strip()[-300:]}"
        except OSError as error:
            self._error = f"the model of this lesson could not be trained: {error}"
        finally:
            self._started = 0.0


def check_lengths(value: Any) -> None:
    """Refuse long texts in an input."""
    if isinstance(value, str) and len(value) > MAX_CHARACTERS:
        message = f"a text input of a lesson has at most {MAX_CHARACTERS} characters"
        raise ApiError(413, "too-long", message, "shorten it")
    for item in value if isinstance(value, list) else []:
        check_lengths(item)


def resolve_runs(studio: Studio, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changed inputs, with the ids of models replaced by the paths of their runs."""
    resolved = dict(changes)
    for name in set(RUN_INPUTS) & set(changes):
        ids = changes[name] if isinstance(changes[name], list) else [changes[name]]
        if not ids or not all(isinstance(model_id, str) for model_id in ids):
            raise ApiError(422, "bad-request", f"{name}: expected the id of a model", "choose one of the list")
        paths = [str(studio.model_store.entry(model_id).path) for model_id in ids]
        resolved[name] = paths if name == "models" else paths[0]
    return resolved


def selectable_runs(studio: Studio, name: str) -> list[dict[str, str]]:
    """Translation models that a lesson can inspect instead of its own; none if it inspects none."""
    if not LESSONS[name].needs:
        return []
    rows = [entry.to_dict() for entry in studio.model_store.entries() if entry.usable]
    rows = [row for row in rows if row["task"] == "translate"]
    if len(LESSONS[name].needs) == 1:
        rows = [row for row in rows if row["model"] == "transformer"]
    return [{"id": row["id"], "name": row["name"]} for row in rows]


@lru_cache(maxsize=32)
def original_lesson(name: str) -> Lesson:
    """A lesson with its default inputs, to compare with."""
    return teach(name)


@lru_cache(maxsize=256)
def solution(name: str, number: int) -> Data:
    """The answer of an exercise with the lesson's own models."""
    return solve(name, find_exercise(name, number))


def lesson_dict(lesson: Lesson, original: Lesson | None = None) -> dict[str, Any]:
    """JSON form of a lesson for the page: numbers also as text, formulas as trees, results with the original ones."""
    originals = {value.name: value for step in original.steps for value in step.results} if original else {}
    table = lesson.to_dict()
    names = list(LESSONS)
    at = names.index(lesson.name)
    table |= {"part": LESSONS[lesson.name].part, "changed": list(lesson.changed_inputs)}
    table["exercises"] = [exercise.prompt for exercise in lesson_plan(lesson.name).exercises]
    table["figure"] |= {"labels": [figure_label(lesson, node) for node in lesson.figure.nodes]}
    table |= {"previous": names[at - 1] if at else None, "next": names[at + 1] if at + 1 < len(names) else None}
    table["inputs"] = [
        row | value_dict(entry.value) | {"default_text": format_brief(entry.default)}
        for row, entry in zip(table["inputs"], lesson.inputs)
        if entry.value.name not in RUN_INPUTS
    ]
    for row, step in zip(table["steps"], lesson.steps):
        row["formula"] = {**row["formula"], "tree": mathml_tree(row["formula"]["mathml"])} if row["formula"] else None
        operands = [value for value in step.operands if value.name not in RUN_INPUTS]
        row["operands"] = [value.to_dict() | value_dict(value) for value in operands]
        row["results"] = [value.to_dict() | value_dict(value) | change_dict(value, originals) for value in step.results]
    for row, check in zip(table["checks"], lesson.checks):
        row |= {"expected_text": format_brief(check.expected), "found_text": format_brief(check.found)}
        row |= {"difference": check.difference if check.difference < float("inf") else None}
    return table


def figure_label(lesson: Lesson, node: str) -> str:
    """Text of a node: the symbol of a value, or the name of an operation."""
    return lesson.values[node].sign if node in lesson.values else node_label(node)


def value_dict(value: Value) -> dict[str, Any]:
    """A value as text: its symbol, also as a tree, and its numbers formatted as in the terminal."""
    symbol = value.symbol or value.name
    is_word = not value.symbol and len(value.name) > 1  # a word is not a product of its letters
    tree = ["math", {}, ["mtext", {}, symbol]] if is_word else mathml_tree(mathml(symbol))
    sign = {"sign": value.sign, "tree": tree}
    if not value.axes:
        return sign | {"text": format_cells([value.data])[0]}
    cells = format_table(value)
    return sign | {"text": cells if len(value.axes) == 2 else cells[0]}


def change_dict(value: Value, originals: Mapping[str, Value]) -> dict[str, Any]:
    """Whether a result differs from the original, and the original if it is short."""
    original = originals.get(value.name)
    if original is None or original.data == value.data:
        return {"changed": False, "original": None}
    is_short = math.prod(shape(original.data)) <= MAX_ORIGINAL and value.look != "tree"
    return {"changed": True, "original": format_brief(original.data) if is_short else None}


def mathml_tree(markup: str) -> list[Any]:
    """MathML as nested lists of tag, attributes, and texts or lists: the page creates elements and parses no markup."""

    def to_list(element: ElementTree.Element) -> list[Any]:
        text = [element.text] if element.text else []
        return [element.tag, dict(element.attrib), *text, *map(to_list, element)]

    return to_list(ElementTree.fromstring(markup))
