"""One table of several models on the same data: how good, how large, how fast, and whether by luck."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from regard import score
from regard.compare.family import digest
from regard.compare.lengths import by_length
from regard.errors import ModelError
from regard.jobs import Answer, Asked, Evaluation, Model
from regard.look.curves import CurvesView
from regard.models.base import parameters
from regard.run import Run, load, run_of
from regard.score import Paired, Score
from regard.tasks.base import Tell
from regard.train import checkpoint
from regard.train.durable import read_lines, write_text_atomically

KEPT = "evaluation.json"
"""in a run: what it was scored on and what it said, so that it need not say it again"""


@dataclass(frozen=True)
class Row:
    """One model.

    >>> Row("gru", "seq2seq 1+1 layers, width 256", "loss became NaN at step 5").failure
    'loss became NaN at step 5'
    """

    name: str
    shape: str
    failure: str = ""
    """why there are no numbers"""
    step: int = 0
    score: Score | None = None
    others: tuple[Score, ...] = ()
    parameters: int = 0
    seconds: float | None = None
    """time that training took, validation not counted"""
    tokens_a_second: float | None = None
    """predictions that were learnt from, a second"""
    milliseconds: float | None = None
    """of decoding, a sentence; many are decoded together"""
    against_best: Paired | None = None
    """from the best one to this; None: it is the best, or there are no sentences to pair"""


@dataclass(frozen=True)
class Table:
    """All rows, and the score by length of what was read, if sentences were read.

    >>> Table("test", (Row("gru", "seq2seq 1+1 layers, width 256", "diverged"),), None).best is None
    True
    """

    data: str
    rows: tuple[Row, ...]
    curves: CurvesView | None

    @property
    def best(self) -> Row | None:
        """The row with the best score."""
        return best_of(self.rows)

    def cells(self) -> list[list[str]]:
        """The table as texts, its head first."""
        named = next((row.score.name for row in self.rows if row.score), "score")
        head = ["model", named, "95 %", "parameters", "seconds", "tokens/s", "ms/sentence", "against the best"]
        return [head, *(_cells(row, row is self.best) for row in self.rows)]

    def text(self) -> str:
        """The table for a terminal."""
        cells = self.cells()
        wide = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        sides = "<>>>>>><"
        return "\n".join(
            "  ".join(f"{cell:{sides[i]}{wide[i]}}" for i, cell in enumerate(line)).rstrip() for line in cells
        )

    def markdown(self) -> str:
        """The table for a page."""
        head, *lines = self.cells()
        rule = ["---", *["---:"] * (len(head) - 2), "---"]
        return "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *lines]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        rows = [asdict(row) | {"best": row is self.best} for row in self.rows]
        return {"data": self.data, "models": rows, "lengths": self.curves.to_dict() if self.curves else None}

    def save(self, folder: Path) -> list[Path]:
        """Write compare.json, compare.md and, if there is one, the picture lengths.svg."""
        texts = {
            "compare.json": json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n",
            "compare.md": self.markdown(),
        }
        if self.curves:
            texts["lengths.svg"] = self.curves.svg()
        for name, content in texts.items():
            write_text_atomically(folder / name, content)
        return [folder / name for name in texts]


def lined_up(runs: Mapping[str, Path], failures: Mapping[str, str], tell: Tell) -> Table:
    """Score every run on its test data and compare them; those in `failures` only have a line that says why."""
    models = {name: load(path) for name, path in runs.items() if name not in failures}
    check_comparable({str(runs[name]): (run_of(runs[name]), model) for name, model in models.items()})
    found = {name: evaluated(runs[name], model, tell) for name, model in models.items()}
    check_same_data({str(runs[name]): evaluation for name, evaluation in found.items()})
    rows = []
    for name, path in runs.items():
        if name in failures:
            rows.append(Row(name, Run(run_of(path)).recipe().model.shape, failures[name]))
        else:
            rows.append(_row(name, path, models[name], found[name]))
    best = best_of(rows)
    compared = tuple(_against(row, best, found) for row in rows)
    data = next(iter(found.values())).data if found else "nothing"
    return Table(data, compared, by_length({name: e.answers for name, e in found.items()}, _lowercase(best)))


def best_of(rows: Sequence[Row]) -> Row | None:
    """The row with the best score, the first of equal ones.

    >>> rows = [Row(n, "", score=Score("bleu", v, v, v, "", 1)) for n, v in (("a", 1.0), ("b", 2.0))]
    >>> best_of(rows).name
    'b'
    """
    scored = [(row, row.score.value if not row.score.falls else -row.score.value) for row in rows if row.score]
    return max(scored, key=lambda pair: pair[1])[0] if scored else None


def evaluated(path: Path, model: Model, tell: Tell) -> Evaluation:
    """How good a model is on its test data: as it was found before, unless it has changed since."""
    run = run_of(path)
    identity = {"step": model.step, "recipe": digest(model.recipe)}
    if (run / KEPT).exists():
        kept = json.loads((run / KEPT).read_text(encoding="utf-8"))
        if kept["identity"] == identity:
            before = [Score(**row) for row in kept["scores"]]
            return Evaluation(kept["data"], before, [Answer(*row) for row in kept["answers"]], kept["seconds"])
    found = model.evaluate(Asked(), tell)
    answers = [[answer.source, answer.output, answer.reference] for answer in found.answers]
    scores = [asdict(one) for one in found.scores]
    content = {"identity": identity, "data": found.data, "scores": scores, "seconds": found.seconds, "answers": answers}
    write_text_atomically(run / KEPT, json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    return found


def check_comparable(models: Mapping[str, tuple[Path, Model]]) -> None:
    """Refuse what cannot be compared: models of other tasks or with other vocabularies."""
    if len(models) < 2:
        return
    (first, (home, one)), *others = models.items()
    for name, (run, model) in others:
        if model.recipe.kind() != one.recipe.kind():
            raise ModelError(
                f"{first} was trained to {one.recipe.kind()} and {name} to {model.recipe.kind()}; "
                "only models of one task can be compared"
            )
        if _kept(home, one) != _kept(run, model):
            raise ModelError(
                f"{first} and {name} have different vocabularies; train both on the same [data] and [text] to compare "
                "them, as `regard compare RECIPE` does"
            )


def check_same_data(found: Mapping[str, Evaluation]) -> None:
    """Refuse scores of different sentences."""
    if len(found) < 2:
        return
    (first, one), *others = found.items()
    for name, evaluation in others:
        asked = [[(a.source, a.reference) for a in e.answers] for e in (one, evaluation)]
        if one.data != evaluation.data or asked[0] != asked[1]:
            raise ModelError(f"{first} and {name} are scored on different data; compare models of one [data] section")


def speed(run: Path, step: int) -> tuple[float | None, float | None]:
    """Seconds that training took, and predictions a second, from the steps that metrics.jsonl has.

    >>> speed(Path("runs/none"), 100)
    (None, None)
    """
    path = run / "metrics.jsonl"
    rows = [json.loads(line) for line in read_lines(path)] if path.exists() else []
    steps = [row for row in rows if row["event"] == "stepped" and row["step"] > 10] or [
        row for row in rows if row["event"] == "stepped"
    ]  # the first ones warm up
    seconds = sum(row["seconds"] for row in steps)
    if not seconds:
        return None, None
    return seconds / len(steps) * step, sum(row["tokens"] for row in steps) / seconds


def _row(name: str, path: Path, model: Model, found: Evaluation) -> Row:
    last = _steps(run_of(path), model.step)
    seconds, tokens = speed(run_of(path), last)
    each = 1000 * found.seconds / len(found.answers) if found.seconds is not None and found.answers else None
    return Row(
        name,
        model.recipe.model.shape,
        step=model.step,
        score=found.scores[0],
        others=tuple(found.scores[1:]),
        parameters=parameters(model.module),
        seconds=seconds,
        tokens_a_second=tokens,
        milliseconds=each,
    )


def _steps(run: Path, step: int) -> int:
    """How many steps the run made in all: the best one may be an earlier one."""
    found = checkpoint.newest(run).checkpoint
    return max(step, found.step) if found else step


def _against(row: Row, best: Row | None, found: Mapping[str, Evaluation]) -> Row:
    if best is None or row is best or row.score is None or row.score.name not in ("bleu", "chrf", "ter"):
        return row
    sides = [[answer.output for answer in found[name].answers] for name in (best.name, row.name)]
    if not sides[0]:
        return row
    references = [answer.reference for answer in found[row.name].answers]
    name: Any = row.score.name
    made = score.paired(sides[0], sides[1], references, name, lowercase=_lowercase(best))
    return replace(row, against_best=made)


def _lowercase(best: Row | None) -> bool:
    return best is not None and best.score is not None and "case:lc" in best.score.signature


def _cells(row: Row, best: bool) -> list[str]:
    if row.score is None:
        return [row.name, "-", "-", "-", "-", "-", "-", f"no score: {row.failure}"]
    made = row.against_best
    against = f"{made.delta:+.2f}, p = {made.p_value:.3f}" if made else "the best" if best else "-"
    return [
        row.name,
        f"{row.score.value:.2f}",
        f"{row.score.low:.2f} to {row.score.high:.2f}",
        f"{row.parameters:,}",
        _number(row.seconds),
        _number(row.tokens_a_second),
        f"{row.milliseconds:.1f}" if row.milliseconds is not None else "-",
        against,
    ]


def _number(value: float | None) -> str:
    return f"{value:,.0f}" if value is not None else "-"


def _kept(run: Path, model: Model) -> dict[str, str]:
    files = [file for pattern in model.recipe.kept for file in run.glob(pattern)]
    return {file.name: file.read_text(encoding="utf-8") for file in files}
