"""Comparison table of models on the same data: score, size, speed, and a significance test against the best."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from regard import metrics
from regard.compare.by_length import bleu_by_length
from regard.compare.match_parameters import count_parameters
from regard.compare.train import recipe_digest
from regard.errors import ModelError, OutputError, RunLocked
from regard.files import cannot_write, read_bounded, read_json_rows, write_bytes_atomically, write_text_atomically
from regard.look.chart import LineChart
from regard.manifest import MAX_KEPT, parse_manifest, read_kept, render_manifest
from regard.metrics import PairedComparison, Score, UnitSums
from regard.models.base import parameters
from regard.progress import Progress, no_progress
from regard.run import Run, load
from regard.run_lock import RunLock
from regard.tasks import EvalRequest, Evaluation, Model, ScoredExample
from regard.tasks.translate.recipe import TranslationModel
from regard.train import checkpoint
from regard.train.checkpoint_store import run_folder

EVALUATION = "evaluation.json"
"""file of a run: cached scores and outputs on its test data"""
WARMUP = 32
"""sentences that a model translates before it is timed"""
MIN_UNITS = 20
"""units that a paired bootstrap test needs at least"""


@dataclass(frozen=True)
class ComparisonRow:
    """Results of one model."""

    name: str
    summary: str
    """kind and size of the model"""
    failure: str = ""
    """why there are no results"""
    step: int = 0
    score: Score | None = None
    others: tuple[Score, ...] = ()
    parameters: int = 0
    seconds: float | None = None
    """training time without validation: steps times the mean time of the logged steps"""
    tokens_per_second: float | None = None
    """training predictions per second"""
    ms_per_sentence: float | None = None
    """decoding time per sentence, in batches"""
    against_best: PairedComparison | None = None
    """paired bootstrap test against the best; None for the best itself, or without a test"""
    remark: str = ""
    """what the test was made on, if not on all scored units, or why there is none"""


@dataclass(frozen=True)
class ComparisonTable:
    """Results of all models; `curves` has BLEU by source length, if sentences were translated."""

    data: str
    """name of the scored data, such as "test\""""
    rows: tuple[ComparisonRow, ...]
    curves: LineChart | None
    size: str = ""
    """amount of scored data, such as "1,000 sentences\""""
    data_credit: str = ""
    """origin and license of the data"""
    speed_unit: str = "tokens"
    """what training predicts: the speed is so many per second"""

    @property
    def best(self) -> ComparisonRow | None:
        """The row with the best score."""
        return best_row(self.rows)

    def cells(self) -> list[list[str]]:
        """The cells as text, header first."""
        metric = next((row.score.name for row in self.rows if row.score), "score")
        head = [
            "model",
            metric,
            "95 %",
            "parameters",
            "seconds",
            f"{self.speed_unit}/s",
            "ms/sentence",
            "against the best",
        ]
        return [head, *(_cells(row, row is self.best) for row in self.rows)]

    def notes(self) -> list[str]:
        """Lines under the table: the scored data, the metric's signature, and why a model has no score or no test."""
        best, lines = self.best, []
        if best and best.score:
            size, credit = self.size and f", {self.size}", self.data_credit and f": {self.data_credit}"
            lines = [f"on {self.data}{size}{credit}", f"{best.score.name} {best.score.signature}"]
        whys = [f"{row.name}: {why}" for row in self.rows for why in (row.failure, row.remark) if why]
        return [*lines, *whys]

    def text(self) -> str:
        """The table as plain text."""
        cells = self.cells()
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        align = "<>>>>>><"
        lines = ["  ".join(f"{cell:{align[i]}{widths[i]}}" for i, cell in enumerate(line)).rstrip() for line in cells]
        return "\n".join([*lines, "", *self.notes()])

    def markdown(self) -> str:
        """The table as Markdown."""
        head, *lines = self.cells()
        rule = ["---", *["---:"] * (len(head) - 2), "---"]
        rows = [f"| {' | '.join(line)} |" for line in [head, rule, *lines]]
        return "\n".join([*rows, "", *(f"- {note}" for note in self.notes())]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The table as plain JSON."""
        rows = [asdict(row) | {"best": row is self.best} for row in self.rows]
        found = {"data": self.data, "size": self.size, "data_credit": self.data_credit, "models": rows}
        return found | {"lengths": self.curves.to_dict() if self.curves else None}

    def save(self, folder: Path) -> list[Path]:
        """Write compare.json, compare.md and, if there are curves, lengths.svg."""
        texts = {
            "compare.json": json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n",
            "compare.md": self.markdown(),
        }
        if self.curves:
            texts["lengths.svg"] = self.curves.svg()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(folder, 0, error) from error
        for name, content in texts.items():
            write_text_atomically(folder / name, content)
        return [folder / name for name in texts]


def compare_runs(
    runs: Mapping[str, Path],
    failures: Mapping[str, str] | None = None,
    progress: Progress = no_progress,
    device: str = "auto",
) -> ComparisonTable:
    """Evaluate every run on its test data and compare them; a run in `failures` gets a row with the reason only."""
    failed = failures or {}
    models = {name: load(path, device) for name, path in runs.items() if name not in failed}
    check_comparable({str(runs[name]): (run_folder(runs[name]), model) for name, model in models.items()})
    found = {name: cached_evaluation(runs[name], model, progress) for name, model in models.items()}
    check_same_data({str(runs[name]): evaluation for name, evaluation in found.items()})
    rows = [
        _failed_row(name, path, failed[name]) if name in failed else _scored_row(name, path, models[name], found[name])
        for name, path in runs.items()
    ]
    best = best_row(rows)
    if best is None:
        return ComparisonTable("nothing", tuple(rows), None)
    compared = tuple(_test_against(row, best, found) for row in rows)
    examples = {name: one.examples for name, one in found.items() if one.scores[0].name == "bleu"}
    one, recipe = found[best.name], models[best.name].recipe
    size = f"{one.scores[0].n:,} {one.unit}" if one.examples or one.unit != "sentences" else ""
    return ComparisonTable(
        one.data, compared, bleu_by_length(examples, _lowercase(best)), size, recipe.data_credit(), recipe.speed_unit()
    )


def best_row(rows: Sequence[ComparisonRow]) -> ComparisonRow | None:
    """The row with the best score, the first of equal ones."""
    scored = [(row, row.score) for row in rows if row.score]
    best = max(scored, key=lambda pair: -pair[1].value if pair[1].lower_is_better else pair[1].value, default=None)
    return best and best[0]


def cached_evaluation(path: Path, model: Model, progress: Progress) -> Evaluation:
    """Evaluation of a model on its test data, read from evaluation.json unless the model has changed since."""
    run = run_folder(path)
    identity = {"step": model.step, "recipe": recipe_digest(model.recipe)}
    stored = _stored_evaluation(run, identity)
    if stored is not None:
        return stored
    if isinstance(model, TranslationModel):  # the first batch also pays for lazy loading and allocation
        model.translate(model.eval_pairs(EvalRequest())[1][:WARMUP])
    found = model.evaluate(EvalRequest(), progress)
    content = {
        "identity": identity,
        "data": found.data,
        "unit": found.unit,
        "scores": [asdict(one) for one in found.scores],
        "seconds": found.seconds,
        "examples": [[example.source, example.output, example.reference] for example in found.examples],
        "per_unit": [[total, count] for total, count in found.per_unit],
    }
    with suppress(RunLocked, OutputError), RunLock(run):  # only used: it may be in training, or read-only
        write_bytes_atomically(run / EVALUATION, render_manifest(content))
    return found


def _stored_evaluation(run: Path, identity: Mapping[str, Any]) -> Evaluation | None:
    """The evaluation that was stored for this model; None if there is none, or if its bytes have changed."""
    try:
        stored = parse_manifest(read_bounded(run / EVALUATION, MAX_KEPT))
        if stored["identity"] != identity:
            return None
        scores = [Score(**row) for row in stored["scores"]]
        examples = [ScoredExample(*row) for row in stored["examples"]]
        sums = [tuple(pair) for pair in stored["per_unit"]]
        return Evaluation(stored["data"], scores, examples, stored["seconds"], unit=stored["unit"], per_unit=sums)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def check_comparable(models: Mapping[str, tuple[Path, Model]]) -> None:
    """Refuse to compare models of different tasks or with different vocabularies."""
    if len(models) < 2:
        return
    (first, (home, one)), *others = models.items()
    for name, (run, model) in others:
        if model.recipe.kind() != one.recipe.kind():
            raise ModelError(
                f"{first} was trained to {one.recipe.kind()} and {name} to {model.recipe.kind()}; "
                "only models of one task can be compared"
            )
        if _read_artifacts(home, one) != _read_artifacts(run, model):
            raise ModelError(
                f"{first} and {name} have different vocabularies; train both on the same [data] and [text] to compare "
                "them, as `regard compare RECIPE` does"
            )


def check_same_data(found: Mapping[str, Evaluation]) -> None:
    """Refuse to compare scores of different data or with different metric settings."""
    if len(found) < 2:
        return
    (first, one), *others = found.items()
    for name, evaluation in others:
        pairs = [[(x.source, x.reference) for x in e.examples] for e in (one, evaluation)]
        if one.data != evaluation.data or pairs[0] != pairs[1]:
            raise ModelError(f"{first} and {name} are scored on different data; compare models of one [data] section")
        signatures = [", ".join(f"{s.name} {s.signature}" for s in e.scores[:1]) for e in (one, evaluation)]
        if signatures[0] != signatures[1]:
            ways = "; ".join(signatures)
            raise ModelError(f"{first} and {name} are scored in different ways, which cannot be compared: {ways}")


def training_speed(run: Path, step: int) -> tuple[float | None, float | None]:
    """Training seconds of `step` steps and predictions per second, from the steps in metrics.jsonl."""
    steps = [row for row in read_json_rows(run / "metrics.jsonl") if row.get("event") == "stepped" and _is_timed(row)]
    steps = [row for row in steps if row["step"] > 10] or steps  # without warmup
    seconds = sum(row["seconds"] for row in steps)
    if not seconds:
        return None, None
    return seconds / len(steps) * step, sum(row["tokens"] for row in steps) / seconds


def _is_timed(row: Mapping[str, Any]) -> bool:
    numbers = [row.get(name) for name in ("step", "seconds", "tokens")]
    return all(isinstance(number, (int, float)) and 0 <= number < math.inf for number in numbers)


def _failed_row(name: str, path: Path, why: str) -> ComparisonRow:
    run = run_folder(path)
    recipe = Run(run).recipe()
    return ComparisonRow(name, recipe.model.summary, why, parameters=count_parameters(recipe, run))


def _scored_row(name: str, path: Path, model: Model, found: Evaluation) -> ComparisonRow:
    seconds, tokens = training_speed(run_folder(path), _total_steps(run_folder(path), model.step))
    milliseconds = 1000 * found.seconds / len(found.examples) if found.seconds is not None and found.examples else None
    score, *others = found.scores
    return ComparisonRow(
        name, model.recipe.model.summary, step=model.step, score=score, others=tuple(others),
        parameters=parameters(model.module), seconds=seconds, tokens_per_second=tokens, ms_per_sentence=milliseconds,
    )  # fmt: skip


def _total_steps(run: Path, step: int) -> int:
    """Steps of the whole run: the best checkpoint may be an earlier one."""
    found = checkpoint.newest(run).checkpoint
    return max(step, found.step) if found else step


def _test_against(row: ComparisonRow, best: ComparisonRow, found: Mapping[str, Evaluation]) -> ComparisonRow:
    if row is best or row.score is None:
        return row
    one, own = found[best.name], found[row.name]
    if row.score.name not in ("bleu", "chrf", "ter"):
        a, b, remark = align_units(one, own)
        test = metrics.paired_bootstrap_sums(a, b, row.score.name, row.score.signature) if a else None
        return replace(row, against_best=test, remark=remark)
    if not own.examples:
        return row
    outputs = [[example.output for example in evaluation.examples] for evaluation in (one, own)]
    references = [example.reference for example in own.examples]
    name: Any = row.score.name
    test = metrics.paired_bootstrap(outputs[0], outputs[1], references, name, lowercase=_lowercase(best))
    return replace(row, against_best=test)


def align_units(best: Evaluation, own: Evaluation) -> tuple[UnitSums, UnitSums, str]:
    """Units of both models for a paired test, and a remark; without a test, no units.

    Evaluations with examples are known to have the same units. Windows depend on the recipe: where they differ, they
    are summed up to the ends that both share.
    """
    if not best.per_unit or not own.per_unit:
        return (), (), ""  # forecasts
    counts = [[count for _, count in evaluation.per_unit] for evaluation in (best, own)]
    if own.examples or counts[0] == counts[1]:
        few = f"no p-value: {len(own.per_unit)} {own.unit} are scored, and a test needs at least {MIN_UNITS}"
        return (best.per_unit, own.per_unit, "") if len(own.per_unit) >= MIN_UNITS else ((), (), few)
    if sum(counts[0]) != sum(counts[1]):
        sizes = f"{sum(counts[1]):,} predictions and the best one on {sum(counts[0]):,}"
        return (), (), f"no p-value: it was scored on {sizes}, which are not of one text"
    a, b = metrics.align_sums(best.per_unit, own.per_unit)
    differ = f"its {own.unit} are not those of the best"
    if len(a) < MIN_UNITS:
        remedy = "train both with one task.window and train.batch_tokens"
        return (), (), f"no p-value: {differ}, and too few end where those do, {len(a)} of {MIN_UNITS}; {remedy}"
    return a, b, f"{differ}; tested on the {len(a):,} longer pieces that both can be cut into"


def _lowercase(best: ComparisonRow | None) -> bool:
    return best is not None and best.score is not None and "case:lc" in best.score.signature


def _cells(row: ComparisonRow, best: bool) -> list[str]:
    if row.score is None:
        return [row.name, "-", "-", f"{row.parameters:,}", "-", "-", "-", "no score"]
    test = row.against_best
    digits = 2 if abs(row.score.value) >= 10 else 3
    against = f"{test.delta:+.{digits}f}, p = {test.p_value:.3f}" if test else "the best" if best else "-"
    return [
        row.name,
        f"{row.score.value:.{digits}f}",
        f"{row.score.low:.{digits}f} to {row.score.high:.{digits}f}",
        f"{row.parameters:,}",
        _format_number(row.seconds),
        _format_number(row.tokens_per_second),
        f"{row.ms_per_sentence:.1f}" if row.ms_per_sentence is not None else "-",
        against,
    ]


def _format_number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.{0 if value >= 10 else 1 if value >= 1 else 2}f}"


def _read_artifacts(run: Path, model: Model) -> dict[str, bytes]:
    files = [file for pattern in model.recipe.artifacts for file in run.glob(pattern)]
    return {file.name: read_kept(file) for file in files}
