"""Lesson: BLEU and training cost as the papers give them, beside the results of this package's recipes."""

from __future__ import annotations

import re

from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.line.table import load_line

DIRECTIONS = ("en-de", "en-fr")
QUOTED: dict[str, tuple[float | None, float | None, float | None, float | None]] = {
    "ByteNet": (23.75, None, None, None),
    "Deep-Att + PosUnk": (None, 39.2, None, 1.0e20),
    "GNMT + RL": (24.6, 39.92, 2.3e19, 1.4e20),
    "ConvS2S": (25.16, 40.46, 9.6e18, 1.5e20),
    "MoE": (26.03, 40.56, 2.0e19, 1.2e20),
    "GNMT + RL, ensemble": (26.30, 41.16, 1.8e20, 1.1e21),
    "ConvS2S, ensemble": (26.36, 41.29, 7.7e19, 1.2e21),
    "Transformer, base": (27.3, 38.1, 3.3e18, 3.3e18),
    "Transformer, big": (28.4, 41.8, 2.3e19, 2.3e19),
}
"""Vaswani et al. 2017, table 2: BLEU on newstest2014 English-German and English-French, FLOP of training for each"""
LECTURE = 41.0
"""En-Fr of the big model as in the paper's first version and the lectures"""
OURS = ("seq2seq", "luong", "rnnsearch", "transformer")
"""systems of the line whose recipes translate"""
_BLEU = re.compile(r"(\d+\.\d+)(?: \((?:(\d+\.\d+) to (\d+\.\d+)|(\w+))\))?")

INPUTS = (
    Input("direction", "en-de", "direction of translation", choices=DIRECTIONS),
    Input("against", "GNMT + RL", "the system that the others are compared with", choices=tuple(QUOTED)),
    Input("petaflops", 1.0, "speed of a machine in petaflop/s, for the time of training", bounds=(1e-6, 1e6)),
)


def compute(page: LessonBuilder) -> None:
    """Quoted scores, differences and costs; then the scores of this package's recipes, on other corpora."""
    column, against = DIRECTIONS.index(page.data("direction")), page.data("against")
    bleu = {name: row[column] for name, row in QUOTED.items() if row[column] is not None}
    cost = {name: row[column + 2] for name, row in QUOTED.items() if row[column + 2] is not None}
    if against not in bleu:
        raise page.error(f"against: the paper gives no score of {against} for {page.data('direction')}")
    names = {"system": list(bleu)}
    page.step(
        "BLEU, as the paper quotes it",
        "newstest2014 of the WMT: 4.5 million sentence pairs of training data for English-German, 36 million for "
        "English-French. An ensemble averages several models. For the big model's English-French the lectures quote "
        f"{LECTURE:g}, of the paper's first version.",
        "",
        "direction",
        value("bleu", list(bleu.values()), "system", r"\text{BLEU}", names),
        value("best", max(bleu, key=lambda name: bleu[name] or 0), "", r"\text{best}"),
    )
    ahead = [round((score or 0) - (bleu[against] or 0), 2) for score in bleu.values()]
    page.step(
        "Differences",
        f"BLEU points ahead of {against}. BLEU of two corpora, or of two tokenizations, cannot be compared; "
        "these are of "
        "one test set.",
        r"\text{BLEU} - \text{BLEU}'",
        "bleu against",
        value("ahead", ahead, "system", r"\text{ahead}", names),
    )
    seconds = [(flop or 0) / (page.data("petaflops") * 1e15) for flop in cost.values()]
    page.step(
        "Cost of training",
        "Floating-point operations as the paper estimates them, and the days that a machine of the given speed would "
        "be busy. The base model costs a fraction of the others and is ahead of most.",
        r"\text{days} = \frac{\text{FLOP}}{\text{petaflop/s} \times 10^{15} \times 86400}",
        "direction petaflops",
        value("flop", list(cost.values()), "system", r"\text{FLOP}", {"system": list(cost)}),
        value("days", [s / 86400 for s in seconds], "system", r"\text{days}", {"system": list(cost)}),
    )
    _ours(page)
    page.expect("the big Transformer, English-German", 2.04, "ahead_of_ensembles", 5e-3)


def _ours(page: LessonBuilder) -> None:
    rows, labels = [], []
    for entry in load_line().entries:
        if entry.id in OURS and entry.result:
            for found in _BLEU.finditer(entry.score):
                low, high = found[2] or "-", found[3] or "-"
                labels.append(f"{entry.name}{f', {found[4]}' if found[4] else ''}")
                rows.append([float(found[1]), low, high, entry.recipe or ""])
    best_ensemble = max(QUOTED[name][0] or 0 for name in QUOTED if "ensemble" in name)
    page.step(
        "Ours, on a small corpus",
        "BLEU of this package's recipes on Multi30k, captions of photographs: 29,000 pairs, 18 to 100 minutes on "
        "one or "
        "two cores, with 95 % intervals where they were computed. Short sentences on few subjects are easier than "
        "news: the figures stand beside the paper's, not against them. German-English except the Transformer, which "
        "is English-German.",
        "",
        "direction",
        value("ours", [[f"{row[0]}", row[1], row[2]] for row in rows], "system column", r"\text{ours}",
              {"system": labels, "column": ["BLEU", "from", "to"]}),
        value("recipes", [[row[3]] for row in rows], "system column", r"\text{recipes}",
              {"system": labels, "column": ["recipe"]}, "records"),
        value("ahead_of_ensembles", round((QUOTED["Transformer, big"][0] or 0) - best_ensemble, 2), "",
              r"\text{big, ahead of ensembles}"),
    )  # fmt: skip


FIGURE = "direction > bleu > ahead; against > ahead; direction > flop > days; petaflops > days"
EXERCISES = (
    Exercise(
        "By how many BLEU points is the big Transformer ahead of GNMT + RL on English-German?",
        lambda lesson: lesson.value("ahead").data[-1],
        hint="28.4 and 24.6",
    ),
    Exercise(
        "How many times the cost of the base Transformer did GNMT + RL take on English-German? One decimal.",
        lambda lesson: QUOTED["GNMT + RL"][2] / QUOTED["Transformer, base"][2],  # type: ignore[operator]
        hint="2.3e19 and 3.3e18 FLOP",
        tolerance=0.06,
    ),
)
READING = Reading(
    "The paper's scores and GNMT's beside ours",
    ("BLEU", "newstest2014", "ensemble", "training cost in FLOP", "confidence interval"),
    (
        "Vaswani et al. 2017, Attention is all you need, section 6.1 and table 2",
        "Wu et al. 2016, Google's neural machine translation system, tables 4 to 6",
        "Papineni et al. 2002, BLEU: a method for automatic evaluation of machine translation",
    ),
)
