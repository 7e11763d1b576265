"""Decoding path: the records of the decoding steps that led to an answer, and the tokens along their axes.

Decoding gives one record per step with one row per hypothesis. The record's context says which: `sources` (N,), the
source of each row, and `target` (N, step), the tokens that each hypothesis had generated. The path of an answer are the
rows that had generated its prefixes: nothing is computed again, every number is of the recorded pass. The answer is
one more record, named "answer": axes (batch, position), the generated ids, best first for each source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.errors import ConfigError, ModelError
from regard.sequence import PAD
from regard.trace import Record

ANSWER = "answer"
"""Name of the record of the generated ids."""
DECODED_LABELS = "decoded_labels"
"""Name of the record of the labels that the Viterbi algorithm found."""
SEQUENCES = ("source", "target", "read", "word")
"""sequences of a condensed recording: the source, the answer, the decoder's input, and words that are read as pieces"""
IdToToken = Mapping[str, Callable[[int], str]]
"""Per side ("source", "target"): id -> token."""


@dataclass(frozen=True, eq=False)
class TracedPass:
    """The records of one name from one forward pass, or from all steps of one decoding."""

    records: tuple[Record, ...]
    answer: Record | None

    @property
    def sources(self) -> list[int]:
        """Numbers of the sources of the batch, in order."""
        return list(dict.fromkeys(row_sources(self.records[0])))

    @property
    def is_decoding(self) -> bool:
        """Whether it was generated step by step."""
        return "step" in self.records[0].context

    def answer_ids(self, source: int) -> list[int]:
        """Ids of the answer for a source; without an answer record, those of the best hypothesis at the end."""
        if self.answer is not None:
            row = self.answer_row(self.answer, source)
            labels = self.answer.labels.get("position")
            ids = to_list(self.answer.data[row])
            return strip_padding(ids) if labels is None else ids[: len(labels[row])]
        last = next((r for r in reversed(self.records) if source in row_sources(r)), self.records[0])
        return _target(last, row_sources(last).index(source)) if last.context["step"] else []

    def answer_row(self, answer: Record, source: int) -> int:
        """Row of the best answer for a source."""
        return (row_sources(answer) if "sources" in answer.context else self.sources).index(source)

    def answer_tokens(self, source: int, hypothesis: Sequence[int] | None, id_to_token: IdToToken) -> list[str] | None:
        """Tokens of the answer for a source, or of another hypothesis; None: nothing was decoded."""
        if not self.is_decoding:
            return None
        if self.answer is not None and hypothesis is None:
            tokens = axis_tokens(self.answer, "position", self.answer_row(self.answer, source), id_to_token)
            if tokens is not None:
                return tokens
        return to_tokens(self.answer_ids(source) if hypothesis is None else hypothesis, "target", id_to_token)

    def path(self, source: int, hypothesis: Sequence[int] | None = None) -> list[tuple[Record, int]]:
        """The records that led to the answer for a source, or to another hypothesis, each with its row."""
        if not self.is_decoding:
            return [(record, row_sources(record).index(source)) for record in self.records]
        complete = hypothesis is not None or self.answer is not None
        ids = self.answer_ids(source) if hypothesis is None else list(hypothesis)
        steps = len(ids) if complete else len(ids) + 1  # the token of the last step is not known
        found = [(r, _row(r, source, ids)) for r in self.records if r.context["step"] < max(steps, 1)]
        return [(r, row) for r, row in found if not _after_prompt(r, row)]


def passes(name: str, records: Sequence[Record]) -> list[TracedPass]:
    """The records of a name, split where a new pass starts, each with the answer that followed it.

    >>> one = Record("w", ("batch", "query", "key"), torch.ones(2, 1, 1), {}, {"step": 0})
    >>> two = Record("w", ("batch", "query", "key"), torch.ones(2, 1, 2), {}, {"step": 1})
    >>> [len(traced.records) for traced in passes("w", [one, two, one])]
    [2, 1]
    """
    groups: list[list[Record]] = []
    answers: list[Record | None] = []
    before: tuple[int, int] | None = None
    for record in records:
        if record.name == ANSWER and answers and answers[-1] is None:
            answers[-1] = record
        if record.name != name:
            continue
        moment = (int(record.context.get("step", 0)), int(record.context.get("position", 0)))
        timeless = not {"step", "position"} & record.context.keys()
        if before is None or timeless or moment <= before:
            groups.append([])
            answers.append(None)
        groups[-1].append(record)
        before = moment
    return [TracedPass(tuple(group), answer) for group, answer in zip(groups, answers)]


def row_sources(record: Record) -> list[int]:
    """Number of the source of each row of a record."""
    numbers = record.context.get("sources")
    return list(range(record.data.shape[0])) if numbers is None else to_list(numbers)


def to_list(values: Any) -> list[Any]:
    """A tensor or a sequence as a list."""
    return values.tolist() if isinstance(values, Tensor) else list(values)


def _target(record: Record, row: int) -> list[int]:
    return to_list(record.context["target"][row])


def _row(record: Record, source: int, ids: list[int]) -> int:
    step = record.context["step"]
    rows = [row for row, owner in enumerate(row_sources(record)) if owner == source]
    if step and "target" in record.context:
        rows = [row for row in rows if _target(record, row) == ids[:step]]
    elif len(rows) > 1:
        raise ModelError(
            f"{record.name}: step {step} has {len(rows)} hypotheses of source {source}, and its context has no target "
            f"to tell which led to the answer"
        )
    if not rows:
        raise ModelError(
            f"{record.name}: no hypothesis of step {step} is a prefix of the answer for source {source}; was the "
            f"answer decoded in another pass?"
        )
    return rows[0]


def stack_weights(path: Sequence[tuple[Record, int]]) -> np.ndarray:
    """(head, query, key): the weights of all steps; later keys are padded with 0."""
    parts = [_heads(record, row) for record, row in path]
    longest = max(part.shape[2] for part in parts)
    return np.concatenate([np.pad(p, ((0, 0), (0, 0), (0, longest - p.shape[2]))) for p in parts], 1)


def find_sentence(name: str, records: Sequence[Record], row: int) -> tuple[TracedPass, int]:
    """Pass and source number of one sentence: sentences are counted through all passes of a recording."""
    sentences = [(traced, source) for traced in passes(name, records) for source in traced.sources]
    if len({source for _, source in sentences}) == len(sentences):  # by number, if each has its own
        sentences.sort(key=lambda pair: pair[1])
    if not 0 <= row < len(sentences):
        raise ConfigError(f"row: {len(sentences)} sentences were recorded, 0 to {len(sentences) - 1}, got {row}")
    return sentences[row]


def _heads(record: Record, row: int) -> np.ndarray:
    tensor = record.data.detach()[row].cpu()
    tensor = tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor
    axes = [axis for axis in record.axes if axis != "batch"]
    for place, axis in enumerate(("head", "query", "key")):
        if axis not in axes:
            axes.insert(place, axis)
            tensor = tensor.unsqueeze(place)
    tensor = tensor.permute(*(axes.index(axis) for axis in ("head", "query", "key")))
    length = prompt_length(record, row) if axis_side(record, "query") == "target" else None
    return (tensor if length is None else tensor[:, :length]).numpy()


def prompt_length(record: Record, row: int) -> int | None:
    """Number of tokens of the prompt that a record is about; None: it is about no prompt."""
    prompt = record.context.get("target")
    if record.context.get("step") != 0 or prompt is None or input_side(record) != "target":
        return None
    return len(strip_padding(to_list(prompt[row])))


def _after_prompt(record: Record, row: int) -> bool:
    """Whether a record of one position is about the padding after a shorter prompt."""
    length = prompt_length(record, row)
    return length is not None and "position" in record.context and record.context["position"] >= length


def input_side(record: Record) -> str:
    """Side whose tokens are read where a record is made: from its axes, its context (`reads`) or its name."""
    side = axis_side(record, "position") or axis_side(record, "query") or record.context.get("reads")
    return side or ("source" if record.name.split(".")[0] == "encoder" else "target")


def strip_padding(ids: list[Any]) -> list[Any]:
    """Ids without the padding at the end."""
    while ids and ids[-1] == PAD:
        ids = ids[:-1]
    return ids


def axis_side(record: Record, axis: str) -> str | None:
    """Side whose tokens label an axis: "source", "target" or another fact of the context; None: not known."""
    label = record.labels.get(axis)
    return next((name for name, fact in record.context.items() if fact is label and label is not None), None)


def layer_number(name: str) -> int | None:
    """Number of the layer in a name."""
    found = re.search(r"(?:^|\.)(\d+)\.", name)
    return int(found[1]) if found else None


def name_in_layer(names: Mapping[int | None, str], layer: int | None, what: str) -> str:
    """The name that belongs to a layer; an unknown layer is an error."""
    if layer in names:
        return names[layer]
    numbers = ", ".join(str(number) for number in names if number is not None)
    if not numbers:
        raise ConfigError(f"layer: no layer of {what} has a number, got {layer}; leave the layer out")
    raise ConfigError(f"layer: the layers of {what} are {numbers}, got {layer}")


def is_cross_attention(record: Record) -> bool:
    """Whether queries and keys of a record belong to different sequences."""
    sides = axis_side(record, "query"), axis_side(record, "key")
    return "cross" in record.name.split(".") or (None not in sides and sides[0] != sides[1])


def axis_tokens(record: Record, axis: str, row: int, id_to_token: IdToToken) -> list[str] | None:
    """Tokens along an axis in one row of a record; None: not known."""
    return _label_tokens(record, record.labels.get(axis), axis, axis_side(record, axis), row, id_to_token)


def input_tokens(record: Record, row: int, id_to_token: IdToToken) -> list[str] | None:
    """Tokens that are read where a record is made, in the order of positions; None: not known."""
    side = input_side(record)
    return _label_tokens(record, record.context.get(side), "position", side, row, id_to_token)


def _label_tokens(
    record: Record, label: Any, axis: str, side: str | None, row: int, id_to_token: IdToToken
) -> list[str] | None:
    if label is None or not len(label):
        return None
    if isinstance(label[0], str):
        return list(label)
    if row >= len(label):
        raise ModelError(f"{record.name}: row {row} of the axis {axis!r} has no tokens; {len(label)} rows have some")
    if isinstance(label, Tensor):
        return to_tokens(strip_padding(label[row].tolist()), side, id_to_token)
    return row_tokens(label[row], side, id_to_token)


def row_tokens(row: Any, side: str | None, id_to_token: IdToToken) -> list[str]:
    """Tokens of a row of ids or tokens."""
    return [item if isinstance(item, str) else to_tokens([item], side, id_to_token)[0] for item in to_list(row)]


def to_tokens(ids: Sequence[int], side: str | None, id_to_token: IdToToken) -> list[str]:
    """Tokens of ids; the ids themselves if the side has no vocabulary."""
    token = id_to_token.get(side or "", str)
    return [token(i) for i in ids]
