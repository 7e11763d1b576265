"""What somebody asks of a run by its control file: it is done at the next step, by all ranks, and changes no bit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.errors import Interrupted
from regard.objective import Continue, Objective
from regard.spaces import Words
from regard.tasks.copying import Copying
from regard.train import checkpoint
from regard.train.config import TrainConfig
from regard.train.control import FILE, Control, ask, pending
from regard.train.events import Ended, Event, Saved, Stepped
from regard.train.schedule import Constant
from regard.train.trainer import train
from zoo import V, build

CONFIG = TrainConfig(steps=8, every=8, schedule=Constant(lr=0.01))


def trained(run: Path, family: str, asks: dict[int, str]) -> list[Event]:
    """Train; at the given steps somebody asks for something. All events, also if it is stopped."""
    told: list[Event] = []

    def listen(event: Event) -> None:
        told.append(event)
        if isinstance(event, Stepped) and event.step in asks:
            ask(run, asks[event.step])  # type: ignore[arg-type]

    run.mkdir(exist_ok=True)
    objective = Objective(build(family), Continue(Words(V, 0.1)))
    try:
        train(objective, Copying(), CONFIG, run, listeners=[listen])
    except Interrupted as error:
        assert (
            str(error)
            == f"stopped at step {told[-1].step}; the checkpoint is written, run the same command again to go on"
        )
    return told


def digest(run: Path) -> str:
    found = checkpoint.newest(run).checkpoint
    assert found is not None and found.step == CONFIG.steps
    return found.digest


@pytest.mark.parametrize("family", ["transformer", "seq2seq", "rnnsearch"])
def test_a_run_that_was_asked_to_save_and_to_stop_goes_on_bit_for_bit(family: str, tmp_path: Path) -> None:
    trained(tmp_path / "whole", family, {})
    told = trained(tmp_path / "asked", family, {2: "save", 5: "stop"})
    assert [event.step for event in told if isinstance(event, Saved)] == [2, 5]
    assert told[-1] == Ended(5, "stopped", {})
    assert trained(tmp_path / "asked", family, {})[0].step == 5
    assert digest(tmp_path / "asked") == digest(tmp_path / "whole")


def test_the_file_is_taken_away_as_soon_as_it_is_heeded(tmp_path: Path) -> None:
    trained(tmp_path, "seq2seq", {3: "save"})
    assert pending(tmp_path) is None and not list(tmp_path.glob(f"{FILE}*"))


def test_a_request_that_nobody_answered_does_not_stop_the_next_training(tmp_path: Path) -> None:
    ask(tmp_path, "stop")
    assert trained(tmp_path, "seq2seq", {})[-1].reason == "done"  # type: ignore[union-attr]


def test_at_the_last_step_there_is_nothing_left_to_stop(tmp_path: Path) -> None:
    assert trained(tmp_path, "seq2seq", {8: "stop"})[-1].reason == "done"  # type: ignore[union-attr]
    assert pending(tmp_path) is None


@pytest.mark.parametrize("content", ["", "halt", "stop now", "s\x00top", "save\nstop"])
def test_words_that_are_no_request_change_nothing_and_do_not_stay(content: str, tmp_path: Path) -> None:
    control = Control(tmp_path, leads=True)
    (tmp_path / FILE).write_text(content, encoding="utf-8")
    assert pending(tmp_path) is None and control.asked() == 0
    assert not list(tmp_path.iterdir())


def test_bytes_that_are_no_text_and_a_folder_of_that_name_are_no_request(tmp_path: Path) -> None:
    control = Control(tmp_path, leads=True)
    (tmp_path / FILE).write_bytes(b"\xff\xfe\x00")
    assert control.asked() == 0
    (tmp_path / FILE).mkdir()
    assert (control.asked(), pending(tmp_path)) == (0, None)


def test_who_does_not_lead_does_not_even_look(tmp_path: Path) -> None:
    other = Control(tmp_path, leads=False)
    ask(tmp_path, "stop")
    assert other.asked() == 0 and pending(tmp_path) == "stop"


def test_looking_costs_a_training_next_to_nothing(tmp_path: Path) -> None:
    control = Control(tmp_path, leads=True)
    began = time.process_time()
    for _ in range(10_000):
        control.asked()
    assert time.process_time() - began < 1.0  # 0.02 s here; a step takes far more than the tenth of a millisecond


RECIPE = """
[data]
kind = "phrases"
count = 300
[model]
kind = "transformer"
layers = 1
width = 16
heads = 2
inner = 32
[text]
size = 200
[train]
steps = 400
every = 400
tokens = 512
[task]
scored = 0
"""


@pytest.mark.slow
@pytest.mark.xdist_group("two")
def test_two_processes_stop_at_one_step_and_go_on_bit_for_bit(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(RECIPE, encoding="utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}

    def started(run: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "regard", "train", "tiny.toml", "-q", "--nproc", "2", "--out", run]
        return subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)

    first = started("asked")
    metrics, until = tmp_path / "asked" / "metrics.jsonl", time.monotonic() + 60
    while not metrics.exists() or "stepped" not in metrics.read_text(encoding="utf-8"):
        assert time.monotonic() < until and first.poll() is None, first.communicate()
        time.sleep(0.02)
    ask(tmp_path / "asked", "stop")
    told = first.communicate(timeout=60)[1]
    assert first.returncode == 130 and told.count("stopped at step") == 1, told
    stopped = checkpoint.newest(tmp_path / "asked").checkpoint
    assert stopped is not None and 0 < stopped.step < 400
    for run in ("asked", "whole"):
        process = started(run)
        assert (process.communicate(timeout=120)[1], process.returncode) == ("", 0)
    found = [checkpoint.newest(tmp_path / run).checkpoint for run in ("asked", "whole")]
    assert [f.step for f in found if f] == [400, 400]
    assert len({f.digest for f in found if f}) == 1
