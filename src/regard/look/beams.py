"""The tree of a beam search, from what was recorded: who was alive at each step, how likely, who was left behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from regard.look.decoding_path import Spell, passes, plain, sources, spelt
from regard.look.tokens import shown
from regard.trace import Record

Prefix = tuple[int, ...]


def tree(records: Sequence[Record], spell: Spell) -> list[dict[str, Any]]:
    """One node a hypothesis and step: token, log-probability so far, parent, and whether it became the answer.

    A node that was left behind says how likely its best way on was, and how likely the last that stayed.

    >>> tree([], {})
    []
    """
    found = [one for one in passes("logits", records) if one.decoded]
    if not found:
        return []
    source = found[0].sources[0]
    answer = tuple(found[0].said(source))
    live: list[dict[Prefix, float]] = [{(): 0.0}]  # of each step: prefixes with their scores
    best: list[dict[Prefix, list[float]]] = []  # and how likely each way on is
    for record in found[0].records:
        logs = record.data.float().log_softmax(-1)
        rows = {_said(record, row): row for row, owner in reversed(list(enumerate(sources(record)))) if owner == source}
        before = live[-1] if record.scene["step"] else {(): 0.0}
        if record.scene["step"]:
            before = {p: live[-1][p[:-1]] + best[-1][p[:-1]][p[-1]] for p in rows if p[:-1] in best[-1]}
            live.append(before)
        best.append({prefix: logs[row].double().tolist() for prefix, row in rows.items() if prefix in before})
    return _nodes(live, best, answer, spell)


def _said(record: Record, row: int) -> Prefix:
    return tuple(plain(record.scene["target"][row])) if record.scene["step"] else ()


def _nodes(
    live: Sequence[dict[Prefix, float]], best: Sequence[dict[Prefix, list[float]]], answer: Prefix, spell: Spell
) -> list[dict[str, Any]]:
    numbers: dict[Prefix, int] = {}
    nodes: list[dict[str, Any]] = []

    def add(prefix: Prefix, score: float, state: str, **more: Any) -> None:
        numbers[prefix] = len(nodes)
        token = spelt(prefix[-1:], "target", spell)[0]
        parent = numbers.get(prefix[:-1])
        nodes.append(
            {
                "step": len(prefix),
                "token": token,
                "shown": shown(token),
                "score": score,
                "parent": parent,
                "state": state,
            }
            | {"chosen": False}
            | more
        )

    for step in range(1, len(live)):
        later = live[step + 1] if step + 1 < len(live) else {}
        worst = min(later.values(), default=None)
        for prefix, score in sorted(live[step].items(), key=lambda pair: -pair[1]):
            goes_on = any(other[:step] == prefix for other in later) or prefix == answer[:step]
            if goes_on or worst is None:
                add(prefix, score, "on" if goes_on else "open")
            else:
                likely = max(best[step][prefix])
                ended = score + likely > worst and best[step][prefix].index(likely) == answer[-1]
                add(prefix, score, "ended" if ended else "left", best=score + likely, worst=worst)
    if answer and answer not in numbers and len(answer) - 1 < len(best) and answer[:-1] in best[len(answer) - 1]:
        before = live[len(answer) - 1].get(answer[:-1], 0.0)
        add(answer, before + best[len(answer) - 1][answer[:-1]][answer[-1]], "on")
    for length in range(1, len(answer) + 1):
        if answer[:length] in numbers:
            nodes[numbers[answer[:length]]]["chosen"] = True
    return nodes


def surprise(logits_TV: torch.Tensor, said: Sequence[int]) -> list[float]:
    """The log-probability of each word that was said.

    >>> surprise(torch.zeros(1, 2), [1])
    [-0.6931471824645996]
    """
    logs_TV = logits_TV.float().log_softmax(-1)
    return [float(logs_TV[step, word]) for step, word in enumerate(said)]
