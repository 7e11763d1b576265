"""Commands through the control file: executed after the current step, by all ranks, without changing the result."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from helpers import PATIENCE, TINY_TRANSLATOR, child_environment, says, wait_until
from regard.errors import Interrupted
from regard.objective import NextToken, Objective
from regard.spaces import Words
from regard.tasks.copying import CopyTask
from regard.train import checkpoint
from regard.train.config import TrainConfig
from regard.train.control import FILE, Control, pending_command, send_command
from regard.train.events import Ended, Event, Saved, Stepped
from regard.train.schedule import Constant
from regard.train.trainer import train
from zoo import V, build

CONFIG = TrainConfig(steps=8, validate_every=8, schedule=Constant(lr=0.01))


def train_with(run: Path, family: str, commands: dict[int, str]) -> list[Event]:
    """Train and send commands at the given steps; returns all events, also if training is stopped."""
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        if isinstance(event, Stepped) and event.step in commands:
            send_command(run, commands[event.step])  # type: ignore[arg-type]

    run.mkdir(exist_ok=True)
    objective = Objective(build(family), NextToken(Words(V, 0.1)))
    try:
        train(objective, CopyTask(), CONFIG, run, listeners=[listen])
    except Interrupted as error:
        assert (
            str(error)
            == f"stopped at step {events[-1].step}; the checkpoint is written, run the same command again to resume"
        )
    return events


def digest(run: Path) -> str:
    found = checkpoint.newest(run).checkpoint
    assert found is not None and found.step == CONFIG.steps
    return found.digest


@pytest.mark.parametrize("family", ["transformer", "seq2seq", "rnnsearch"])
def test_a_run_that_was_commanded_to_save_and_to_stop_resumes_bit_for_bit(family: str, tmp_path: Path) -> None:
    train_with(tmp_path / "whole", family, {})
    events = train_with(tmp_path / "stopped", family, {2: "save", 5: "stop"})
    assert [event.step for event in events if isinstance(event, Saved)] == [2, 5]
    assert events[-1] == Ended(5, "stopped", {})
    assert train_with(tmp_path / "stopped", family, {})[0].step == 5
    assert digest(tmp_path / "stopped") == digest(tmp_path / "whole")


def test_the_control_file_is_removed_when_it_is_read(tmp_path: Path) -> None:
    train_with(tmp_path, "seq2seq", {3: "save"})
    assert pending_command(tmp_path) is None and not list(tmp_path.glob(f"{FILE}*"))


def test_an_unread_command_does_not_stop_the_next_training(tmp_path: Path) -> None:
    send_command(tmp_path, "stop")
    assert train_with(tmp_path, "seq2seq", {})[-1].reason == "done"  # type: ignore[union-attr]


def test_a_stop_at_the_last_step_has_no_effect(tmp_path: Path) -> None:
    assert train_with(tmp_path, "seq2seq", {8: "stop"})[-1].reason == "done"  # type: ignore[union-attr]
    assert pending_command(tmp_path) is None


@pytest.mark.parametrize("content", ["", "halt", "stop now", "s\x00top", "save\nstop"])
def test_unknown_words_have_no_effect_and_are_removed(content: str, tmp_path: Path) -> None:
    control = Control(tmp_path, is_main=True)
    (tmp_path / FILE).write_text(content, encoding="utf-8")
    assert pending_command(tmp_path) is None and control.poll() == 0
    assert not list(tmp_path.iterdir())


def test_binary_content_and_a_folder_of_that_name_are_ignored(tmp_path: Path) -> None:
    control = Control(tmp_path, is_main=True)
    (tmp_path / FILE).write_bytes(b"\xff\xfe\x00")
    assert control.poll() == 0
    (tmp_path / FILE).mkdir()
    assert (control.poll(), pending_command(tmp_path)) == (0, None)


def test_other_ranks_do_not_read_the_control_file(tmp_path: Path) -> None:
    other = Control(tmp_path, is_main=False)
    send_command(tmp_path, "stop")
    assert other.poll() == 0 and pending_command(tmp_path) == "stop"


def test_polling_is_cheap(tmp_path: Path) -> None:
    control = Control(tmp_path, is_main=True)
    started = time.process_time()
    for _ in range(10_000):
        control.poll()
    assert time.process_time() - started < 1.0  # 0.02 s here; a step takes far more than the tenth of a millisecond


RECIPE = f"""{TINY_TRANSLATOR}[train]
validate_every = 400
batch_tokens = 512
[task]
bleu_sentences = 0
"""


@pytest.mark.slow
def test_two_processes_stop_at_one_step_and_resume_bit_for_bit(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(RECIPE, encoding="utf-8")

    def start(run: str, steps: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "regard", "train", "tiny.toml", "-q", "--nproc", "2", "--out", run]
        command.append(f"train.steps={steps}")
        return subprocess.Popen(command, cwd=tmp_path, env=child_environment(), stderr=subprocess.PIPE, text=True)

    first = start("stopped", 1_000_000)  # the command comes in time, however slow this process is
    wait_until(says(tmp_path / "stopped" / "metrics.jsonl", "stepped"), "the first step", first)
    send_command(tmp_path / "stopped", "stop")
    stderr = first.communicate(timeout=PATIENCE)[1]
    assert first.returncode == 130 and stderr.count("stopped at step") == 1, stderr
    saved = checkpoint.newest(tmp_path / "stopped").checkpoint
    assert saved is not None and 0 < saved.step < 1_000_000
    steps = saved.step + 50
    for run in ("stopped", "whole"):
        process = start(run, steps)
        assert (process.communicate(timeout=PATIENCE)[1], process.returncode) == ("", 0)
    found = [checkpoint.newest(tmp_path / run).checkpoint for run in ("stopped", "whole")]
    assert [f.step for f in found if f] == [steps] * 2
    assert len({f.digest for f in found if f}) == 1
