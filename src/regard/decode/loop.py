"""The decoding loop of all strategies.

The prompt is read once per source and then forked; finished sources leave the batch; limits are per source, so that the
other sources of a batch change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor

from regard.decode.coverage import AttentionRecorder
from regard.decode.hypothesis import Choice, History, Strategy
from regard.device import module_device
from regard.errors import ConfigError
from regard.models.base import EncoderDecoder, State
from regard.sequence import Rows, Tokens
from regard.trace import tap, trace_context, tracing


@torch.inference_mode()
def decode(
    model: EncoderDecoder,
    source: Rows,
    prompt: Tokens,
    strategy: Strategy,
    limits_B: Tensor,
    numbers_B: Tensor | None = None,
    ends: Callable[[Choice], Tensor] | None = None,
) -> Iterator[Choice]:
    """Yield one choice per step, so that a caller can stream, draw or stop.

    `limits_B` is the maximum number of tokens per source, <EOS> included. `numbers_B` are indices of the sources (by
    default 0, 1, ...): choices, prefixes, constraints and random draws use them, not the row of the batch. `ends` (M,)
    marks rows of a choice that are not extended, such as those that reached a stop string; it needs a strategy with one
    hypothesis per source. Inputs are moved to the model's device, on which the search computes.
    """
    B, device = len(prompt), module_device(model)
    if not B:
        return
    source, prompt, limits_B = source.to(device), prompt.to(device), limits_B.to(device)
    numbers_B = torch.arange(B, device=device) if numbers_B is None else numbers_B.to(device)
    if int(limits_B.min()) < 1:
        raise ConfigError(f"the longest output of a source is {int(limits_B.min())} tokens; it must be at least 1")
    W, attention = strategy.width, AttentionRecorder(model) if strategy.coverage_penalty else None
    history = History.start(numbers_B, limits_B, W, strategy.n_best)
    with _watch(attention), _step_context(numbers_B, prompt.data, 0, 1):
        state = model.start(source, max_tokens=prompt.data.shape[1] + int(limits_B.max()))
        features_BTD, state = model.decoder(prompt, state)
        out = tap(model, "logits", model.readout(prompt.last(features_BTD)), "batch vocabulary")
    if attention is not None:
        history = replace(history, attended=attention.initial(source, prompt).repeat_interleave(W, 0))
    state, out = state.fork(W), out.repeat_interleave(W, 0) if W > 1 else out
    while True:
        choice, history = strategy.choose(out, history)
        if ends is not None:
            choice = replace(choice, live=choice.live & ~ends(choice).to(device))
        yield choice
        history, parents_N = history.advance(choice)
        if not len(parents_N):
            return
        state, tokens = reorder_state(state, parents_N), history.tokens
        with _watch(attention), _step_context(history.owners, tokens, tokens.shape[1], W):
            features_N1D, state = model.decoder(Tokens.full(tokens[:, -1:]), state)
            out = tap(model, "logits", model.readout(features_N1D[:, -1]), "batch vocabulary")
        if attention is not None:
            history = replace(history, attended=attention.add(history.attended))


def reorder_state(state: State, parents_N: Tensor) -> State:
    """Drop finished sources and reorder hypotheses; nothing is copied when nothing changes."""
    W, N = state.width, len(parents_N)
    if len(state.hypothesis) > N:
        kept_B = parents_N[::W] // W
        state = state.keep(kept_B)
        parents_N = parents_N % W + torch.arange(0, N, W, device=parents_N.device).repeat_interleave(W)
    if W == 1 or torch.equal(parents_N, torch.arange(N, device=parents_N.device)):
        return state
    return state.reorder(parents_N)


def _step_context(sources_N: Tensor, tokens: Tensor, step: int, width: int) -> AbstractContextManager[None]:
    if not tracing():
        return nullcontext()
    slots_N = torch.arange(len(sources_N), device=tokens.device) % width
    return trace_context(step=step, sources=sources_N, hypothesis=slots_N, target=tokens)


def _watch(attention: AttentionRecorder | None) -> AbstractContextManager[None]:
    return nullcontext() if attention is None else attention.watch()
