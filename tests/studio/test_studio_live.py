"""A training as it goes on: lines arrive once and in order, whatever the connection does; nobody is waited for."""

import http.client
import json
import shutil
import time

import pytest

from browsing import go, until
from regard.studio.events_api import PAUSE
from regard.train import control, probe


@pytest.fixture
def run(server, folder):
    """A run that still trains: what it writes is written by the test."""
    shutil.copytree(folder / "seq2seq", folder / "live", symlinks=True)
    (folder / "live" / "metrics.jsonl").write_bytes(b"")
    (folder / "live" / "samples.jsonl").unlink(missing_ok=True)
    wrote(folder / "live", {"event": "began", "step": 0, "steps": 100, "parameters": 9})
    yield folder / "live"
    shutil.rmtree(folder / "live")


def wrote(run, *rows):
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def step(number):
    return {"event": "stepped", "step": number, "loss": 5.0 - number / 100, "rate": 0.1, "norm": 1.0, "tokens": 9,
            "seconds": 0.1}  # fmt: skip


class Stream:
    """Somebody who listens."""

    def __init__(self, server, query="", **headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        path = f"/api/v1/runs/{server.models()['live']}/events{query}"
        self.connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        self.answer = self.connection.getresponse()
        self.place = ""

    def __enter__(self):
        return self

    def __exit__(self, *wrong):
        self.answer.close()
        self.connection.close()

    def next(self):
        """The next event's table."""
        told = {}
        while (line := self.answer.readline().decode().rstrip("\n")) or "data" not in told:
            if not line and self.answer.isclosed():
                raise EOFError
            name, _, value = line.partition(": ")
            told[name] = value
        self.place = told["id"]
        return json.loads(told["data"])

    def rows(self, count):
        """As many rows as asked for, in the order in which they come."""
        found = []
        while len(found) < count:
            found += self.next()["rows"]
        return found


def test_lines_arrive_as_they_are_written_and_in_order(server, run):
    with Stream(server) as stream:
        assert stream.answer.getheader("content-type") == "text/event-stream; charset=utf-8"
        first = stream.next()
        assert [row["event"] for row in first["rows"]] == ["began"] and first["anew"]
        for number in range(1, 4):
            wrote(run, step(number))
            began = time.monotonic()
            assert stream.rows(1) == [step(number)]
            assert time.monotonic() - began < 10 * PAUSE
        with (run / "metrics.jsonl").open("ab") as file:
            file.write(b'{"event": "stepped", "st')
        time.sleep(2 * PAUSE)
        with (run / "metrics.jsonl").open("ab") as file:
            file.write(b'ep": 4}\n{"event": "stepped", "step": 5}\n')
        assert [row["step"] for row in stream.rows(2)] == [4, 5]


def test_whoever_comes_back_misses_nothing_and_hears_nothing_twice(server, run):
    heard, place = [], None
    for turn in range(4):
        with Stream(server, **({} if place is None else {"last_event_id": place})) as stream:
            wanted = 2 if turn else 1
            if turn:
                wrote(run, step(2 * turn - 1), step(2 * turn))
            heard += stream.rows(wanted)
            place = stream.place
        wrote(run, {"event": "saved", "step": 2 * turn, "path": "x"})
        heard_meanwhile = {"event": "saved", "step": 2 * turn, "path": "x"}
        with Stream(server, query=f"?place={place}") as stream:  # as a page does that was hidden meanwhile
            heard += stream.rows(1)
            assert heard[-1] == heard_meanwhile
            place = stream.place
    assert heard == [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_file_that_was_rewritten_is_told_anew(server, run):
    with Stream(server) as stream:
        stream.next()
        other = run / "new.jsonl"
        other.write_text(json.dumps(step(7)) + "\n", encoding="utf-8")
        other.replace(run / "metrics.jsonl")
        told = stream.next()
        assert told["anew"] and told["rows"] == [step(7)]
    with Stream(server, last_event_id="nonsense") as stream:
        assert stream.next()["rows"] == [step(7)]


def test_samples_the_probe_and_what_was_asked_are_told_when_they_change_and_only_then(server, run):
    with Stream(server) as stream:
        first = stream.next()
        assert (first["samples"], first["probe"], first["asked"]) == ([], None, None)
        control.ask(run, "save")
        told = stream.next()
        assert told["asked"] == "save" and "samples" not in told and "probe" not in told
        (run / "samples.jsonl").write_text('{"step": 1, "said": "hi"}\n', encoding="utf-8")
        assert stream.next()["samples"] == [{"step": 1, "said": "hi"}]
        (run / probe.FOLDER).mkdir()
        (run / probe.FOLDER / probe.SENTENCE).write_text("je suis", encoding="utf-8")
        assert stream.next()["probe"] == {"text": "je suis", "steps": []}
        probe.place(run, 50).touch()
        assert stream.next()["probe"] == {"text": "je suis", "steps": [50]}


def test_when_nobody_listens_any_more_nothing_goes_on(server, run):
    idle = len(server.running.server_state.tasks)
    with Stream(server) as stream:
        stream.next()
        assert len(server.running.server_state.tasks) == idle + 1
    for _ in range(100):
        if len(server.running.server_state.tasks) == idle:
            break
        time.sleep(0.05)
    assert len(server.running.server_state.tasks) == idle


def test_a_server_that_ends_waits_for_no_listener(empty):
    run = empty.studio.root / "live"
    run.mkdir(parents=True)
    (run / "recipe.toml").write_text("[data]\n", encoding="utf-8")
    with Stream(empty) as stream:
        assert stream.next()["rows"] == []
        began = time.monotonic()
        empty.running.should_exit = True
        with pytest.raises((EOFError, http.client.IncompleteRead, ConnectionError)):
            while time.monotonic() - began < 10:
                stream.next()
        assert time.monotonic() - began < 5


def test_who_asks_for_an_unknown_run_is_told_so(server):
    said = server.get("/api/v1/runs/nothing/events")
    assert (said.status, said.error["code"]) == (404, "unknown-model")


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_a_new_point_appears_on_the_page_by_itself(page, server, run):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    wrote(run, step(10), step(20))
    go(page, server, f"#/runs/{server.models()['live']}")
    points = "document.querySelector('.curve').getAttribute('points').split(' ').length"
    assert page.evaluate(points) == 2
    assert page.locator("[role=status]").first.inner_text() == "Step 20 of 100; this page follows it."
    before = len(asked)
    wrote(run, step(30))
    until(page, f"{points} === 3")
    assert page.locator("[role=status]").first.inner_text() == "Step 30 of 100; this page follows it."
    assert page.locator(".chart-card").first.locator("output").inner_text().startswith("training 4.7000")
    assert [url for url in asked[before:] if "/events" not in url] == []  # nobody asked for it: it was told
    wrote(run, {"event": "ended", "step": 30, "reason": "stopped"})
    until(page, "document.querySelector('[role=status]').textContent === 'Ended at step 30: stopped.'")


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_a_page_that_lost_the_server_goes_on_where_it_was(page, server, run):
    wrote(run, step(10))
    go(page, server, f"#/runs/{server.models()['live']}")
    page.wait_for_timeout(1000 * PAUSE)
    server.studio.ending.set()  # every stream ends; the browser comes back
    until(page, "document.querySelector('[role=status]').textContent.includes('the server does not answer')")
    wrote(run, step(20))
    server.studio.ending.clear()
    until(page, "document.querySelector('[role=status]').textContent === 'Step 20 of 100; this page follows it.'")
    assert page.evaluate("document.querySelector('.curve').getAttribute('points').split(' ').length") == 2
