"""Graphs of decoders: an encoder and a decoding step with KV cache or states; a language model is the step alone.

What a source gives is computed once, by the encoder, and fed to every step. A step takes what the one before it put
out: `present.NAME` becomes `past.NAME`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from regard.exchange.graph import Graph, GraphPlan, Port, Run, Structure, difference
from regard.exchange.graph_inputs import GraphInput
from regard.models.base import EncoderDecoder, State
from regard.models.transformer import SourceKV
from regard.nn.attention import AttentionMask, KeysValues
from regard.nn.kv_cache import KVCache
from regard.sequence import Rows, Tokens
from regard.tasks.generate.loader import empty_source

LENGTHS = ((3, 5, 2), (1,), (4, 1, 6))
"""lengths of the sources, or prompts, of the example and of the inputs that are compared"""
STEPS = 3
"""single steps that are compared"""
PAST, PRESENT = "past", "present"


@dataclass(frozen=True)
class GrowingKeysValues(KeysValues):
    """KV cache of one layer without a capacity: new keys and values are appended."""

    def write(self, new: KeysValues, at: int | Tensor) -> KeysValues:
        keys, values = torch.cat([self.keys, new.keys], 2), torch.cat([self.values, new.values], 2)
        return GrowingKeysValues(keys, values)

    def prefix(self, used: int) -> KeysValues:
        return self


@dataclass(frozen=True)
class GrowingCache(KVCache):
    """KV cache that grows with every step, with a mask of the slots that hold tokens."""

    seen: Tensor | None = None
    """(N, R), True at tokens and False at padding, those to be read included"""

    def write_slots(self, tokens: Tokens) -> int | Tensor:
        return self.lengths  # no number: a layer then takes the size of the mask as that of the cache

    def attention_mask(self, tokens: Tokens) -> AttentionMask:
        """Causal mask without padding; each position sees itself, so that no softmax is empty."""
        assert self.seen is not None
        slots_R = torch.arange(self.seen.shape[1])
        own_T1 = slots_R[self.seen.shape[1] - tokens.data.shape[1] :, None]
        return ((slots_R < own_T1) & self.seen[:, None] | (slots_R == own_T1))[:, None]

    def advance(self, tokens: Tokens, layers: list[KeysValues]) -> KVCache:
        return replace(self, layers=tuple(layers))


class SourceStart(nn.Module):
    """The encoder, and what the decoder takes of a source: computed once, then fed to every step."""

    def __init__(self, model: EncoderDecoder, inputs: GraphInput, source: Structure, past: Structure | None) -> None:
        """`past`: the initial state of the decoder; None: an empty KV cache."""
        super().__init__()
        self.model, self.inputs, self.source, self.past = model, inputs, source, past

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        state = start_state(self.model, self.inputs.read(*tensors))
        past = [] if self.past is None else self.past.pick(state.hypothesis)
        return (*self.source.pick(state.source), *past)


class DecodingStep(nn.Module, ABC):
    """A step of a decoder: token ids, the source and the state in; logits and the next state out."""

    def __init__(self, model: EncoderDecoder, source: Structure | None, past: Structure) -> None:
        """`source`: what the encoder gives; None: a language model."""
        super().__init__()
        self.model, self.source, self.past = model, source, past

    @property
    def source_count(self) -> int:
        """How many inputs come from the encoder."""
        return 0 if self.source is None else len(self.source.used)

    def source_rows(self, ids: Tensor, tensors: Sequence[Tensor]) -> Any:
        """The source half of the decoder's state."""
        if self.source is None:
            return self.model.start(empty_source(ids.shape[0])).source
        rows = self.source.build(tensors)
        if isinstance(rows, SourceKV):  # of the encoder's states only the size is needed: it is that of the keys
            keys: Any = rows.layers[0]
            return SourceKV(rows.memory.like(keys.keys[:, 0]), rows.layers)
        return rows

    @abstractmethod
    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Logits, and the tensors of the next state."""


class RecurrentStep(DecodingStep):
    """A step of a recurrent decoder: one token."""

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        ids, *tensors = inputs
        for one in tensors:
            torch._check(one.shape[0] == ids.shape[0])
        source = self.source_rows(ids, tensors[: self.source_count])
        state = State(source, self.past.build(tensors[self.source_count :]))
        features_NTD, state = self.model.decoder(Tokens.full(ids), state)
        return self.model.readout(features_NTD), *self.past.pick(state.hypothesis)


class AttentionStep(DecodingStep):
    """A step of a decoder with a KV cache: any number of tokens. That of a language model takes an attention mask."""

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        ids, *tensors = inputs
        for one in tensors:
            torch._check(one.shape[0] == ids.shape[0])
        first = 1 if self.source is None else self.source_count
        layers = [GrowingKeysValues(kv.keys, kv.values) for kv in self.past.build(tensors[first:])]
        before, new = layers[0].keys.shape[2], ids.shape[1]
        if self.source is None:
            seen_NR = tensors[0] > 0
            torch._check(seen_NR.shape[1] == before + new)
            positions_NT = (tensors[0].cumsum(1) - 1).clamp(min=0)[:, before:]
        else:
            seen_NR = torch.ones(ids.shape[0], before + new, dtype=torch.bool)
            positions_NT = (torch.arange(new) + before).expand(ids.shape[0], -1)
        source = self.source_rows(ids, tensors[: self.source_count])
        cache = GrowingCache(tuple(layers), positions_NT[:, 0], seen=seen_NR)
        tokens = replace(Tokens.full(ids), positions=positions_NT)
        features_NTD, state = self.model.decoder(tokens, State(source, cache))
        return self.model.readout(features_NTD), *self.past.pick(state.hypothesis.layers)


def start_state(model: EncoderDecoder, source: Rows) -> State:
    """The initial state of a decoder, with the keys and values of the source that its first forward would compute."""
    state = model.start(source)
    if not isinstance(state.source, SourceKV):
        return state
    memory, decoder = state.source.memory, model.decoder
    layers = tuple(layer.cross.keys_values(memory.data) for layer in decoder.layers)  # type: ignore
    return replace(state, source=SourceKV(memory, layers))


@dataclass(frozen=True)
class DecoderPlan(GraphPlan):
    """An encoder and a decoding step, or the step of a language model alone."""

    inputs: GraphInput | None = None
    """what the encoder reads; None: a language model"""
    vocabulary: int = 0
    """number of tokens that a step reads"""

    @property
    def step(self) -> DecodingStep:
        """The module of the decoding step."""
        found: DecodingStep = self.graphs[-1].module  # type: ignore[assignment]
        return found

    @torch.no_grad()
    def check(self, run: Run, seed: int = 0) -> float:
        check = self._check_translation if self.inputs is not None else self._check_language_model
        return max(check(run, lengths, seed) for lengths in LENGTHS)

    def _check_translation(self, run: Run, lengths: Sequence[int], seed: int) -> float:
        """Steps from a source, compared with the model's own decoding of each row alone."""
        assert self.inputs is not None
        model, inputs = self.step.model, self.inputs.draw(lengths, seed)
        ids_NT = draw_ids(self.vocabulary, len(lengths), STEPS, seed)
        given = run("encoder", inputs)
        source, past = given[: self.step.source_count], given[self.step.source_count :] or self.empty(len(lengths))
        states = [model.start(self.inputs.read_row(inputs, row), STEPS) for row in range(len(lengths))]
        worst = 0.0
        for ids_N1 in ids_NT.split(1, 1):
            logits, *past = run("decoder", [ids_N1, *source, *past])
            for row, state in enumerate(states):
                features, states[row] = model.decoder(Tokens.full(ids_N1[row : row + 1]), state)
                worst = max(worst, difference(logits[row : row + 1], model.readout(features)))
        return worst

    def _check_language_model(self, run: Run, lengths: Sequence[int], seed: int) -> float:
        """Prompts and steps after them, compared with one pass over each row; prompts are padded on the left."""
        model, size, batch = self.step.model, max(lengths), len(lengths)
        ids_NT = draw_ids(self.vocabulary, batch, size + STEPS, seed)
        past, found = self.empty(batch), list[Tensor]()
        if isinstance(self.step, AttentionStep):
            mask_NT = (torch.arange(size + STEPS) >= size - torch.tensor(lengths)[:, None]).long()
            for start, end in ((0, size), *((i, i + 1) for i in range(size, size + STEPS))):
                logits, *past = run("decoder", [ids_NT[:, start:end], mask_NT[:, :end], *past])
                found.append(logits)
            starts = [size - length for length in lengths]
        else:
            for ids_N1 in ids_NT.split(1, 1):
                logits, *past = run("decoder", [ids_N1, *past])
                found.append(logits)
            starts = [0] * batch
        all_NTV = torch.cat(found, 1)
        worst = 0.0
        for row, start in enumerate(starts):
            expected = model.readout(model(empty_source(1), Tokens.full(ids_NT[row : row + 1, start:])))
            worst = max(worst, difference(all_NTV[row : row + 1, start:], expected))
        return worst

    def empty(self, batch: int) -> list[Tensor]:
        """The state before the first step: an empty KV cache, or zeros."""
        ports = [port for port in self.graphs[-1].inputs if port.name.startswith(f"{PAST}.")]
        sizes = [[{"batch": batch, PAST: 0}.get(str(axis), axis) for axis in port.axes] for port in ports]
        return [torch.zeros([int(size) for size in shape]) for shape in sizes]

    def usage(self) -> str:
        begin = "an empty KV cache: `past.*` with 0 positions" if isinstance(self.step, AttentionStep) else "zeros"
        if self.inputs is None:
            return (
                "`decoder` takes the ids of the prompt, then one id at a time, and gives the logits of the next token. "
                f"It begins with {begin}; after a step, `present.NAME` is the next `past.NAME`."
            )
        initial = "" if isinstance(self.step, RecurrentStep) else f" The first step has {begin}."
        return (
            "`encoder` reads the source once. `decoder` takes the id of the last token, first that of `start_id`, and "
            "what the encoder gave (`source.*`), and gives the logits of the next token. After a step, `present.NAME` "
            f"is the next `past.NAME`.{initial} For several hypotheses of a source, repeat its rows."
        )


def draw_ids(vocabulary: int, batch: int, length: int, seed: int = 0) -> Tensor:
    """Random token ids."""
    return torch.randint(vocabulary, (batch, length), generator=torch.Generator().manual_seed(seed + 1))


@dataclass(frozen=True)
class StateSample:
    """Random inputs of an encoder, what it gives, and a state of the decoder."""

    inputs: tuple[Tensor, ...]
    source: Rows | None
    """None: a language model"""
    past: Any
    """keys and values of each layer with a few positions, or the initial state of a recurrent decoder"""
    is_cached: bool

    @classmethod
    def draw(cls, model: EncoderDecoder, inputs: GraphInput | None, lengths: Sequence[int]) -> StateSample:
        """A sample with one row for each length."""
        tensors = inputs.draw(lengths) if inputs else ()
        state = start_state(model, inputs.read(*tensors) if inputs else empty_source(len(lengths)))
        source, past = state.source if inputs else None, state.hypothesis
        if not isinstance(past, KVCache):
            return cls(tensors, source, past, False)
        kept = tuple(kv.map(lambda t: t.new_zeros(*t.shape[:2], 4, t.shape[3])) for kv in past.layers)
        return cls(tensors, source, kept, True)

    def step_inputs(self, step: DecodingStep, vocabulary: int) -> list[Tensor]:
        """Inputs of a step."""
        batch, new = tree_leaves(self.past)[0].shape[0], 2 if self.is_cached else 1
        mask = [torch.ones(batch, 6, dtype=torch.long)] if self.is_cached and self.source is None else []
        given = [] if step.source is None else step.source.pick(self.source)
        # a tensor that stands twice would be traced as one input
        return [draw_ids(vocabulary, batch, new), *mask, *(one.clone() for one in (*given, *step.past.pick(self.past)))]


@torch.no_grad()
def decoder_graphs(model: EncoderDecoder, inputs: GraphInput | None, vocabulary: int) -> tuple[Graph, ...]:
    """The graphs of an encoder-decoder model, or of a language model if there are no inputs of an encoder."""
    samples = [StateSample.draw(model, inputs, lengths) for lengths in ((3, 5, 2), (7, 4))]
    step = find_step(model, samples[0], vocabulary)
    source_ports = [] if step.source is None else leaf_ports(step.source, [sample.source for sample in samples])
    past_ports = leaf_ports(step.past, [sample.past for sample in samples], samples[0].is_cached)
    decoder = step_graph(step, samples[0], vocabulary, source_ports, past_ports)
    if inputs is None or step.source is None:
        return (decoder,)
    initial = [] if samples[0].is_cached else past_ports
    start = SourceStart(model, inputs, step.source, None if samples[0].is_cached else step.past).eval()
    return Graph("encoder", start, inputs.ports, (*source_ports, *initial), samples[0].inputs), decoder


def find_step(model: EncoderDecoder, sample: StateSample, vocabulary: int) -> DecodingStep:
    """The decoding step of a model, with those tensors of source and state as inputs that it depends on."""
    kind = AttentionStep if sample.is_cached else RecurrentStep
    source = None if sample.source is None else Structure.of(sample.source, "source")
    step = kind(model, source, Structure.of(sample.past, PAST))
    used = used_leaves(step, sample.step_inputs(step, vocabulary))
    past = step.past.restrict([number for number, is_used in zip(step.past.used, used[step.source_count :]) if is_used])
    source = source and source.restrict([number for number, is_used in zip(source.used, used) if is_used])
    return kind(model, source, past).eval()


def used_leaves(step: DecodingStep, inputs: Sequence[Tensor]) -> list[bool]:
    """Whether a step depends on each tensor of the source and of the state, found by their gradients."""
    count = step.source_count + len(step.past.used)
    first = len(inputs) - count  # ids, and an attention mask
    with torch.enable_grad():
        leaves = [one.requires_grad_() if one.is_floating_point() else one for one in inputs[first:]]
        logits, *after = step(*inputs[:first], *leaves)
        changed = [new for new, old in zip(after, leaves[step.source_count :], strict=True) if new is not old]
        total = torch.stack([(one.double() * torch.rand_like(one.double())).sum() for one in (logits, *changed)]).sum()
        floats = [leaf for leaf in leaves if leaf.is_floating_point()]
        found = iter(torch.autograd.grad(total, floats, allow_unused=True))
        return [not leaf.is_floating_point() or next(found) is not None for leaf in leaves]


def step_graph(
    step: DecodingStep, sample: StateSample, vocabulary: int, source: Sequence[Port], past: Sequence[Port]
) -> Graph:
    """The graph of a decoding step."""
    example, grown = sample.step_inputs(step, vocabulary), f"{PAST} + new"
    new = "new" if sample.is_cached else 1
    own = [Port("input_ids", ("batch", new), torch.long, "ids of the tokens to read")]
    if sample.is_cached and step.source is None:
        own.append(Port("attention_mask", ("batch", grown), torch.long, "1 at tokens, 0 at padding, past ones too"))
    size = int(step(*example)[0].shape[2])
    logits = Port("logits", ("batch", new, size), torch.float32, "of the token after each")
    present = [
        replace(
            port,
            name=f"{PRESENT}{port.name.removeprefix(PAST)}",
            axes=tuple(grown if a == PAST else a for a in port.axes),
        )
        for port in past
    ]
    return Graph("decoder", step, (*own, *source, *past), (logits, *present), tuple(example))


def leaf_ports(structure: Structure, rows: Sequence[Any], is_cached: bool = False) -> list[Port]:
    """Ports of the tensors of a state; an axis whose size differs between two examples may have any size."""
    ports = []
    for name, one, other in zip(structure.tensor_names, *(structure.pick(row) for row in rows), strict=True):
        names = ["batch", "source"]
        axes: list[str | int] = [
            size if size == second else names[min(i, 1)] for i, (size, second) in enumerate(zip(one.shape, other.shape))
        ]
        if is_cached:
            axes[2] = PAST
        ports.append(Port(name, tuple(axes), one.dtype))
    return ports
