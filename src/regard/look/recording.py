"""Recording: the records of a forward pass or a decoding, to be viewed, saved and loaded; it displays in a notebook."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from regard.errors import ConfigError, ModelError
from regard.look import (
    candidates,
    caption_attention,
    condense,
    decoding_path,
    derived_records,
    head_roles,
    html,
    image_views,
    lens,
    lens_view,
    rollout,
    states,
    text_rollout,
    trace_file,
    trace_header,
)
from regard.look.attention import AttentionGrid, AttentionView
from regard.look.candidates import CandidatesView
from regard.look.head_roles import HeadRolesView
from regard.look.image_overlay import ImageOverlay, find_image
from regard.look.image_views import BatchNormView, FiltersView, MapsView, PatchesView, PositionSimilarityView
from regard.look.layer_mix import LayerMixView, layer_mix_view
from regard.look.lens import LensHead
from regard.look.lens_view import LensView
from regard.look.states import StatesView
from regard.look.terminal import ColorDepth
from regard.look.text_rollout import TextRollout
from regard.look.tokens import make_visible
from regard.look.view import MatrixView
from regard.look.windows import GenerationWindow, generation_windows
from regard.trace import Record, Trace


@dataclass(frozen=True)
class RecordInfo:
    """One line of a recording's table of contents."""

    name: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    """of the first record with this name"""
    count: int
    """number of records with this name: decoding gives one per step"""


@dataclass(frozen=True, eq=False)
class Recording:
    """The records of a trace with the tokens of their ids, also while it is still recording.

    >>> import torch
    >>> from regard.trace import record, trace_context, tap
    >>> layer = torch.nn.Identity()
    >>> model, tokens = torch.nn.ModuleDict({"cross": layer}), {"source": [["je", "suis"]], "target": [["i"]]}
    >>> with record(model) as trace, trace_context(**tokens):
    ...     _ = tap(layer, "weights", torch.tensor([[[[0.25, 0.75]]]]), "batch head query:target key:source")
    >>> print(Recording(trace).attention().text(width=60, color="none").splitlines()[3])
    i  ░░0.25 ██0.75
    """

    trace: Trace
    id_to_token: Mapping[str, Callable[[int], str]] = field(default_factory=dict)
    """per side ("source", "target"): id -> token, for axes whose labels are ids"""
    lens_head: LensHead | None = None
    """the model's end, for the logit lens"""

    @property
    def records(self) -> list[Record]:
        return self.trace.records

    def find(self, pattern: str) -> list[Record]:
        """Records whose name matches a pattern such as "decoder.*.weights"."""
        return self.trace.find(pattern)

    def contents(self) -> list[RecordInfo]:
        """The names that were recorded, in order, with axes, shape and number of records."""
        grouped: dict[str, list[Record]] = {}
        for record in self.records:
            grouped.setdefault(record.name, []).append(record)
        return [RecordInfo(name, r[0].axes, tuple(r[0].data.shape), len(r)) for name, r in grouped.items()]

    def attention(
        self,
        name: str | None = None,
        layer: int | None = None,
        head: int | None = None,
        row: int = 0,
        hypothesis: Sequence[int] | None = None,
    ) -> AttentionView:
        """Attention view: by default the last layer's cross attention if there is one, else its self-attention.

        `name`: a pattern such as "encoder.*"; `layer`: one of the layers that match, -1 the last; `head`: one head
        instead of the mean; `row`: the sentence. The decoding steps that led to the answer are joined, or those that
        led to the ids `hypothesis`, such as the second best answer.
        """
        chosen = self._choose_attention(name, layer)
        traced, source = decoding_path.find_sentence(chosen, self.records, row)
        path = traced.path(source, hypothesis)
        weights = decoding_path.stack_weights(path)
        heads = len(weights)
        if head is not None and not 0 <= head < heads:
            known = f"the heads 0 to {heads - 1}" if heads > 1 else "one head, 0"
            raise ConfigError(f"head: {chosen} has {known}, got {head}")
        selected = weights.mean(0, dtype=np.float64) if head is None and heads > 1 else weights[head or 0]
        rows, columns = self._labels(path, traced.answer_tokens(source, hypothesis, self.id_to_token), selected)
        record = path[0][0]
        side = decoding_path.input_side(record)
        key_side = "source" if decoding_path.is_cross_attention(record) else side
        sides = (side, decoding_path.axis_side(record, "key") or key_side)
        selected = selected[: len(rows), : len(columns)]
        return AttentionView(chosen, selected, rows, columns, heads, head, decoding_path.layer_number(chosen), sides)

    def caption_attention(
        self,
        name: str | None = None,
        layer: int | None = None,
        head: int | None = None,
        row: int = 0,
        hypothesis: Sequence[int] | None = None,
    ) -> ImageOverlay:
        """Where on the image each word of a caption looked: cross attention over copies of the image, one per word.

        Arguments as for attention().
        """
        return caption_attention.over_image(self.attention(name, layer, head, row, hypothesis), self.records, row)

    def attention_view(
        self, name: str | None = None, layer: int | None = None, head: int | None = None
    ) -> AttentionView | ImageOverlay:
        """caption_attention() where words look at an image, else attention()."""
        view = self.attention(name, layer, head)
        return (
            caption_attention.over_image(view, self.records)
            if caption_attention.is_over_image(view, self.records)
            else view
        )

    def heads(self, name: str | None = None, layer: int | None = None, row: int = 0) -> AttentionGrid:
        """All heads of one layer side by side; arguments as for attention()."""
        first = self.attention(name, layer, 0, row)
        others = [self.attention(first.name, None, head, row) for head in range(1, first.heads)]
        return AttentionGrid((first, *others))

    def head_roles(self) -> HeadRolesView:
        """Head roles of the first sentence: how much of each head's weight goes to the previous token, and so on."""
        return head_roles.head_roles_view(condense.condense(self.records, self.id_to_token))

    def states(
        self,
        name: str | None = None,
        layer: int | None = None,
        units: Sequence[int] | None = None,
        row: int = 0,
        hypothesis: Sequence[int] | None = None,
    ) -> StatesView:
        """States view: hidden state, cell, a gate, or the residual stream of a Transformer after each token.

        `name`: a pattern such as "decoder.*", a kind such as "cell", or a gate such as "forget"; by default the hidden
        state over the source if there is one, else over the target; "context" is the context vector of attention with
        one head, or the source in one vector, and "start" the initial state of a decoder layer. `layer`: one of those
        that match, by default the last; `units`: by default those that vary most; `row`, `hypothesis`: see attention().
        """
        return states.states_view(self.records, self.id_to_token, (name, layer), units, (row, hypothesis))

    def lens(self, layer: int | None = None) -> LensView:
        """Logit lens of the first sentence: the most probable tokens or labels after each layer, or after one.

        The output of the layer goes through the model's own end, as if it were the last one (nostalgebraist 2020).
        """
        short = self.condense()
        if self.lens_head is not None and not short.find(lens.IDS):
            lens.lens_records(short.records, self.lens_head)  # it raises the reason
        return lens_view.lens_view(short.records, self.id_to_token, layer)

    def candidates(self) -> CandidatesView:
        """The most probable tokens at each position of the first sentence, and the rank of the actual ones."""
        return candidates.candidates_view(condense.condense(self.records, self.id_to_token), self.id_to_token)

    def layer_mix(self, row: int = 0) -> LayerMixView:
        """Weights of an ELMo's layers in their mix, and what each contributes to each word."""
        return layer_mix_view(self.records, row)

    @property
    def has_patches(self) -> bool:
        """Whether a Vision Transformer read an image, and nothing attends to it but itself."""
        patches = any(record.name.rpartition(".")[2] == "patches" for record in self.records)
        return patches and not any(decoding_path.is_cross_attention(r) for r in self.records if _is_attention(r))

    @property
    def has_maps(self) -> bool:
        """Whether feature maps were recorded, and no attention."""
        maps = any(map(image_views.is_map, self.records))
        return maps and not any(map(_is_attention, self.records))

    def filters(self) -> FiltersView:
        """Filters of the first layer of a model that reads images: its weights."""
        return image_views.filters_view(self.records)

    def maps(
        self, name: str | None = None, layer: int | None = None, channels: Sequence[int] | None = None, row: int = 0
    ) -> MapsView:
        """Feature maps of one layer for an image.

        `name`: a pattern such as "encoder.stages.1.*", or a kind such as "convolution", "norm" or "residual", by
        default "feature_map"; `layer`: number among those that match, by default 0; `channels`: by default those that
        vary most.
        """
        return image_views.maps_view(self.records, name, layer, channels, row)

    def batch_norm(
        self, name: str | None = None, layer: int | None = None, channels: Sequence[int] | None = None
    ) -> BatchNormView:
        """Statistics of one batch normalization: running, and of the recorded batch; arguments as for maps().

        By default those channels are drawn whose batch mean differs most from the running mean.
        """
        return image_views.batch_norm_view(self.records, name, layer, channels)

    def patches(self, row: int = 0) -> PatchesView:
        """The patches of an image that a Vision Transformer read."""
        return image_views.patches_view(self.records, row)

    def position_similarity(self) -> PositionSimilarityView:
        """Cosine similarity of a Vision Transformer's position embeddings."""
        return image_views.position_similarity_view(self.records)

    def rollout(self, layer: int | None = None, row: int = 0) -> ImageOverlay:
        """Attention rollout (Abnar and Zuidema 2020) over the image, through all layers or those up to `layer`."""
        return rollout.rollout_view(self.records, layer, row)

    def text_rollout(self, layer: int | None = None, name: str | None = None) -> TextRollout:
        """Attention rollout over a text, through all layers or those up to `layer`; `name`: "encoder" or "decoder"."""
        return text_rollout.text_rollout(condense.condense(self.records, self.id_to_token), layer, name)

    def image_attention(self, layer: int | None = None, head: int | None = None, row: int = 0) -> ImageOverlay:
        """Attention of the classifier's token over the image: the mean of a layer's heads and each head, or one."""
        return rollout.attention_overlay(self.records, layer, head, row)

    def windows(self) -> list[GenerationWindow]:
        """Windows in which a text was generated that is longer than the model's context; empty if there is one."""
        return generation_windows(self.records)

    def condense(self, window: int = 0) -> Recording:
        """The path of the first sentence's answer only, with one record per name, and what is computed from them.

        That is the logit lens, attention rollout over a text; of an image its pixels, rollout, similarity of positions.
        `window`: of a text that was generated in several windows, the number of one.
        """
        records = condense.condense(self.records, self.id_to_token, window)
        records = derived_records.with_derived(records, self.lens_head)
        return Recording(Trace(records=records), self.id_to_token, self.lens_head)

    def header(self, whole: Recording | None = None, window: int = 0) -> dict[str, Any]:
        """Everything small of a condensed recording as JSON; `whole` also has pruned hypotheses and other windows."""
        return trace_header.trace_header(self.records, (whole or self).records, self.id_to_token, window)

    def html(
        self, metadata: Mapping[str, Any] | None = None, start_view: str = "", max_bytes: int = html.MAX_BYTES
    ) -> str:
        """The page of the first sentence as one HTML text that needs no server.

        `metadata`: text, answer, model as {"name": ...}; `start_view`: the first view, such as "tab=states";
        `max_bytes`: limit of the tensors.
        """
        short = self.condense()
        header = short.header(self)
        texts = {side: "".join(word["token"] for word in row).strip() for side, row in header["sequences"].items()}
        read = texts.get("read", "")
        defaults = {"text": texts.get("source", read), "answer": texts.get("target", read)}
        header = {"id": "alone", "fork": None, **defaults, **(metadata or {}), **header}
        return html.page(header, short.records, start_view, max_bytes)

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """In characters: the last attention, or states or feature maps if there is none, or a summary."""
        view = self._main_view()
        return repr(self) if view is None else view.text(width, color)

    def _main_view(self) -> MatrixView | ImageOverlay | MapsView | None:
        """The view that stands for all."""
        if self.has_patches or self.has_maps:
            return self.image_attention() if self.has_patches else self.maps()
        if any(map(_is_attention, self.records)):
            return self.attention_view()
        return self.states() if any(map(states.is_state, self.records)) else None

    def save(self, path: Path | str) -> None:
        """Write everything to one .safetensors file that is readable without the model."""
        records = self.records
        if self.lens_head is not None and not any(record.name == lens.IDS for record in records):
            records = [*records, *(r for r in self.condense().records if r.name in (lens.IDS, lens.PROBABILITIES))]
        trace_file.write(Path(path), records, self.id_to_token)

    @classmethod
    def load(cls, path: Path | str) -> Recording:
        """Read a file written by save()."""
        records, tokens = trace_file.read(Path(path))
        # bound now: each side has its own table
        id_to_token = {side: (lambda i, table=table: table.get(i, str(i))) for side, table in tokens.items()}
        return cls(Trace(records=records), id_to_token)

    def _choose_attention(self, pattern: str | None, layer: int | None) -> str:
        kinds = {r.name: decoding_path.is_cross_attention(r) for r in self.records if _is_attention(r)}
        if not self.records:
            raise ModelError("nothing was recorded; did the model run inside the block?")
        if not kinds:
            other = "recurrent one, has states: states(), or --view states"
            if find_image(self.records) is not None:
                other = "convolutional one, has feature maps: maps(), or --view maps"
            raise ModelError(
                f"no attention was recorded, only {len(self.contents())} other names; a model without attention, such "
                f"as a {other}"
            )
        if pattern is None:
            matches = [name for name, is_cross in kinds.items() if is_cross] or list(kinds)
        else:
            matches = [n for n in kinds if any(fnmatch.fnmatchcase(n, p) for p in (pattern, f"{pattern}.weights"))]
        if not matches:
            raise ConfigError(f"name: no attention is called {pattern!r}; there are {', '.join(kinds)}")
        if layer is None or layer == -1:
            return matches[-1]
        layers: dict[int | None, str] = {decoding_path.layer_number(name): name for name in matches}
        return decoding_path.name_in_layer(layers, layer, "that attention")

    def _labels(
        self, path: list[tuple[Record, int]], answer: list[str] | None, weights: np.ndarray
    ) -> tuple[list[str], list[str]]:
        record, at = path[0]
        rows, columns = (decoding_path.axis_tokens(record, axis, at, self.id_to_token) for axis in ("query", "key"))
        query_side = decoding_path.axis_side(record, "query")
        if "query" not in record.axes:  # one record per position: the context says which side it is
            rows = decoding_path.input_tokens(record, at, self.id_to_token)
            query_side = decoding_path.input_side(record)
        if answer is not None and query_side == "target":
            read = (rows or []) + answer  # the prompt, then the answer
            rows = read[1:] if rows else read
            if not decoding_path.is_cross_attention(record):
                rows = columns = read[: len(weights)]
            rows = rows + ["…"] * (len(weights) - len(rows))
        real = weights if not rows else weights[: len(rows)]  # queries after the last token are padding
        return _fit_labels(rows, real, record.name), _fit_labels(columns, real.T, record.name)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{title}</th>" for title in ("name", "axes", "shape", "count"))
        lines = "".join(
            f"<tr><td>{escape(make_visible(info.name))}</td><td>{escape(make_visible(' '.join(info.axes)))}</td>"
            f"<td>{' x '.join(map(str, info.shape))}</td><td>{info.count}</td></tr>"
            for info in self.contents()
        )
        view = self._main_view()
        drawing = "" if view is None else view.svg()
        # where frames are not displayed, such as on a page that renders notebooks, the drawing still is
        summary = escape(repr(self))
        return (
            f"<div>{self._frame()}<details><summary>{summary}</summary>{drawing}<table><thead><tr>{head}</tr>"
            f"</thead><tbody>{lines}</tbody></table></details></div>"
        )

    def _frame(self) -> str:
        """The page in a frame; empty for records that cannot be joined."""
        try:
            return html.iframe(self.html(max_bytes=html.NOTEBOOK_BYTES))
        except (ModelError, ConfigError, ValueError, LookupError):
            return ""

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Recording({len(self.records)} records, {len(self.contents())} names)"


def _is_attention(record: Record) -> bool:
    return record.name.rpartition(".")[2] == "weights" and "key" in record.axes and "batch" in record.axes


def _fit_labels(labels: list[str] | None, weights: np.ndarray, name: str) -> list[str]:
    """One label per position; positions after the last token are padding, unless they have weight."""
    labels = [] if labels is None else labels
    if len(labels) > len(weights):
        sizes = f"{len(labels)} tokens for {len(weights)} positions"
        raise ModelError(f"{name}: {sizes}; are they the tokens of this pass?")
    if labels and not weights[len(labels) :].any():
        return labels
    return labels + [str(i + 1) for i in range(len(labels), len(weights))]
