"""Beam tree: the hypotheses of each step of a beam search with their scores, from recorded logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.look.decoding_path import IdToToken, passes, row_sources, to_list, to_tokens
from regard.look.tokens import token_label
from regard.look.windows import GenerationWindow
from regard.trace import Record

Prefix = tuple[int, ...]


def beam_tree(
    records: Sequence[Record], id_to_token: IdToToken, window: GenerationWindow | None = None
) -> list[dict[str, Any]]:
    """One node per hypothesis and step: token, log-probability so far, parent, and whether it is part of the answer.

    A pruned node also has the score of its best extension, and that of the worst hypothesis that was kept.
    """
    decodings = [one for one in passes("logits", records) if one.is_decoding]
    if not decodings:
        return []
    traced = decodings[window.number if window else 0]
    source = traced.sources[0]
    answer = window.ids if window else tuple(traced.answer_ids(source))
    live: list[dict[Prefix, float]] = [{(): 0.0}]  # per step: score of each prefix
    best: list[dict[Prefix, list[float]]] = []  # per step: log-probability of each extension
    for record in traced.records:
        logs = record.data.float().log_softmax(-1)
        owners = reversed(list(enumerate(row_sources(record))))
        rows = {_prefix(record, row): row for row, owner in owners if owner == source}
        before = live[-1] if record.context["step"] else {(): 0.0}
        if record.context["step"]:
            before = {p: live[-1][p[:-1]] + best[-1][p[:-1]][p[-1]] for p in rows if p[:-1] in best[-1]}
            live.append(before)
        best.append({prefix: logs[row].double().tolist() for prefix, row in rows.items() if prefix in before})
    return _nodes(live, best, answer, id_to_token)


def _prefix(record: Record, row: int) -> Prefix:
    return tuple(to_list(record.context["target"][row])) if record.context["step"] else ()


def _nodes(
    live: Sequence[dict[Prefix, float]], best: Sequence[dict[Prefix, list[float]]], answer: Prefix, names: IdToToken
) -> list[dict[str, Any]]:
    numbers: dict[Prefix, int] = {}
    nodes: list[dict[str, Any]] = []

    def add(prefix: Prefix, score: float, state: str, **more: Any) -> None:
        numbers[prefix] = len(nodes)
        token = to_tokens(prefix[-1:], "target", names)[0]
        label, parent = token_label(token), numbers.get(prefix[:-1])
        node = {"step": len(prefix), "token": token, "label": label, "score": score, "parent": parent, "state": state}
        nodes.append(node | {"chosen": False} | more)

    for step in range(1, len(live)):
        later = live[step + 1] if step + 1 < len(live) else {}
        worst = min(later.values(), default=None)
        for prefix, score in sorted(live[step].items(), key=lambda pair: -pair[1]):
            survives = any(other[:step] == prefix for other in later) or prefix == answer[:step]
            if survives or worst is None:
                add(prefix, score, "on" if survives else "open")
            else:
                likely = max(best[step][prefix])
                ended = score + likely > worst and best[step][prefix].index(likely) == answer[-1]
                add(prefix, score, "ended" if ended else "pruned", best=score + likely, worst=worst)
    if answer and answer not in numbers and len(answer) - 1 < len(best) and answer[:-1] in best[len(answer) - 1]:
        before = live[len(answer) - 1].get(answer[:-1], 0.0)
        add(answer, before + best[len(answer) - 1][answer[:-1]][answer[-1]], "on")
    for length in range(1, len(answer) + 1):
        if answer[:length] in numbers:
            nodes[numbers[answer[:length]]]["chosen"] = True
    return nodes
