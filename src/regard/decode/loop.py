"""One loop for beams, samples and forecasts.

The prompt is read once a source and then forked; finished sources leave the batch; limits are one number a source,
so that neighbours change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch
from torch import Tensor

from regard.decode.coverage import Attention
from regard.decode.hypothesis import Choice, History, Strategy
from regard.errors import ConfigError
from regard.models.base import EncoderDecoder, State
from regard.sequence import Rows, Tokens
from regard.trace import scene, tap, tracing


@torch.inference_mode()
def decode(
    model: EncoderDecoder,
    source: Rows,
    prompt: Tokens,
    strategy: Strategy,
    limits_B: Tensor,
    numbers_B: Tensor | None = None,
) -> Iterator[Choice]:
    """Yield one choice a step, so that a caller can stream, draw or stop.

    `limits_B` says how many tokens each source may say, <EOS> included. `numbers_B` names the sources (0, 1, ...
    unless given): choices, prefixes, constraints and what is drawn go by these names, not by the place in a batch.

    >>> from regard.decode.beam import Beam
    >>> from regard.models.gpt import GPTConfig
    >>> from regard.spaces import Words
    >>> model = GPTConfig(layers=1, width=8, heads=2, longest=16).build(Words(7), Words(7)).eval()
    >>> len(list(decode(model, Tokens.of([[]]), Tokens.of([[2]]), Beam(1), torch.tensor([1]))))
    1
    """
    B, device = len(prompt), prompt.data.device
    numbers_B = torch.arange(B, device=device) if numbers_B is None else numbers_B
    if not B:
        return
    if int(limits_B.min()) < 1:
        raise ConfigError(f"the longest output of a source is {int(limits_B.min())} tokens; it must be at least 1")
    W, attention = strategy.width, Attention(model) if strategy.coverage else None
    history = History.begin(numbers_B, limits_B, W, strategy.n_best)
    with _watched(attention), _told(numbers_B, prompt.data, 0, 1):
        state = model.start(source, room=prompt.data.shape[1] + int(limits_B.max()))
        features_BTD, state = model.decoder(prompt, state)
        out = tap(model, "logits", model.readout(prompt.last(features_BTD)), "batch vocabulary")
    if attention is not None:
        history = replace(history, attended=attention.begin(source, prompt).repeat_interleave(W, 0))
    state, out = state.fork(W), out.repeat_interleave(W, 0) if W > 1 else out
    while True:
        choice, history = strategy.choose(out, history)
        yield choice
        history, parents_N = history.follow(choice)
        if not len(parents_N):
            return
        state, said = go_on(state, parents_N), history.tokens
        with _watched(attention), _told(history.owners, said, said.shape[1], W):
            features_N1D, state = model.decoder(Tokens.full(said[:, -1:]), state)
            out = tap(model, "logits", model.readout(features_N1D[:, -1]), "batch vocabulary")
        if attention is not None:
            history = replace(history, attended=attention.add(history.attended))


def go_on(state: State, parents_N: Tensor) -> State:
    """Finished sources leave, hypotheses take their places; nothing is copied when nothing moves.

    >>> from regard.sequence import Padded
    >>> rows = Padded(torch.arange(4)[:, None], torch.ones(4))
    >>> go_on(State(rows, rows), torch.tensor([0, 2])).hypothesis.data
    tensor([[0],
            [2]])
    """
    W, N = state.width, len(parents_N)
    if len(state.hypothesis) > N:
        kept_B = parents_N[::W] // W
        state = state.keep(kept_B)
        parents_N = parents_N % W + torch.arange(0, N, W, device=parents_N.device).repeat_interleave(W)
    if W == 1 or torch.equal(parents_N, torch.arange(N, device=parents_N.device)):
        return state
    return state.reorder(parents_N)


def _told(sources_N: Tensor, said: Tensor, step: int, width: int) -> AbstractContextManager[None]:
    if not tracing():
        return nullcontext()
    slots_N = torch.arange(len(sources_N), device=said.device) % width
    return scene(step=step, sources=sources_N, hypothesis=slots_N, target=said)


def _watched(attention: Attention | None) -> AbstractContextManager[None]:
    return nullcontext() if attention is None else attention.watch()
