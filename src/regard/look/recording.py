"""What was seen in a pass, to be looked at, kept and opened again; it shows itself in a notebook."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import ConfigError, ModelError
from regard.look import condense, decoding_path, html, states, trace_file, trace_header
from regard.look.attention import AttentionGrid, AttentionView
from regard.look.states import StatesView
from regard.look.terminal import Colour
from regard.look.tokens import visible
from regard.trace import Record, Trace


@dataclass(frozen=True)
class Seen:
    """One line of a recording's table of contents.

    >>> Seen("cross.weights", ("batch", "key"), (1, 5), 3).shape
    (1, 5)
    """

    name: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    """of the first record with this name"""
    times: int
    """how many records have this name: decoding gives one a step"""


@dataclass(frozen=True, eq=False)
class Recording:
    """The records of a trace, also while they are still being made.

    >>> import torch
    >>> from regard.trace import record, scene, tap
    >>> layer = torch.nn.Identity()
    >>> with record(torch.nn.ModuleDict({"cross": layer})) as trace, scene(source=[["je", "suis"]], target=[["i"]]):
    ...     _ = tap(layer, "weights", torch.tensor([[[[0.25, 0.75]]]]), "batch head query:target key:source")
    >>> print(Recording(trace).attention().text(width=60, colour="none").splitlines()[3])
    i  ░░0.25 ██0.75
    """

    trace: Trace
    spell: Mapping[str, Callable[[int], str]] = field(default_factory=dict)
    """of a side ("source", "target"): id -> token, for axes whose words are given as ids"""

    @property
    def records(self) -> list[Record]:
        return self.trace.records

    def find(self, pattern: str) -> list[Record]:
        """Records whose name fits a pattern such as "decoder.*.weights"."""
        return self.trace.find(pattern)

    def names(self) -> list[Seen]:
        """What there is to find, in the order in which it was first seen."""
        grouped: dict[str, list[Record]] = {}
        for record in self.records:
            grouped.setdefault(record.name, []).append(record)
        return [Seen(name, r[0].axes, tuple(r[0].data.shape), len(r)) for name, r in grouped.items()]

    def attention(
        self,
        name: str | None = None,
        layer: int | None = None,
        head: int | None = None,
        row: int = 0,
        said: Sequence[int] | None = None,
    ) -> AttentionView:
        """Who looked at whom: the last layer's cross attention if there is one, else its self-attention.

        `name`: a pattern such as "encoder.*"; `layer`: which of the layers that fit, -1 the last; `head`: one head,
        not the mean of all; `row`: which sentence. The steps of decoding that led to the answer are joined, or those
        that led to the ids `said`, such as the second best answer.
        """
        chosen = self._choose(name, layer)
        found, source = decoding_path.sentence(chosen, self.records, row)
        path = found.path(source, said)
        weights = decoding_path.joined(path)
        heads = len(weights)
        if head is not None and not 0 <= head < heads:
            there = f"the heads 0 to {heads - 1}" if heads > 1 else "one head, 0"
            raise ConfigError(f"head: {chosen} has {there}, got {head}")
        shown = weights.mean(0, dtype=np.float64) if head is None and heads > 1 else weights[head or 0]
        rows, columns = self._labels(path, decoding_path.told(found, source, said, self.spell), shown)
        record = path[0][0]
        other = decoding_path.reader(record)
        sides = (other, decoding_path.side(record, "key") or ("source" if decoding_path.crosses(record) else other))
        return AttentionView(
            chosen, shown[: len(rows), : len(columns)], rows, columns, heads, head, decoding_path.layer(chosen), sides
        )

    def heads(self, name: str | None = None, layer: int | None = None, row: int = 0) -> AttentionGrid:
        """All heads of one layer side by side; the choices are those of attention()."""
        first = self.attention(name, layer, 0, row)
        others = [self.attention(first.name, None, head, row) for head in range(1, first.heads)]
        return AttentionGrid((first, *others))

    def states(
        self,
        name: str | None = None,
        layer: int | None = None,
        units: Sequence[int] | None = None,
        row: int = 0,
        said: Sequence[int] | None = None,
    ) -> StatesView:
        """What a layer held after each token: hidden state, cell, a gate, or the residual stream of a Transformer.

        `name`: a pattern such as "decoder.*", a kind such as "cell", or a gate such as "forget"; unless given, the
        hidden state over the source if there is one, else over the target; "context" is what attention of one head
        found, or the source in one vector, and "start" what a layer of a decoder begins from. `layer`: which of those
        that fit, the last unless given; `units`: which units, those that move most unless given; `row` and `said` as
        for attention().
        """
        return states.view(self.records, self.spell, (name, layer), units, (row, said))

    def condensed(self) -> Recording:
        """What led to the answer for the first sentence, and nothing else: one record a name."""
        return Recording(Trace(records=condense.condensed(self.records, self.spell)), self.spell)

    def header(self, whole: Recording | None = None) -> dict[str, Any]:
        """Of a condensed recording all that is small, as JSON; `whole` has the hypotheses that were left behind too."""
        return trace_header.header(self.records, (whole or self).records, self.spell)

    def html(self, told: Mapping[str, Any] | None = None, opened: str = "", room: int = html.ROOM) -> str:
        """The studio's page of the first sentence as one HTML text that needs no server.

        `told` has what else is known: text, answer, model as {"name": ...}; `opened` is what is shown first, such as
        "tab=states"; `room`: bytes of numbers that it may hold.
        """
        short = self.condensed()
        facts = short.header(self)
        said = {side: "".join(word["token"] for word in row).strip() for side, row in facts["sequences"].items()}
        given = {"text": said.get("source", said.get("read", "")), "answer": said.get("target", said.get("read", ""))}
        return html.page({"id": "alone", "fork": None, **given, **(told or {}), **facts}, short.records, opened, room)

    def text(self, width: int | None = None, colour: Colour | None = None) -> str:
        """In characters: the last attention, or states where nobody looks, or what there is."""
        if any(map(_is_attention, self.records)):
            return self.attention().text(width, colour)
        return self.states().text(width, colour) if any(map(states.is_state, self.records)) else repr(self)

    def save(self, path: Path | str) -> None:
        """Write everything into one .safetensors file that needs no model to be read."""
        trace_file.write(Path(path), self.records, self.spell)

    @classmethod
    def load(cls, path: Path | str) -> Recording:
        """Open what save() wrote."""
        records, tokens = trace_file.read(Path(path))
        # bound now: each side has a table of its own
        spell = {side: (lambda i, table=table: table.get(i, str(i))) for side, table in tokens.items()}
        return cls(Trace(records=records), spell)

    def _choose(self, pattern: str | None, layer: int | None) -> str:
        kinds = {r.name: decoding_path.crosses(r) for r in self.records if _is_attention(r)}
        if not self.records:
            raise ModelError("nothing was recorded; did the model read something inside the block?")
        if not kinds:
            raise ModelError(
                f"no attention was recorded, only {len(self.names())} other names; a model that has none, such as one "
                "of recurrent layers, shows its states: states(), or --view states"
            )
        if pattern is None:
            crossing = [name for name, crosses in kinds.items() if crosses]
            fitting = crossing or list(kinds)
        else:
            fitting = [n for n in kinds if any(fnmatch.fnmatchcase(n, p) for p in (pattern, f"{pattern}.weights"))]
        if not fitting:
            raise ConfigError(f"name: no attention is called {pattern!r}; there are {', '.join(kinds)}")
        if layer is None or layer == -1:
            return fitting[-1]
        return decoding_path.numbered({decoding_path.layer(name): name for name in fitting}, layer, "that attention")

    def _labels(
        self, path: list[tuple[Record, int]], said: list[str] | None, weights: np.ndarray
    ) -> tuple[list[str], list[str]]:
        record, at = path[0]
        rows, columns = (decoding_path.words(record, axis, at, self.spell) for axis in ("query", "key"))
        alone = "query" not in record.axes  # one record a position: whose query it is says the scene
        rows = decoding_path.read_words(record, at, self.spell) if alone else rows
        # the prompt, then what was said
        if (
            said is not None
            and (decoding_path.reader(record) if alone else decoding_path.side(record, "query")) == "target"
        ):
            read = (rows or []) + said
            rows = read[1:] if rows else read
            if not decoding_path.crosses(record):
                rows = columns = read[: len(weights)]
            rows = rows + ["…"] * (len(weights) - len(rows))
        looking = weights if not rows else weights[: len(rows)]  # what follows the last word is padding that looks
        return _fitted(rows, looking, record.name), _fitted(columns, looking.T, record.name)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{title}</th>" for title in ("name", "axes", "shape", "times"))
        lines = "".join(
            f"<tr><td>{escape(visible(s.name))}</td><td>{escape(visible(' '.join(s.axes)))}</td>"
            f"<td>{' x '.join(map(str, s.shape))}</td><td>{s.times}</td></tr>"
            for s in self.names()
        )
        drawn = ""
        if any(map(_is_attention, self.records)):
            drawn = self.attention().svg()
        elif any(map(states.is_state, self.records)):
            drawn = self.states().svg()
        # where frames are not shown, such as on a page that prints notebooks, the picture still is
        return (
            f"<div>{self._frame()}<details><summary>{escape(repr(self))}</summary>{drawn}<table><thead><tr>{head}</tr>"
            f"</thead><tbody>{lines}</tbody></table></details></div>"
        )

    def _frame(self) -> str:
        """The page in a frame; nothing of records that nobody could join."""
        try:
            return html.framed(self.html(room=html.SMALL))
        except (ModelError, ConfigError, ValueError, LookupError):
            return ""

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Recording({len(self.records)} records, {len(self.names())} names)"


def _is_attention(record: Record) -> bool:
    return record.name.rpartition(".")[2] == "weights" and "key" in record.axes and "batch" in record.axes


def _fitted(labels: list[str] | None, weights: np.ndarray, name: str) -> list[str]:
    """As many labels as places. Places past the last word are padding, unless somebody looked there."""
    labels = [] if labels is None else labels
    if len(labels) > len(weights):
        raise ModelError(f"{name}: {len(labels)} words for {len(weights)} places; were the words of this pass given?")
    if labels and not weights[len(labels) :].any():
        return labels
    return labels + [str(i + 1) for i in range(len(labels), len(weights))]
