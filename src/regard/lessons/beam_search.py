"""Lesson: a beam that keeps several sentences open, as a tree; the search is the package's, over a trained model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from regard.decode import Beam, Choice, collect, score, wu
from regard.lessons.engine.builder import Page
from regard.lessons.engine.inputs import Input, Plan, Work
from regard.lessons.engine.lesson import Value
from regard.lessons.engine.views import Reader
from regard.sequence import Tokens

value = Page.value
LENGTHS = 12
COLUMNS = ["log p", "divided", "ended"]

INPUTS = (
    Input("sentence", "je suis étudiant", "what is read"),
    Input("beam", 4, "sentences that are kept open", bounds=(1, 16)),
    Input("alpha", 0.6, "how much length is forgiven", symbol=r"\alpha", bounds=(0, 5)),
    Input("limit", 12, "words that may be said at most", bounds=(1, 60)),
    Input("model", "", "a run of your own; nothing: a small one, trained once"),
)


@dataclass(frozen=True)
class Node:
    """A word of the tree.

    >>> Node(None, (7,), -0.1, -0.1, False).word
    7
    """

    parent: int | None
    prefix: tuple[int, ...]
    score: float
    value: float
    ended: bool

    @property
    def word(self) -> int:
        return self.prefix[-1]


def _work(given: Mapping[str, Value]) -> Work:
    """The penalty, each step of the search, the tree, and the answer beside the greedy one."""
    page = Page(given)
    width, alpha, limit = (given[name].data for name in ("beam", "alpha", "limit"))
    reader = Reader.of(given["model"].data, "transformer", given["sentence"].data)
    eos = reader.model.vocabularies.target.eos
    _penalty(page, alpha)
    choices, _ = reader.search(Beam(width, wu(alpha), eos=eos), limit)
    nodes = _nodes(choices)
    before = _steps(page, reader, nodes, width)
    best = collect(choices)[0][0]
    _tree(page, reader, nodes, best.tokens, before)
    _ranked(page, reader, nodes, best.tokens, alpha)
    greedy, _ = reader.search(Beam(1, eos=eos), limit)
    first = collect(greedy)[0][0]
    page.step(
        "Beside the greedy way",
        "Always the likeliest next word: a beam of one. Often it is the same sentence; where it is not, the greedy one "
        "began with a word that looked better than it was.",
        "",
        "beam_tree sentence limit",
        value("greedy", reader.text(first.tokens), "", r"\text{greedy}"),
        value("greedy_score", first.score, "", r"\text{log p}"),
        value("answer", reader.text(best.tokens), "", r"\text{beam}"),
        value("answer_score", best.score, "", r"\text{log p}"),
    )
    sos = reader.model.vocabularies.target.sos
    forced = score(reader.model.module, reader.source, Tokens.of([[sos, *best.tokens]])).totals[0]
    page.agree("the answer's log-probability, searched and read at once", float(forced), best.score, 1e-4)
    finals = [node.value for node in nodes if node.ended] or [node.value for node in nodes]
    page.agree("the answer is the best of those that ended", max(finals), best.value if best.complete else max(finals))
    return page.work()


def _penalty(page: Page, alpha: float) -> None:
    lengths = torch.arange(1, LENGTHS + 1, dtype=torch.float64)
    along = {"length": [str(i) for i in range(1, LENGTHS + 1)]}
    page.step(
        "Why lengths are forgiven",
        "Each word makes a sentence less likely, so the shortest would always win. The log-probability is divided by "
        "this number, which grows with the length. (Others divide by the length to the power alpha.)",
        r"\text{lp}(L) = (\frac{5 + L}{6})^\alpha",
        "alpha",
        value("penalty", wu(alpha)(lengths), "length", r"\text{lp}", along),
        value("seven", float(wu(alpha)(7.0)), "", r"\text{lp}(7)"),
    )
    page.lecture("the paper's penalty of a sentence of 7 words: 2 to the power 0.6", 2**0.6, "seven", 1e-9)


def _nodes(choices: Sequence[Choice]) -> list[Node]:
    """Every hypothesis that was kept, at every step, with the one it goes on from."""
    nodes: list[Node] = []
    live: list[int | None] = [None]
    for choice in choices:
        onward: list[int | None] = []
        columns = zip(*(part.tolist() for part in (choice.parents, choice.tokens, choice.scores, choice.values,
                                                  choice.ended, choice.live)), strict=True)  # fmt: skip
        for parent, token, total, ranked, ended, lives in columns:
            before = live[parent] if parent < len(live) else None
            if total > -math.inf:
                prefix = () if before is None else nodes[before].prefix
                nodes.append(Node(before, (*prefix, token), total, ranked, ended))
            if lives:
                onward.append(len(nodes) - 1 if total > -math.inf else None)
        live = onward
    return nodes


def _steps(page: Page, reader: Reader, nodes: Sequence[Node], width: int) -> str:
    """One step of the lesson for each of the search; the name of the last one's result."""
    longest, before = max(len(node.prefix) for node in nodes), "sentence beam alpha limit"
    for t in range(1, longest + 1):
        kept = [node for node in nodes if len(node.prefix) == t]
        rows = [[node.score, node.value, int(node.ended)] for node in kept]
        names = [" ".join(reader.said(node.prefix)) for node in kept]
        page.step(
            f"Step {t}",
            f"Every way on from every sentence is tried; the {width} likeliest that go on are kept, and those that end "
            "are put aside. Divided: what it would be worth if it ended here."
            if t == 1
            else "",
            r"\log p(y_1 \ldots y_t) = \log p(y_1 \ldots y_{t-1}) + \log p(y_t)" if t == 1 else "",
            before,
            value(f"kept_{t}", rows, "hypothesis column", rf"\text{{kept}}_{{{t}}}",
                  {"hypothesis": names, "column": COLUMNS}),
        )  # fmt: skip
        before = f"kept_{t} beam alpha limit"
    return before


def _tree(page: Page, reader: Reader, nodes: Sequence[Node], answer: tuple[int, ...], before: str) -> None:
    parents = {node.parent for node in nodes}
    rows = []
    for i, node in enumerate(nodes):
        fate = ""
        if node.prefix == answer:
            fate = "the answer"
        elif node.ended:
            fate = "ended"
        elif i not in parents:
            fate = "left behind" if len(node.prefix) < max(len(other.prefix) for other in nodes) else "still open"
        parent = "" if node.parent is None else str(node.parent)
        rows.append([parent, reader.said([node.word])[0], f"{node.score:.4f}", fate])
    page.step(
        "The whole tree",
        "A branch that is left behind was among the likeliest once, and others overtook it. The search is over when as "
        "many have ended as the beam is wide, or when nothing that is open can still win.",
        "",
        before,
        value("beam_tree", rows, "node told", r"\text{tree}", look="tree"),
    )


def _ranked(page: Page, reader: Reader, nodes: Sequence[Node], answer: tuple[int, ...], alpha: float) -> None:
    ended = sorted((node for node in nodes if node.ended), key=lambda node: -node.value)
    shown = ended or [node for node in nodes if node.prefix == answer]
    rows = [[node.score, len(node.prefix), float(wu(alpha)(float(len(node.prefix)))), node.value] for node in shown]
    page.step(
        "Those that ended, the best first" if ended else "Nothing ended before the limit",
        "The log-probability, the length with <EOS>, the penalty, and one divided by the other: the largest is the "
        "answer.",
        r"\frac{\log p}{\text{lp}(L)}",
        "beam_tree alpha limit",
        value("ranked", rows, "hypothesis column", r"\text{ranked}",
              {"hypothesis": [" ".join(reader.said(node.prefix)) for node in shown],
               "column": ["log p", "L", "lp(L)", "divided"]}),
    )  # fmt: skip
    by_hand = [row[0] / ((5 + row[1]) / 6) ** alpha for row in rows]
    page.agree("the formula and what the search ranked by", by_hand, [row[3] for row in rows], 1e-9)


PLAN = Plan(INPUTS, _work)
