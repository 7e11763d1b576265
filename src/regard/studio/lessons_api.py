"""Lessons for the page: worked out here, by the same layers and models that are taught; the page draws the numbers."""

from __future__ import annotations

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
from regard.lessons.catalogue import CONTENTS, plan, teach
from regard.lessons.engine.cached_models import missing
from regard.lessons.engine.figures import brief, table, written
from regard.lessons.engine.formula import mathml
from regard.lessons.engine.lesson import Lesson, Value, shape
from regard.studio.errors import Refusal
from regard.studio.request import Asked
from regard.studio.service import Studio

CHARACTERS = 500
"""the longest text that a lesson is given"""
AGAIN = 16
"""numbers that a result may have for its old ones to be told beside it"""
RUNS = ("model", "models")
"""inputs that name a run: the page says a number of the list of models, never a path"""


def list_lessons(studio: Studio, asked: Asked) -> Response:
    """The table of contents."""
    told = [{"name": name, "part": e.part, "title": e.title, "learns": e.learns} for name, e in CONTENTS.items()]
    return JSONResponse({"lessons": told})


class Teaching:
    """Works lessons out, one at a time, and has the small models trained that some of them look into.

    >>> Teaching().making("rnn") is None
    True
    """

    def __init__(self) -> None:
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._began, self._failed, self._closed = 0.0, "", False

    def show(self, studio: Studio, asked: Asked) -> Response:
        """A lesson with the numbers of the line, or with those that were sent; or how far its models are."""
        name = asked.path["lesson"]
        if name not in CONTENTS:
            raise Refusal(404, "unknown-lesson", "there is no such lesson", "choose one of the list")
        changes = asked.table.get("changes", {})
        if not isinstance(changes, dict):
            raise Refusal(422, "bad-request", "changes: expected an object", "mend the request")
        for given in changes.values():
            check_lengths(given)
        needed = CONTENTS[name].needs if not set(RUNS) & set(changes) else ()
        try:
            plan(name).resolve({key: given for key, given in changes.items() if key not in RUNS})
            if needed and (told := self.making(name)):
                entry = CONTENTS[name]
                return JSONResponse(told | {"part": entry.part, "title": entry.title, "learns": entry.learns}, 202)
            with self._turn:
                lesson = teach(name, opened(studio, changes))
                usual = as_it_is(name) if lesson.changed and not set(RUNS) & set(changes) else None
        except ConfigError as error:
            raise Refusal(422, "input", str(error), "change it, or go back to the lesson's own numbers") from None
        return JSONResponse(described(lesson, usual) | {"runs": translators(studio, name), "chosen": chosen(changes)})

    def making(self, name: str) -> dict[str, Any] | None:
        """How far the models of a lesson are; None: all are there. What is missing is begun."""
        wanted = missing(CONTENTS[name].needs)
        if not wanted:
            return None
        with self._lock:
            if self._failed:
                told, self._failed = self._failed, ""
                raise Refusal(500, "not-trained", told, "load the page again to try once more")
            if not self._began and not self._closed:
                self._began = time.monotonic()
                threading.Thread(target=self._train, args=(name,), daemon=True).start()
            return {"making": wanted, "seconds": round(time.monotonic() - self._began, 1)}

    def close(self) -> None:
        """Stop training."""
        self._closed = True
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(20)

    def _train(self, name: str) -> None:
        """In a process of its own: the same command that a person would give, and it can be stopped."""
        try:
            command = [sys.executable, "-m", "regard", "lesson", name, "--json"]
            pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
            self._process = subprocess.Popen(command, text=True, encoding="utf-8", errors="replace", **pipes)  # type: ignore[call-overload]
            _, told = self._process.communicate()
            if self._process.returncode and not self._closed:
                self._failed = f"the model of this lesson could not be trained: {told.strip()[-300:]}"
        except OSError as error:
            self._failed = f"the model of this lesson could not be trained: {error}"
        finally:
            self._began = 0.0


def check_lengths(given: Any) -> None:
    """Texts of a readable length only.

    >>> check_lengths(["a", 1.5])
    """
    if isinstance(given, str) and len(given) > CHARACTERS:
        raise Refusal(413, "too-long", f"a text of a lesson has at most {CHARACTERS} characters", "shorten it")
    for item in given if isinstance(given, list) else []:
        check_lengths(item)


def opened(studio: Studio, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes, with the paths of the runs whose numbers were given."""
    found = dict(changes)
    for name in set(RUNS) & set(changes):
        numbers = changes[name] if isinstance(changes[name], list) else [changes[name]]
        if not all(isinstance(number, str) for number in numbers):
            raise Refusal(422, "bad-request", f"{name}: expected the number of a model", "choose one of the list")
        paths = [str(studio.library.entry(number).path) for number in numbers]
        found[name] = paths if name == "models" else paths[0]
    return found


def chosen(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers of the runs that were chosen, by input.

    >>> chosen({"model": "ab12", "beam": 2})
    {'model': 'ab12'}
    """
    return {name: changes[name] for name in RUNS if name in changes}


def translators(studio: Studio, name: str) -> list[dict[str, str]]:
    """Models that a lesson could look into instead of its own; none where it looks into none."""
    if not CONTENTS[name].needs:
        return []
    listed = [entry.table() for entry in studio.library.entries() if entry.usable]
    fitting = [row for row in listed if row["task"] == "translate"]
    if len(CONTENTS[name].needs) == 1:
        fitting = [row for row in fitting if row["model"] == "transformer"]
    return [{"id": row["id"], "name": row["name"]} for row in fitting]


@lru_cache(maxsize=32)
def as_it_is(name: str) -> Lesson:
    """A lesson with the numbers of the line, to compare with.

    >>> as_it_is("rnn").value("o").data
    1.0
    """
    return teach(name)


def described(lesson: Lesson, usual: Lesson | None = None) -> dict[str, Any]:
    """A lesson as the page draws it: numbers with how they are written, formulas as trees, results with what they were.

    >>> told = described(as_it_is("rnn"))
    >>> told["steps"][3]["results"][0]["shown"], told["steps"][0]["formula"]["tree"][0]
    ('1', 'math')
    """
    before = {value.name: value for step in usual.steps for value in step.results} if usual else {}
    told = lesson.to_dict()
    names = list(CONTENTS)
    at = names.index(lesson.name)
    told |= {"part": CONTENTS[lesson.name].part, "changed": list(lesson.changed)}
    told |= {"before": names[at - 1] if at else None, "after": names[at + 1] if at + 1 < len(names) else None}
    told["inputs"] = [
        row | drawn(given.value) | {"default_shown": brief(given.default)}
        for row, given in zip(told["inputs"], lesson.inputs)
        if given.value.name not in RUNS
    ]
    for row, step in zip(told["steps"], lesson.steps):
        row["formula"] = {**row["formula"], "tree": tree(row["formula"]["mathml"])} if row["formula"] else None
        row["operands"] = [value.to_dict() | drawn(value) for value in step.operands if value.name not in RUNS]
        row["results"] = [value.to_dict() | drawn(value) | was(value, before) for value in step.results]
    for row, check in zip(told["checks"], lesson.checks):
        row |= {"expected_shown": brief(check.expected), "found_shown": brief(check.found)}
        row |= {"difference": check.difference if check.difference < float("inf") else None}
    return told


def drawn(value: Value) -> dict[str, Any]:
    """How a value is written: its sign as text and as a tree, each number in the form it has in the terminal.

    >>> drawn(Value("h", [1.0, 0.5], ("unit",), symbol="h_t"))["shown"]
    ['1.0', '0.5']
    """
    symbol = value.symbol or value.name
    word = not value.symbol and len(value.name) > 1  # a word is no product of its letters
    sign = {"sign": value.sign, "tree": ["math", {}, ["mtext", {}, symbol]] if word else tree(mathml(symbol))}
    if not value.axes:
        return sign | {"shown": written([value.data])[0]}
    cells = table(value)
    return sign | {"shown": cells if len(value.axes) == 2 else cells[0]}


def was(value: Value, before: Mapping[str, Value]) -> dict[str, Any]:
    """Whether a result is another one than the lesson's, and what that was, if it is short.

    >>> was(Value("o", 2.0), {"o": Value("o", 1.0)})
    {'moved': True, 'was': '1'}
    """
    old = before.get(value.name)
    if old is None or old.data == value.data:
        return {"moved": False, "was": None}
    size = 1
    for side in shape(old.data):
        size *= side
    return {"moved": True, "was": brief(old.data) if size <= AGAIN and value.look != "tree" else None}


def tree(markup: str) -> list[Any]:
    """Our own MathML as lists of a name, attributes, and texts or lists: the page makes elements, it reads no markup.

    >>> tree(mathml("x_t"))
    ['math', {}, ['msub', {}, ['mi', {}, 'x'], ['mi', {}, 't']]]
    """

    def told(element: ElementTree.Element) -> list[Any]:
        text = [element.text] if element.text else []
        return [element.tag, dict(element.attrib), *text, *map(told, element)]

    return told(ElementTree.fromstring(markup))
