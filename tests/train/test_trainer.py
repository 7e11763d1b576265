"""Steps and validations of the trainer; laws that hold for every model are in tests/laws."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from regard.distributed import ProcessGroup
from regard.errors import Diverged
from regard.models.seq2seq import Seq2SeqConfig
from regard.objective import Batch, NextToken, Objective
from regard.spaces import Words
from regard.tasks.copying import CopyTask
from regard.train import checkpoint
from regard.train.config import TrainConfig
from regard.train.events import Event, Stepped, TensorBoard
from regard.train.optim import SGD, AdamW, OptimizerConfig
from regard.train.schedule import Constant, Plateau
from regard.train.trainer import Trainer, train
from zoo import V, build


def objective(name: str = "transformer") -> Objective:
    return Objective(build(name), NextToken(Words(V, 0.1)))


def newest(run: Path) -> checkpoint.Checkpoint:
    found = checkpoint.newest(run).checkpoint
    assert found is not None
    return found


@pytest.mark.parametrize(("metric", "best"), [("loss", 2.0), ("ppl", 2.0), ("bleu", 3.0)])
def test_the_best_is_the_lowest_loss_or_perplexity_and_the_highest_bleu(
    metric: str, best: float, tmp_path: Path
) -> None:
    scores = iter([(3.0, 20.0, 5.0), (2.0, 7.0, 9.0), (2.5, 12.0, 11.0)])
    config = TrainConfig(steps=3, validate_every=1, best_metric=metric)  # type: ignore[arg-type]
    names = ("loss", "ppl", "bleu")
    report = train(
        objective(), CopyTask(), config, tmp_path, validate=lambda: (dict(zip(names, next(scores), strict=True)), ())
    )
    assert report.best["step"] == best


def test_the_plateau_schedule_lowers_the_rate_when_validation_does_not_improve(tmp_path: Path) -> None:
    scores, rates = iter([3.0, 3.1, 3.2, 3.3, 3.4, 2.0, 2.1]), []

    def note(event: Event) -> None:
        if isinstance(event, Stepped):
            rates.append(event.rate)

    config = TrainConfig(steps=7, validate_every=1, schedule=Plateau(lr=1.0, factor=0.5, patience=2))
    train(objective(), CopyTask(), config, tmp_path, listeners=[note], validate=lambda: ({"loss": next(scores)}, ()))
    assert rates == [1.0, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25]


def test_averaged_weights_are_the_exponential_moving_average_of_the_trained_ones(tmp_path: Path) -> None:
    means: dict[str, torch.Tensor] = {}
    config = TrainConfig(steps=5, save_every=1, validate_every=99, ema=0.8, schedule=Constant(lr=0.01))
    first = {name: t.clone() for name, t in objective().model.state_dict().items()}
    for steps in range(1, 6):
        train(objective(), CopyTask(), replace(config, steps=steps), tmp_path)
        for name, now in newest(tmp_path).tensors("trained").items():
            share = min(0.8, (1 + steps) / (10 + steps))  # forgets the random initial weights quickly
            means[name] = share * means.get(name, first[name]) + (1 - share) * now
    for name, tensor in newest(tmp_path).tensors("model").items():
        torch.testing.assert_close(tensor, means[name], rtol=1e-5, atol=1e-6)


def test_averaged_weights_that_are_tied_are_stored_once(tmp_path: Path) -> None:
    train(objective(), CopyTask(), TrainConfig(steps=1, ema=0.9), tmp_path)
    found = newest(tmp_path)
    assert found.manifest.tied["model"] == found.manifest.tied["trained"]
    assert len(found.manifest.tied["model"]) == 2  # source embedding, target embedding and softmax are one


def test_a_bad_module_is_named_even_if_only_the_second_batch_shows_it(tmp_path: Path) -> None:
    loader, model = CopyTask(), objective()
    good, bad = loader.batch(0), loader.batch(1)

    def hook(module: nn.Module, args: tuple[object, ...], out: torch.Tensor) -> torch.Tensor:
        return out * float("nan") if out.shape[1] == bad.target.data.shape[1] - 1 and len(out) == len(bad) else out

    shorter = Batch(good.source.select(torch.arange(3)), good.target.select(torch.arange(3)))
    model.model.decoder.layers[1].cross.register_forward_hook(hook)
    trainer = Trainer(model, loader, TrainConfig(steps=2, accumulate=2), tmp_path, ProcessGroup(), (), None, 1)
    with pytest.raises(Diverged, match=r"at step 1: .* \(first in decoder\.layers\.1\.cross\)\. There is no good"):
        trainer.step([(shorter, {}), (bad, {})])


@pytest.mark.parametrize("optimizer", [AdamW(), SGD(momentum=0.9)], ids=["adamw", "sgd"])
def test_an_optimizer_with_state_resumes_bit_for_bit(optimizer: OptimizerConfig, tmp_path: Path) -> None:
    config = TrainConfig(steps=6, save_every=1, validate_every=6, optimizer=optimizer, schedule=Constant(lr=0.01))
    train(objective(), CopyTask(), config, tmp_path / "whole")

    def stop(event: Event) -> None:
        if isinstance(event, Stepped) and event.step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(objective(), CopyTask(), config, tmp_path / "stopped", listeners=[stop])
    train(objective(), CopyTask(), config, tmp_path / "stopped")
    assert newest(tmp_path / "stopped").digest == newest(tmp_path / "whole").digest


def test_weight_decay_shrinks_matrices_and_exempts_biases_and_norms(tmp_path: Path) -> None:
    trainer = Trainer(
        objective(), CopyTask(), TrainConfig(optimizer=AdamW(weight_decay=0.5)), tmp_path, ProcessGroup(), (), None, 1
    )
    before = {name: p.detach().clone() for name, p in trainer.objective.named_parameters()}
    trainer.flat.zero_grad()
    for group in trainer.optimizer.param_groups:
        group["lr"] = 0.1
    trainer.optimizer.step()
    for name, p in trainer.objective.named_parameters():
        factor = 0.95 if p.ndim > 1 else 1.0
        torch.testing.assert_close(p.detach(), factor * before[name], msg=lambda m, n=name: f"{n}: {m}")


def test_bfloat16_training_is_close_to_float32_and_keeps_float32_weights(tmp_path: Path) -> None:
    losses: dict[str, list[float]] = {"float32": [], "bfloat16": []}
    for precision, values in losses.items():
        config = TrainConfig(steps=20, validate_every=99, precision=precision, schedule=Constant(lr=0.01))  # type: ignore[arg-type]

        def note(event: Event, values: list[float] = values) -> None:
            if isinstance(event, Stepped):
                values.append(event.loss)

        train(objective(), CopyTask(), config, tmp_path / precision, listeners=[note])
    assert losses["float32"] != losses["bfloat16"] == pytest.approx(losses["float32"], rel=0.05)
    assert {t.dtype for t in newest(tmp_path / "bfloat16").tensors("model").values()} == {torch.float32}


def test_dropout_between_layers_is_in_the_encoder_too() -> None:
    model = Seq2SeqConfig(layers=2, width=8, dropout=0.3).build(Words(8), Words(8))
    assert {m.p for m in model.encoder.modules() if isinstance(m, nn.Dropout)} == {0.3}
    assert {m.p for m in model.decoder.modules() if isinstance(m, nn.Dropout)} == {0.3}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of tensorboard's own parts
def test_tensorboard_reads_the_logged_losses(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    losses: list[float] = []
    listeners = [TensorBoard(tmp_path), lambda event: losses.append(event.loss) if isinstance(event, Stepped) else None]
    train(objective(), CopyTask(), TrainConfig(steps=3), tmp_path, listeners=listeners)
    read = EventAccumulator(str(tmp_path / "tensorboard"))
    read.Reload()
    assert [point.value for point in read.Scalars("train/loss")] == pytest.approx(losses)
    assert "valid/ppl" in read.Tags()["scalars"]
