"""Laws of devices: every model trains and answers on another device than the CPU, with the same results.

The other device is a pretend one (tests/pretend_device.py): it refuses tensors of two devices in one operation,
conversion to NumPy, and float64, as accelerators do.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from pretend_device import DEVICE, MixedDevices, PretendTensor, pretend_device
from regard.decode import DecodeConfig, align, decode, score, search
from regard.decode.sampling import Rollout
from regard.device import module_device
from regard.distributed import ProcessGroup
from regard.look import gradients_through_time
from regard.models.base import EncoderDecoder
from regard.nn.inference import optimize_for_inference
from regard.objective import Batch, NextToken, Objective, PerSequence, PerToken, StatefulNextToken
from regard.sequence import EOS, SOS, Rows, Tokens
from regard.spaces import Classes, Gaussian, Laplace
from regard.tasks.copying import CopyTask
from regard.trace import record
from regard.train import checkpoint
from regard.train.config import TrainConfig
from regard.train.optim import SGD, Adam, AdamW
from regard.train.schedule import Constant
from regard.train.trainer import Trainer
from zoo import RAGGED, READERS, REAL, SERIES, ZOO, C, build, reader, sharpen, text, words


def batch_of(name: str) -> Batch:
    return Batch((ZOO | REAL)[name].source(), SERIES if name in REAL else RAGGED)


def losses(objective: Objective, batch: Batch) -> tuple[float, list[Tensor]]:
    """The loss of a batch and all gradients, on the CPU."""
    objective.zero_grad(set_to_none=True)
    loss, _ = objective(batch)
    [total] = loss.totals.values()
    total.backward()
    return float(total.detach()), [p.grad.cpu().clone() for p in objective.parameters() if p.grad is not None]


def assert_same_on_device(objective: Objective, batch: Batch) -> None:
    """Loss and gradients are the same wherever the model is; the batch stays on the CPU."""
    objective.eval()  # dropout would draw other numbers
    here, gradients = losses(objective, batch)
    with pretend_device() as device:
        objective.to(device)
        assert {p.device for p in objective.parameters()} | {b.device for b in objective.buffers()} == {DEVICE}
        there, others = losses(objective, batch)
    assert there == pytest.approx(here, rel=1e-4)
    assert len(gradients) == len(others)
    for one, other in zip(gradients, others, strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", [*ZOO, *REAL])
def test_loss_and_gradients_of_a_decoder_are_the_same_on_another_device(name):
    model = build(name)
    space = Gaussian(2) if name in REAL else replace(words, smoothing=0.1)
    assert_same_on_device(Objective(model, NextToken(space)), batch_of(name))


@pytest.mark.parametrize("name", READERS)
def test_loss_and_gradients_of_a_reader_are_the_same_on_another_device(name):
    each = name.endswith((" each", " vectors"))
    target = Tokens.pad([[0, 1, 2, 0, 1], [2, 1, 0], [1]]) if each else torch.tensor([0, 2, 1])
    task = PerToken(Classes(C)) if each else PerSequence(Classes(C))
    assert_same_on_device(Objective(reader(name), task), Batch(text(), target))


STRATEGIES = {
    "greedy": DecodeConfig(beam=1),
    "beam": DecodeConfig(beam=3, n_best=2, length_penalty="wu", alpha=0.6),
    "sampling": DecodeConfig(sample=True, seed=3, top_k=4, temperature=0.8),
    "processors": DecodeConfig(beam=2, no_repeat_ngram=2, min_length=2, repetition_penalty=1.2),
    "nucleus": DecodeConfig(sample=True, seed=3, top_p=0.9, min_p=0.01),
}


def answers(model: EncoderDecoder, source: Rows, config: DecodeConfig, **more: object) -> list[list[tuple]]:
    prompt = Tokens.full(torch.full((len(source), 1), SOS))
    strategy = config.strategy(EOS, **more)
    found = search(model, source, prompt, strategy, torch.tensor([5, 6, 4]))
    assert all(isinstance(h.value, float) for row in found for h in row)
    return [[h.tokens for h in row] for row in found]


def sharp(name: str) -> EncoderDecoder:
    model = build(name)
    sharpen(model)
    return model


@pytest.mark.parametrize("name", ZOO)
def test_translations_are_the_same_on_another_device(name):
    source = ZOO[name].source()
    configs = STRATEGIES if name in ("transformer", "seq2seq-gru") else {"beam": STRATEGIES["beam"]}
    here = {key: answers(optimize_for_inference(sharp(name)), source, config) for key, config in configs.items()}
    with pretend_device() as device:
        moved = optimize_for_inference(sharp(name).to(device))
        assert module_device(moved) == DEVICE
        for key, config in configs.items():
            assert answers(moved, source, config) == here[key], key


def test_prefixes_constraints_coverage_and_exact_search_work_on_another_device():
    model, source = sharp("transformer"), text()
    cases = {
        "prefix": (DecodeConfig(beam=2), {"prefixes": Tokens.pad([[4, 5], [6], [7]])}),
        "constraints": (DecodeConfig(beam=3), {"constraints": [[(6, 7)], [(4,)], []]}),
        "coverage": (DecodeConfig(beam=2, coverage_penalty=0.2), {}),
        "exact": (DecodeConfig(beam=2, exact=True), {}),
    }
    here = {key: answers(model, source, *case[:1], **case[1]) for key, case in cases.items()}
    with pretend_device() as device:
        model.to(device)
        for key, (config, more) in cases.items():
            assert answers(model, source, config, **more) == here[key], key


def test_scores_alignments_and_gradients_through_time_work_on_another_device():
    model, source, target = build("transformer"), text(), RAGGED
    here = score(model, source, target).totals
    pairs, row = align(model, source, target), Tokens.pad([[SOS, 4, 5, EOS]])
    norms = gradients_through_time(model, text(1), row, words).norms
    with pretend_device() as device:
        model.to(device)
        there = score(model, source, target).totals
        assert there.device.type == "cpu" and torch.allclose(there, here, atol=1e-4)
        assert align(model, source, target) == pairs
        assert gradients_through_time(model, text(1), row, words).norms == pytest.approx(norms, abs=1e-4)


@pytest.mark.parametrize("space", [Gaussian(2), Laplace(2)], ids=["gaussian", "laplace"])
def test_a_series_is_continued_with_the_same_random_numbers_on_another_device(space):
    model = build("rnnlm-gaussian")
    prompt, source = Tokens.full(SERIES.data[:, :3]), REAL["rnnlm-gaussian"].source()

    def series() -> list[Tensor]:
        generator = torch.Generator().manual_seed(5)
        strategy = Rollout(lambda out: space.sample(out, generator))
        return [c.tokens.cpu() for c in decode(model, source, prompt, strategy, torch.tensor([4, 4, 4]))]

    here = series()
    with pretend_device() as device:
        model.to(device)
        assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(here, series(), strict=True))


def test_classes_are_sampled_with_the_same_random_numbers_on_another_device():
    out = torch.randn(6, C, generator=torch.Generator().manual_seed(1))
    here = Classes(C).sample(out, torch.Generator().manual_seed(2))
    with pretend_device() as device:
        there = Classes(C).sample(out.to(device), torch.Generator().manual_seed(2))
        assert there.device == DEVICE and there.tolist() == here.tolist()


def test_records_of_a_pass_are_on_the_cpu_and_values_can_be_replaced_on_another_device():
    model = build("transformer")
    with pretend_device() as device:
        model.to(device)
        with record(model, replace={"decoder.layers.0.cross.weights": torch.zeros_like}) as trace:
            answers(model, text(), DecodeConfig(beam=2))
        assert {r.data.device.type for r in trace.records} == {"cpu"}
        facts = [fact for r in trace.records for fact in r.context.values() if torch.is_tensor(fact)]
        assert facts and {fact.device.type for fact in facts} == {"cpu"}
        assert not any(r.data.any() for r in trace.find("decoder.layers.0.cross.weights"))


def trainer(run: Path, model: nn.Module, task: NextToken, loader: CopyTask, **settings: object) -> Trainer:
    config = TrainConfig(steps=4, schedule=Constant(lr=1e-2), validate_every=2, **settings)
    run.mkdir(exist_ok=True)
    return Trainer(Objective(model, task), loader, config, run, ProcessGroup(), [], None, 1)


@pytest.fixture
def on_pretend_device(monkeypatch):
    """`auto` is the pretend device."""
    monkeypatch.setattr("regard.train.trainer.resolve_device", lambda name, size=1, before=None: DEVICE)
    with pretend_device():
        yield


class Quiet:
    caught = 0


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("transformer", {"ema": 0.9, "accumulate": 2, "optimizer": Adam(eps=0.01)}),
        ("transformer", {"optimizer": AdamW(eps=0.01), "clip_norm": 0.1}),
        ("seq2seq", {"optimizer": SGD(momentum=0.9)}),
        ("rnnsearch", {"optimizer": Adam(eps=0.01)}),
    ],
    ids=["ema", "adamw", "sgd", "rnnsearch"],  # a large epsilon: Adam scales the rounding of a gradient of 0 up to 1
)
def test_training_on_another_device_is_the_same_and_its_checkpoints_load_anywhere(
    name, settings, tmp_path, on_pretend_device
):
    there = trainer(tmp_path / "there", build(name).eval(), NextToken(words), CopyTask(rows=4), **settings)
    there.objective.train = lambda mode=True: there.objective  # no dropout: its numbers are the device's own
    report = there.fit(Quiet())
    assert report.step == 4 and there.device == DEVICE
    saved = checkpoint.read(tmp_path / "there" / "last")
    assert saved.state["device"] == "pretend"
    assert all(not isinstance(t, PretendTensor) for group in saved.groups for t in saved.tensors(group).values())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("regard.train.trainer.resolve_device", lambda *_: torch.device("cpu"))
        here = trainer(tmp_path / "here", build(name).eval(), NextToken(words), CopyTask(rows=4), **settings)
        here.objective.train = lambda mode=True: here.objective
        here.fit(Quiet())
        other = checkpoint.read(tmp_path / "here" / "last")
        assert saved.groups == other.groups
        for group in saved.groups:
            for key, tensor in saved.tensors(group).items():
                assert torch.allclose(tensor, other.tensors(group)[key], atol=1e-3), (group, key)
        events = []
        config = replace(there.config, steps=6)
        objective = Objective(build(name), NextToken(words))
        moved = Trainer(
            objective, CopyTask(rows=4), config, tmp_path / "there", ProcessGroup(), [events.append], None, 1
        )
        assert moved.state.step == 4 and events[0].moved_from == "pretend" and events[0].device == "cpu"
        assert moved.fit(Quiet()).step == 6


def test_truncated_bptt_keeps_its_hidden_state_on_another_device(tmp_path, on_pretend_device):
    def fresh(steps: int) -> Trainer:
        config = TrainConfig(steps=steps, schedule=Constant(lr=1e-2), validate_every=2)
        objective = Objective(build("rnnlm"), StatefulNextToken(words))
        (tmp_path / "run").mkdir(exist_ok=True)
        return Trainer(objective, Streams(), config, tmp_path / "run", ProcessGroup(), [], None, 1)

    fresh(2).fit(Quiet())
    again = fresh(4)
    leaves = torch.utils._pytree.tree_leaves(again.hidden_state)
    assert again.state.step == 2 and {leaf.device for leaf in leaves if torch.is_tensor(leaf)} == {DEVICE}
    assert again.fit(Quiet()).step == 4


class Streams(CopyTask):
    """Rows without a source, of one length, as the generate task has them."""

    def batch(self, number: int) -> Batch:
        rows = torch.randint(4, 8, (3, 6), generator=torch.Generator().manual_seed(abs(number)))
        return Batch(ZOO["rnnlm"].source(), Tokens.full(rows))


def test_a_loss_that_is_no_number_is_located_on_another_device(tmp_path, on_pretend_device):
    from regard.errors import Diverged

    started = trainer(tmp_path / "run", build("transformer"), NextToken(words), CopyTask(rows=4))
    with torch.no_grad():
        next(iter(started.flat.weights())).fill_(float("nan"))
    with pytest.raises(Diverged):
        started.fit(Quiet())


class FixedDevice(nn.Module):
    """What the laws above must catch: a tensor on the CPU, float64, and NumPy."""

    def __init__(self, fault: str) -> None:
        super().__init__()
        self.weight, self.fault = nn.Parameter(torch.ones(3)), fault

    def forward(self) -> Tensor:
        if self.fault == "cpu":
            return self.weight * torch.arange(3)
        return self.weight.double() if self.fault == "double" else torch.from_numpy(self.weight.detach().numpy())


@pytest.mark.parametrize(("fault", "error"), [("cpu", MixedDevices), ("double", TypeError), ("numpy", TypeError)])
def test_the_pretend_device_catches_what_an_accelerator_refuses(fault, error):
    module = FixedDevice(fault)
    module()
    with pretend_device() as device, pytest.raises(error):
        module.to(device)()
