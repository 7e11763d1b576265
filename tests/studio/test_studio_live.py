"""Live events of a training: rows arrive once and in order, also after lost connections."""

import http.client
import json
import shutil
import time

import pytest

from browsing import go, until
from helpers import PATIENCE, wait_until
from regard.files import write_text_atomically
from regard.studio import events_api
from regard.studio.events_api import POLL_SECONDS
from regard.train import control, probe


@pytest.fixture
def run(server, folder, monkeypatch):
    """A run that seems to be training: the test writes its rows, and nothing else causes an event."""
    monkeypatch.setattr(events_api, "HEARTBEAT_SECONDS", 10 * PATIENCE)
    shutil.copytree(folder / "seq2seq", folder / "live", symlinks=True)
    (folder / "live" / "metrics.jsonl").write_bytes(b"")
    (folder / "live" / "samples.jsonl").unlink(missing_ok=True)
    write_rows(folder / "live", {"event": "began", "step": 0, "steps": 100, "parameters": 9, "label_smoothing": 0.1})
    yield folder / "live"
    shutil.rmtree(folder / "live")


def write_rows(run, *rows):
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def step(number):
    return {"event": "stepped", "step": number, "loss": 5.0 - number / 100, "rate": 0.1, "norm": 1.0, "tokens": 9,
            "seconds": 0.1}  # fmt: skip


class Stream:
    """A client of the event stream."""

    def __init__(self, server, query="", **headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        path = f"/api/v1/runs/{server.models()['live']}/events{query}"
        self.connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        self.answer = self.connection.getresponse()
        self.cursor = ""

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.answer.close()
        self.connection.close()

    def next(self):
        """Data of the next event."""
        fields = {}
        while (line := self.answer.readline().decode().rstrip("\n")) or "data" not in fields:
            if not line and self.answer.isclosed():
                raise EOFError
            name, _, value = line.partition(": ")
            fields[name] = value
        self.cursor = fields["id"]
        return json.loads(fields["data"])

    def rows(self, count):
        """The next rows, at least `count`."""
        found = []
        while len(found) < count:
            found += self.next()["rows"]
        return found


def test_rows_arrive_as_they_are_written_and_in_order(server, run):
    with Stream(server) as stream:
        assert stream.answer.getheader("content-type") == "text/event-stream; charset=utf-8"
        first = stream.next()
        assert [row["event"] for row in first["rows"]] == ["began"] and first["reset"]
        for number in range(1, 4):
            write_rows(run, step(number))
            assert stream.next()["rows"] == [step(number)]
        with (run / "metrics.jsonl").open("ab") as file:
            file.write(b'{"event": "stepped", "st')
        time.sleep(2 * POLL_SECONDS)
        with (run / "metrics.jsonl").open("ab") as file:
            file.write(b'ep": 4}\n{"event": "stepped", "step": 5}\n')
        assert [row["step"] for row in stream.rows(2)] == [4, 5]


def test_a_reconnected_client_receives_every_row_once(server, run):
    received, cursor = [], None
    for turn in range(4):
        with Stream(server, **({} if cursor is None else {"last_event_id": cursor})) as stream:
            count = 2 if turn else 1
            if turn:
                write_rows(run, step(2 * turn - 1), step(2 * turn))
            received += stream.rows(count)
            cursor = stream.cursor
        write_rows(run, {"event": "saved", "step": 2 * turn, "path": "x"})
        missed = {"event": "saved", "step": 2 * turn, "path": "x"}
        with Stream(server, query=f"?cursor={cursor}") as stream:  # as a page that was hidden meanwhile
            received += stream.rows(1)
            assert received[-1] == missed
            cursor = stream.cursor
    assert received == [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def test_a_rewritten_file_is_sent_from_the_start(server, run):
    with Stream(server) as stream:
        stream.next()
        other = run / "new.jsonl"
        other.write_text(json.dumps(step(7)) + "\n", encoding="utf-8")
        other.replace(run / "metrics.jsonl")
        update = stream.next()
        assert update["reset"] and update["rows"] == [step(7)]
    with Stream(server, last_event_id="nonsense") as stream:
        assert stream.next()["rows"] == [step(7)]


def test_samples_probe_and_command_are_sent_only_when_they_change(server, run):
    with Stream(server) as stream:
        first = stream.next()
        assert (first["samples"], first["probe"], first["command"]) == ([], None, None)
        control.send_command(run, "save")
        update = stream.next()
        assert update["command"] == "save" and "samples" not in update and "probe" not in update
        write_text_atomically(run / "samples.jsonl", '{"step": 1, "said": "hi"}\n')
        assert stream.next()["samples"] == [{"step": 1, "said": "hi"}]
        (run / probe.FOLDER).mkdir()
        write_text_atomically(run / probe.FOLDER / probe.SENTENCE, "je suis")
        assert stream.next()["probe"] == {"text": "je suis", "steps": []}
        probe.probe_path(run, 50).touch()
        assert stream.next()["probe"] == {"text": "je suis", "steps": [50]}


def test_a_stream_ends_when_the_client_disconnects(server, run):
    tasks = server.running.server_state.tasks
    wait_until(lambda: not tasks, "requests of other tests end")
    with Stream(server) as stream:
        stream.next()
        assert len(tasks) == 1
    wait_until(lambda: not tasks, "the stream ends")


def test_a_stream_does_not_delay_the_shutdown_of_the_server(empty):
    run = empty.studio.root / "live"
    run.mkdir(parents=True)
    (run / "recipe.toml").write_text("[data]\n", encoding="utf-8")
    with Stream(empty) as stream:
        assert stream.next()["rows"] == []
        empty.running.should_exit = True
        with pytest.raises((EOFError, http.client.IncompleteRead, ConnectionError)):
            for _ in range(3):  # else there would be an event every five seconds
                stream.next()


def test_events_of_an_unknown_run_are_refused(server):
    response = server.get("/api/v1/runs/nothing/events")
    assert (response.status, response.error["code"]) == (404, "unknown-model")


@pytest.mark.slow
def test_a_new_point_appears_on_the_page_without_a_request(page, server, run):
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    write_rows(run, step(10), step(20))
    go(page, server, f"#/runs/{server.models()['live']}")
    points = "document.querySelector('.curve').getAttribute('points').split(' ').length"
    assert page.evaluate(points) == 2
    assert page.locator("[role=status]").first.inner_text() == "Step 20 of 100; updating live."
    before = len(requests)
    write_rows(run, step(30))
    until(page, f"{points} === 3")
    assert page.locator("[role=status]").first.inner_text() == "Step 30 of 100; updating live."
    assert page.locator(".chart-card").first.locator("output").inner_text().startswith("training 4.7000")
    assert page.locator(".chart-card").last.locator("h2").inner_text() == "Predictions per second"
    assert page.locator(".chart-card").first.locator("figcaption").inner_text() == (
        "The training loss has label smoothing 0.1, the validation loss has none."
    )
    assert [url for url in requests[before:] if "/events" not in url] == []  # it came by the event stream
    write_rows(run, {"event": "ended", "step": 30, "reason": "stopped"})
    until(page, "document.querySelector('[role=status]').textContent === 'Ended at step 30: stopped.'")


@pytest.mark.slow
def test_a_page_that_lost_the_server_continues_after_reconnecting(page, server, run):
    write_rows(run, step(10))
    go(page, server, f"#/runs/{server.models()['live']}")
    page.wait_for_timeout(1000 * POLL_SECONDS)
    server.studio.closing.set()  # every stream ends; the browser reconnects
    until(page, "document.querySelector('[role=status]').textContent.includes('the server does not answer')")
    write_rows(run, step(20))
    server.studio.closing.clear()
    until(page, "document.querySelector('[role=status]').textContent === 'Step 20 of 100; updating live.'")
    assert page.evaluate("document.querySelector('.curve').getAttribute('points').split(' ').length") == 2
