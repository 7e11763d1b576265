"""Devices and threads on the command line: what is taken, what is refused and how that is said."""

import json
from types import SimpleNamespace

import click
import pytest
import torch

import regard
from helpers import check_refused
from regard import device
from regard.cli import cli
from regard.errors import ConfigError
from regard.run import Run
from regard.train import checkpoint

BUILT = f" (torch {torch.__version__} is built without CUDA)" if torch.version.cuda is None else ""
NAMES = "must be auto, cpu, cuda, cuda:N or mps"


@pytest.fixture
def cpu_only(monkeypatch):
    """A machine without an accelerator."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.fixture
def two_gpus(monkeypatch):
    """What torch says of a machine with two CUDA devices; nothing is computed on them."""
    properties = SimpleNamespace(name="Fast One", total_memory=40 << 30)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: properties)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.fixture
def apple(monkeypatch):
    """What torch says of a Mac."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 16 << 30)


REFUSED = [
    ("cuda", f"device cuda: there is no CUDA device{BUILT}; this machine has cpu"),
    ("cuda:9", f"device cuda:9: there is no CUDA device{BUILT}; this machine has cpu"),
    ("mps", "device mps: there is no MPS device; this machine has cpu"),
    ("gpu", f"--device gpu {NAMES}; did you mean cuda?"),
    ("cudaa", f"--device cudaa {NAMES}; did you mean cuda?"),
    ("tpu", f"--device tpu {NAMES}"),
    ("", f"--device  {NAMES}"),
]


@pytest.mark.parametrize(("name", "message"), REFUSED, ids=[name or "empty" for name, _ in REFUSED])
def test_a_device_that_is_not_there_is_refused_with_what_there_is_instead(name, message, trained, run_cli, cpu_only):
    for verb in (["translate", trained, "je suis"], ["eval", trained], ["look", trained, "je suis"]):
        result = run_cli(*verb, "--device", name)
        assert result.code == 2 and result.err == f"error: {message}\n" and result.out == ""


SETTINGS = [
    (["train.device=tpu"], f'train: device = "tpu" {NAMES}'),
    (["train.device=gpu"], f'train: device = "gpu" {NAMES}; did you mean cuda?'),
    (["train.device=cuda"], f"device cuda: there is no CUDA device{BUILT}; this machine has cpu"),
    (["--device", "cuda"], f"device cuda: there is no CUDA device{BUILT}; this machine has cpu"),
    (["train.threads=-1"], "train: threads = -1 must be at least 0"),
    (["device=cuda"], 'unknown setting "device", given on the command line; did you mean train.device?'),
]


@pytest.mark.parametrize(("arguments", "message"), SETTINGS, ids=["tpu", "gpu", "cuda", "flag", "threads", "section"])
def test_training_on_a_device_that_is_not_there_leaves_nothing_behind(
    arguments, message, tiny, tmp_path, run_cli, cpu_only
):
    result = run_cli("train", tiny, *arguments, "--out", tmp_path / "run")
    assert result.code == 2 and result.err == f"error: {message}\n"
    assert not (tmp_path / "run").exists()


def test_python_refuses_a_device_as_the_command_line_does(trained, cpu_only):
    missing = f"device cuda:1: there is no CUDA device{BUILT}; this machine has cpu"
    check_refused(ConfigError, missing, lambda: regard.load(trained, device="cuda:1"))
    check_refused(ConfigError, f"device gpu {NAMES}; did you mean cuda?", lambda: regard.load(trained, device="gpu"))
    check_refused(ConfigError, missing, lambda: regard.load(trained, device=torch.device("cuda", 1)))
    assert regard.load(trained, device=torch.device("cpu")).step == 30


def test_every_verb_takes_a_device_and_threads_before_or_after_it(trained, run_cli):
    plain = run_cli("translate", trained, "je suis")
    assert run_cli("--device", "cpu", "--threads", "1", "translate", trained, "je suis").out == plain.out
    assert run_cli("translate", trained, "je suis", "--device", "cpu", "--threads", "1").out == plain.out
    for verb in cli.commands.values():
        for command in verb.commands.values() if isinstance(verb, click.Group) else [verb]:
            hidden = {name for option in command.params for name in option.opts if getattr(option, "hidden", False)}
            assert {"--device", "--threads"} <= hidden, command.name  # listed once, by `regard --help`
    listed = run_cli("--help").out
    assert "--device NAME" in listed and "--threads" in listed


def test_the_number_of_threads_must_be_one_or_more(trained, run_cli):
    result = run_cli("translate", trained, "je suis", "--threads", "0")
    assert result.code == 2 and "'--threads': 0 is not in the range x>=1" in result.err


def test_threads_of_use_are_those_of_the_flag_else_one_for_a_small_model(trained, run_cli, monkeypatch):
    counts = []
    monkeypatch.setattr(torch, "set_num_threads", counts.append)
    run_cli("translate", trained, "je suis", "--threads", "3")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    run_cli("translate", trained, "je suis")
    assert counts == [3, 1]


def test_the_default_number_of_threads_is_one_for_small_models_and_the_users_own_if_given(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    small, large = device.SMALL_MODEL, 100 * device.SMALL_MODEL
    assert device.default_threads(small, training=True) == device.default_threads(10 * small, training=False) == 1
    assert device.default_threads(small + 1, training=True) == device.default_threads(large, training=False) == 8
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    assert device.default_threads(small, training=True) == device.default_threads(small, training=False) == 8


def test_a_run_keeps_its_threads_and_says_its_device(tiny, tmp_path, run_cli, monkeypatch):
    run, used = tmp_path / "run", []
    monkeypatch.setattr(torch, "set_num_threads", used.append)
    arguments = ("train", tiny, "--out", run, "train.steps=4", "train.validate_every=2", "task.bleu_sentences=0")
    assert run_cli(*arguments, "train.threads=1").code == 0
    assert used == [1]
    state = checkpoint.read(run / "last").state
    assert state["device"] == "cpu" and state["threads"] == torch.get_num_threads()
    assert " device   cpu, " in (run / "log.txt").read_text(encoding="utf-8")
    shown = json.loads(run_cli("runs", "show", run, "--json").out)["environment"]
    assert shown["device"] == "cpu" and shown["threads"] == state["threads"] and shown["processes"] == 1
    refused = run_cli(*arguments, "--threads", "2")
    assert refused.code == 2 and "train.threads was 1, is 2" in refused.err
    assert run_cli(*arguments, "train.threads=1", "--device", "cpu", "train.steps=6").code == 0
    assert Run(run).recipe().train.device == "cpu"


def test_the_doctor_lists_the_devices_and_what_auto_takes(run_cli, two_gpus):
    assert "ok   devices     cpu, cuda:0 (Fast One, 40 GiB), cuda:1 (Fast One, 40 GiB); auto takes cuda:0" in (
        run_cli("doctor").out.splitlines()
    )


def test_auto_takes_an_accelerator_unless_the_run_was_trained_elsewhere(two_gpus):
    assert device.resolve_device("auto") == device.resolve_device("cuda") == torch.device("cuda", 0)
    assert device.resolve_device("cuda:1") == torch.device("cuda", 1)
    assert device.resolve_device("auto", before="cpu") == device.resolve_device("cpu") == torch.device("cpu")
    assert device.resolve_device("auto", before="mps") == torch.device("cuda", 0)
    message = "device cuda:9: there is no such device; this machine has cpu, cuda:0, cuda:1"
    check_refused(ConfigError, message, lambda: device.resolve_device("cuda:9"))


def test_each_of_several_processes_takes_the_device_of_its_local_rank(two_gpus, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert device.resolve_device("auto", 2) == device.resolve_device("cuda", 2) == torch.device("cuda", 1)
    message = "device cuda:0: 2 processes take one CUDA device each; use --device cuda"
    check_refused(ConfigError, message, lambda: device.resolve_device("cuda:0", 2))
    monkeypatch.setenv("LOCAL_RANK", "2")
    message = "device cuda: this machine has 2 CUDA devices, and each process takes one; use --nproc 2, or --device cpu"
    check_refused(ConfigError, message, lambda: device.resolve_device("auto", 3))


def test_mps_is_for_one_process(apple):
    assert device.resolve_device("auto") == torch.device("mps")
    assert device.resolve_device("auto", 2) == torch.device("cpu")
    assert device.describe_device(torch.device("mps")) == "mps (Apple GPU, 16 GiB)"
    message = "device mps: 2 processes cannot share it; use --nproc 1, or --device cpu"
    check_refused(ConfigError, message, lambda: device.resolve_device("mps", 2))


def test_sums_are_in_double_precision_where_the_device_has_it():
    kinds = {name: device.widest_float(torch.device(name)) for name in ("cpu", "cuda", "mps")}
    assert kinds == {"cpu": torch.float64, "cuda": torch.float64, "mps": torch.float32}
