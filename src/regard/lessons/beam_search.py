"""Lesson: beam search as a tree of hypotheses, by the package's search over a trained model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from regard.decode import Beam, Choice, collect, score, wu_penalty
from regard.lessons.engine.builder import Input, LessonBuilder, value
from regard.lessons.engine.exercises import Exercise
from regard.lessons.engine.reading import Reading
from regard.lessons.engine.translator import LessonTranslator
from regard.sequence import Tokens

LENGTHS = [str(i) for i in range(1, 13)]

INPUTS = (
    Input("sentence", "je suis étudiant", "source sentence"),
    Input("beam", 4, "beam size", bounds=(1, 16)),
    Input("alpha", 0.6, "strength of the length penalty", symbol=r"\alpha", bounds=(0, 5)),
    Input("limit", 12, "most words to generate", bounds=(1, 60)),
    Input("model", "", "a run of your own; default: a small model, trained once"),
)


@dataclass(frozen=True)
class BeamNode:
    """A hypothesis at one step of the search."""

    parent: int | None
    prefix: tuple[int, ...]
    score: float
    value: float
    ended: bool


def compute(page: LessonBuilder) -> None:
    """The length penalty, each step of the search, the tree, and the answer compared with greedy search."""
    width, alpha, limit = (page.data(name) for name in ("beam", "alpha", "limit"))
    reader = LessonTranslator.load(page.data("model"), "transformer", page.data("sentence"))
    target = reader.model.vocabularies.target
    _penalty(page, alpha)
    choices, _ = reader.search(Beam(width, wu_penalty(alpha), eos=target.eos), limit)
    nodes, best = _nodes(choices), collect(choices)[0][0]
    using = _steps(page, reader, nodes, width)
    _tree(page, reader, nodes, best.tokens, using)
    _ranking(page, reader, nodes, best.tokens, alpha)
    greedy = collect(reader.search(Beam(1, eos=target.eos), limit)[0])[0][0]
    page.step(
        "Compared with greedy search",
        "Always the most probable next word: a beam of one. Often it is the same sentence; where it is not, greedy "
        "search began with a word that was probable at first, but led to a less probable sentence.",
        "",
        "beam_tree sentence limit",
        value("greedy", reader.text(greedy.tokens), "", r"\text{greedy}"),
        value("greedy_score", greedy.score, "", r"\text{log p}"),
        value("answer", reader.text(best.tokens), "", r"\text{beam}"),
        value("answer_score", best.score, "", r"\text{log p}"),
    )
    forced = score(reader.model.module, reader.source, Tokens.pad([[target.sos, *best.tokens]])).totals[0]
    page.compare("the answer's log-probability, decoded and teacher-forced", float(forced), best.score, 1e-4)
    finals = [node.value for node in nodes if node.ended] or [node.value for node in nodes]
    found = best.value if best.complete else max(finals)
    page.compare("the answer is the best finished hypothesis", max(finals), found)


def _penalty(page: LessonBuilder, alpha: float) -> None:
    lengths = torch.arange(1, len(LENGTHS) + 1, dtype=torch.float64)
    page.step(
        "Why a length penalty",
        "Each word makes a sentence less probable, so the shortest would always win. The log-probability is divided by "
        "this number, which grows with the length. (Others divide by the length to the power alpha.)",
        r"\text{lp}(L) = (\frac{5 + L}{6})^\alpha",
        "alpha",
        value("penalty", wu_penalty(alpha)(lengths), "length", r"\text{lp}", {"length": LENGTHS}),
        value("seven", float(wu_penalty(alpha)(7.0)), "", r"\text{lp}(7)"),
    )
    page.expect("the paper's penalty of a sentence of 7 words: 2 to the power 0.6", 2**0.6, "seven", 1e-9)


def _nodes(choices: Sequence[Choice]) -> list[BeamNode]:
    """Every hypothesis that was kept at any step, with its parent."""
    nodes: list[BeamNode] = []
    live: list[int | None] = [None]
    for choice in choices:
        continued: list[int | None] = []
        columns = zip(*(part.tolist() for part in (choice.parents, choice.tokens, choice.scores, choice.values,
                                                  choice.ended, choice.live)), strict=True)  # fmt: skip
        for parent, token, total, ranked, ended, lives in columns:
            before = live[parent] if parent < len(live) else None
            if total > -math.inf:
                prefix = () if before is None else nodes[before].prefix
                nodes.append(BeamNode(before, (*prefix, token), total, ranked, ended))
            if lives:
                continued.append(len(nodes) - 1 if total > -math.inf else None)
        live = continued
    return nodes


def _texts(reader: LessonTranslator, nodes: Sequence[BeamNode]) -> list[str]:
    return [" ".join(reader.target_words(node.prefix)) for node in nodes]


def _steps(page: LessonBuilder, reader: LessonTranslator, nodes: Sequence[BeamNode], width: int) -> str:
    """Add one step per step of the search; gives the operands of the next one."""
    using = "sentence beam alpha limit"
    for t in range(1, max(len(node.prefix) for node in nodes) + 1):
        kept = [node for node in nodes if len(node.prefix) == t]
        rows = [[node.score, node.value, int(node.ended)] for node in kept]
        labels = {"hypothesis": _texts(reader, kept), "column": ["log p", "divided", "ended"]}
        page.step(
            f"Step {t}",
            f"Every continuation of every hypothesis is scored; the {width} most probable unfinished ones are kept, "
            "and finished ones are set aside. Divided: the score if it ended here."
            if t == 1
            else "",
            r"\log p(y_1 \ldots y_t) = \log p(y_1 \ldots y_{t-1}) + \log p(y_t)" if t == 1 else "",
            using,
            value(f"kept_{t}", rows, "hypothesis column", rf"\text{{kept}}_{{{t}}}", labels),
        )
        using = f"kept_{t} beam alpha limit"
    return using


def _tree(
    page: LessonBuilder, reader: LessonTranslator, nodes: Sequence[BeamNode], answer: tuple[int, ...], using: str
) -> None:
    parents, longest = {node.parent for node in nodes}, max(len(node.prefix) for node in nodes)
    rows = []
    for i, node in enumerate(nodes):
        outcome = ""
        if node.prefix == answer:
            outcome = "the answer"
        elif node.ended:
            outcome = "ended"
        elif i not in parents:
            outcome = "pruned" if len(node.prefix) < longest else "still open"
        parent = "" if node.parent is None else str(node.parent)
        rows.append([parent, reader.target_words(node.prefix[-1:])[0], f"{node.score:.4f}", outcome])
    page.step(
        "The whole tree",
        "A pruned branch was among the most probable once, and others overtook it. The search ends when as many "
        "hypotheses have ended as the beam is wide, or when no open one can still win.",
        "",
        using,
        value("beam_tree", rows, "node column", r"\text{tree}", look="tree"),
    )


def _ranking(
    page: LessonBuilder, reader: LessonTranslator, nodes: Sequence[BeamNode], answer: tuple[int, ...], alpha: float
) -> None:
    ended = sorted((node for node in nodes if node.ended), key=lambda node: -node.value)
    shown = ended or [node for node in nodes if node.prefix == answer]
    lengths = [len(node.prefix) for node in shown]
    rows = [[node.score, n, float(wu_penalty(alpha)(float(n))), node.value] for node, n in zip(shown, lengths)]
    page.step(
        "Finished hypotheses, the best first" if ended else "Nothing ended before the limit",
        "The log-probability, the length with <EOS>, the length penalty, and their quotient: the largest is the "
        "answer.",
        r"\frac{\log p}{\text{lp}(L)}",
        "beam_tree alpha limit",
        value("ranked", rows, "hypothesis column", r"\text{ranked}",
              {"hypothesis": _texts(reader, shown), "column": ["log p", "L", "lp(L)", "divided"]}),
    )  # fmt: skip
    formula = [row[0] / ((5 + row[1]) / 6) ** alpha for row in rows]
    page.compare("the formula and the search's ranking", formula, [row[3] for row in rows], 1e-9)


FIGURE = "sentence > greedy; sentence > beam_tree > ranked > answer; alpha > penalty > ranked"
EXERCISES = (
    Exercise(
        "The length penalty ((5 + L) / 6)^alpha: what is it for L = 7 and alpha = 0.6? Two decimals.",
        "seven",
        hint="2 to the power of 0.6",
    ),
    Exercise(
        "With alpha = 0, what is the length penalty of any hypothesis?",
        "seven",
        {"alpha": 0.0},
        hint="a power of 0",
    ),
)
READING = Reading(
    "Beam search, both length penalties, coverage, constraints; as a tree",
    ("beam search", "hypothesis", "length penalty", "pruning", "greedy search"),
    (
        "Wu et al. 2016, Google's neural machine translation system, section 7",
        "Vaswani et al. 2017, Attention is all you need, section 6.1",
    ),
)
