"""One table of several models on the same data: how good, how large, how fast, and whether by luck."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from regard import metrics
from regard.compare.by_length import by_length
from regard.compare.match_parameters import counted
from regard.compare.recipe import digest
from regard.errors import ModelError
from regard.files import cannot_write, read_lines, write_text_atomically
from regard.look.curves import CurvesView
from regard.metrics import Paired, Parts, Score
from regard.models.base import parameters
from regard.objective import Tell, silent
from regard.run import Run, load, run_of
from regard.tasks import Answer, Asked, Evaluation, Model
from regard.tasks.translate.recipe import TranslationModel
from regard.train import checkpoint

KEPT = "evaluation.json"
"""in a run: what it was scored on and what it said, so that it need not say it again"""
WARM = 32
"""sentences that a model translates before it is timed"""
FEWEST = 20
"""parts that a test draws from: fewer say too little of what chance does"""


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
    """time that training took, validation not counted: its steps times the mean of those that were timed"""
    tokens_a_second: float | None = None
    """predictions that were learnt from, a second"""
    milliseconds: float | None = None
    """of decoding, a sentence; many are decoded together"""
    against_best: Paired | None = None
    """from the best one to this; None: it is the best, or there is nothing to pair"""
    remark: str = ""
    """what the test against the best was made on, if not on all that was scored alike, or why there is none"""


@dataclass(frozen=True)
class Table:
    """All rows, and the score by length of what was read, if sentences were read.

    >>> Table("test", (Row("gru", "seq2seq 1+1 layers, width 256", "diverged"),), None).best is None
    True
    """

    data: str
    """the name of what was scored, such as "test\""""
    rows: tuple[Row, ...]
    curves: CurvesView | None
    size: str = ""
    """how much was scored, such as "1,000 sentences\""""
    origin: str = ""
    """where the data is from, and whom to credit"""

    @property
    def best(self) -> Row | None:
        """The row with the best score."""
        return best_of(self.rows)

    def cells(self) -> list[list[str]]:
        """The table as texts, its head first."""
        named = next((row.score.name for row in self.rows if row.score), "score")
        head = ["model", named, "95 %", "parameters", "seconds", "tokens/s", "ms/sentence", "against the best"]
        return [head, *(_cells(row, row is self.best) for row in self.rows)]

    def notes(self) -> list[str]:
        """What stands under the table: what was scored, how, and why some have no score, or no test.

        >>> rows = Row("gru", "", score=Score("bleu", 9.0, 8.0, 10.0, "nrefs:1", 7)), Row("lstm", "", "loss became NaN")
        >>> Table("test", rows, None, "7 sentences", "phrases fr-en").notes()
        ['on test, 7 sentences: phrases fr-en', 'bleu nrefs:1', 'lstm: loss became NaN']
        """
        best, lines = self.best, []
        if best and best.score:
            told = f"on {self.data}{', ' * bool(self.size)}{self.size}{': ' * bool(self.origin)}{self.origin}"
            lines = [told, f"{best.score.name} {best.score.signature}"]
        whys = [f"{row.name}: {why}" for row in self.rows for why in (row.failure, row.remark) if why]
        return [*lines, *whys]

    def text(self) -> str:
        """The table for a terminal."""
        cells = self.cells()
        wide = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        sides = "<>>>>>><"
        lines = ["  ".join(f"{cell:{sides[i]}{wide[i]}}" for i, cell in enumerate(line)).rstrip() for line in cells]
        return "\n".join([*lines, "", *self.notes()])

    def markdown(self) -> str:
        """The table for a page."""
        head, *lines = self.cells()
        rule = ["---", *["---:"] * (len(head) - 2), "---"]
        drawn = [f"| {' | '.join(line)} |" for line in [head, rule, *lines]]
        return "\n".join([*drawn, "", *(f"- {note}" for note in self.notes())]) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        rows = [asdict(row) | {"best": row is self.best} for row in self.rows]
        found = {"data": self.data, "size": self.size, "origin": self.origin, "models": rows}
        return found | {"lengths": self.curves.to_dict() if self.curves else None}

    def save(self, folder: Path) -> list[Path]:
        """Write compare.json, compare.md and, if there is one, the picture lengths.svg."""
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


def lined_up(runs: Mapping[str, Path], failures: Mapping[str, str] | None = None, tell: Tell = silent) -> Table:
    """Score every run on its test data and compare them; those in `failures` only have a line that says why."""
    failed = failures or {}
    models = {name: load(path) for name, path in runs.items() if name not in failed}
    check_comparable({str(runs[name]): (run_of(runs[name]), model) for name, model in models.items()})
    found = {name: evaluated(runs[name], model, tell) for name, model in models.items()}
    check_same_data({str(runs[name]): evaluation for name, evaluation in found.items()})
    rows = [
        _failed(name, path, failed[name]) if name in failed else _row(name, path, models[name], found[name])
        for name, path in runs.items()
    ]
    best = best_of(rows)
    if best is None:
        return Table("nothing", tuple(rows), None)
    compared = tuple(_against(row, best, found) for row in rows)
    said = {name: one.answers for name, one in found.items() if one.scores[0].name == "bleu"}
    one, origin = found[best.name], models[best.name].recipe.origin()
    size = f"{one.scores[0].n:,} {one.unit}" if one.answers or one.unit != "sentences" else ""
    return Table(one.data, compared, by_length(said, _lowercase(best)), size, origin)


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
        whole = "parts" in kept or isinstance(model, TranslationModel)  # else it was kept before tests needed more
        if kept["identity"] == identity and whole:
            before = [Score(**row) for row in kept["scores"]]
            answers = [Answer(*row) for row in kept["answers"]]
            unit, parts = kept.get("unit", "sentences"), [(total, count) for total, count in kept.get("parts", ())]
            return Evaluation(kept["data"], before, answers, kept["seconds"], unit=unit, parts=parts)
    if isinstance(model, TranslationModel):  # the first batch also pays for what is loaded and reserved
        model.translate(model.asked_pairs(Asked())[1][:WARM])
    found = model.evaluate(Asked(), tell)
    content = {
        "identity": identity,
        "data": found.data,
        "unit": found.unit,
        "scores": [asdict(one) for one in found.scores],
        "seconds": found.seconds,
        "answers": [[answer.source, answer.output, answer.reference] for answer in found.answers],
        "parts": [[total, count] for total, count in found.parts],
    }
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
        how = [", ".join(f"{s.name} {s.signature}" for s in e.scores[:1]) for e in (one, evaluation)]
        if how[0] != how[1]:
            raise ModelError(
                f"{first} and {name} are scored in different ways, which cannot be compared: {how[0]}; {how[1]}"
            )


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


def _failed(name: str, path: Path, why: str) -> Row:
    run = run_of(path)
    recipe = Run(run).recipe()
    return Row(name, recipe.model.shape, why, parameters=counted(recipe, run))


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
    if best is None or row is best or row.score is None:
        return row
    one, own = found[best.name], found[row.name]
    if row.score.name not in ("bleu", "chrf", "ter"):
        a, b, remark = matched(one, own)
        made = metrics.paired_parts(a, b, row.score.name, row.score.signature) if a else None
        return replace(row, against_best=made, remark=remark)
    if not own.answers:
        return row
    sides = [[answer.output for answer in evaluation.answers] for evaluation in (one, own)]
    references = [answer.reference for answer in own.answers]
    name: Any = row.score.name
    made = metrics.paired(sides[0], sides[1], references, name, lowercase=_lowercase(best))
    return replace(row, against_best=made)


def matched(best: Evaluation, own: Evaluation) -> tuple[Parts, Parts, str]:
    """The parts on which a model is tested against the best, both models', and a remark; without a test, no parts.

    What has answers is known to be scored on the same ones. Windows depend on a recipe's settings: where they are not
    the same, they are added up to where both end.

    >>> wide = Evaluation("valid", [], unit="windows", parts=[(9.0, 8)] * 30)
    >>> narrow = Evaluation("valid", [], unit="windows", parts=[(4.0, 4)] * 60)
    >>> a, b, remark = matched(wide, narrow)
    >>> len(a), b[0], remark
    (30, (8.0, 8), 'its windows are not those of the best; tested on the 30 longer pieces that both can be cut into')
    """
    if not best.parts or not own.parts:
        return (), (), ""  # forecasts
    asked = [[count for _, count in evaluation.parts] for evaluation in (best, own)]
    if own.answers or asked[0] == asked[1]:
        few = f"no p-value: {len(own.parts)} {own.unit} are scored, and a test needs at least {FEWEST}"
        return (best.parts, own.parts, "") if len(own.parts) >= FEWEST else ((), (), few)
    if sum(asked[0]) != sum(asked[1]):
        sizes = f"{sum(asked[1]):,} predictions and the best one on {sum(asked[0]):,}"
        return (), (), f"no p-value: it was scored on {sizes}, which are not of one text"
    a, b = metrics.shared_parts(best.parts, own.parts)
    told = f"its {own.unit} are not those of the best"
    if len(a) < FEWEST:
        remedy = "train both with one task.window and train.tokens"
        return (), (), f"no p-value: {told}, and too few end where those do, {len(a)} of {FEWEST}; {remedy}"
    return a, b, f"{told}; tested on the {len(a):,} longer pieces that both can be cut into"


def _lowercase(best: Row | None) -> bool:
    return best is not None and best.score is not None and "case:lc" in best.score.signature


def _cells(row: Row, best: bool) -> list[str]:
    if row.score is None:
        return [row.name, "-", "-", f"{row.parameters:,}", "-", "-", "-", "no score"]
    made = row.against_best
    digits = 2 if abs(row.score.value) >= 10 else 3
    against = f"{made.delta:+.{digits}f}, p = {made.p_value:.3f}" if made else "the best" if best else "-"
    return [
        row.name,
        f"{row.score.value:.{digits}f}",
        f"{row.score.low:.{digits}f} to {row.score.high:.{digits}f}",
        f"{row.parameters:,}",
        _number(row.seconds),
        _number(row.tokens_a_second),
        f"{row.milliseconds:.1f}" if row.milliseconds is not None else "-",
        against,
    ]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.{0 if value >= 10 else 1 if value >= 1 else 2}f}"


def _kept(run: Path, model: Model) -> dict[str, str]:
    files = [file for pattern in model.recipe.kept for file in run.glob(pattern)]
    return {file.name: file.read_text(encoding="utf-8") for file in files}
