"""Replay of an answer: what a model read and chose, taken from its own prediction and from the recording of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.errors import ConfigError, ModelError
from regard.look import Recording
from regard.look.decoding_path import ANSWER, DECODED_LABELS, to_tokens
from regard.look.replay import ChainScores, Output, Replay
from regard.nn.crf import LinearChainCRF
from regard.sequence import Rows, Tokens
from regard.trace import Record
from regard.trace import record as tracing

MASK = "[MASK]"


class _Read(Exception):  # no error: it ends a prediction as soon as its inputs are known
    """Ends a prediction once the first inputs of encoder and decoder are known."""


def replay(model: Any, recording: Recording, predict: Callable[[], object]) -> Replay:
    """The replay of an answer; `recording` is the condensed recording of `predict`, whose first inputs it reads."""
    logits = next((record for record in recording.records if record.name == "logits"), None)
    if logits is None:
        raise ConfigError(
            f"a model that was trained to {model.recipe.kind()} on these data gives no logits of words or labels, and "
            "this view explains one of them; use --view saliency or states"
        )
    source, prompt = first_inputs(model.inference_module, predict)
    tokens = {side: logits.context[name][0] for side, name in (("source", "source"), ("target", "read"))
              if name in logits.context}  # fmt: skip
    parts = model.module, source
    if logits.axes[-1] == "label":
        decoded = next((record.data[0].tolist() for record in recording.records if record.name == DECODED_LABELS), None)
        if decoded is None:
            return Replay(*parts, None, *label_outputs(logits), tokens)
        positions, outputs, chain = decoded_outputs(logits, decoded, model.module.crf)
        return Replay(*parts, None, positions, outputs, tokens, chain=chain)
    if "mask" in logits.axes:
        return Replay(*parts, None, *mask_outputs(logits, tokens["source"], recording), tokens)
    answer = next((record.data[0].tolist() for record in recording.records if record.name == ANSWER), None)
    ids = next((record.data[0].tolist() for record in recording.records if record.name == "ids"), None)
    if prompt is None or (answer is None and ids is None):
        raise ModelError("this recording has no answer to be replayed; record a prediction of one text")
    if answer is None and ids is not None:
        if len(ids) < 2:
            raise ConfigError("the text is one token, and a language model chooses none after it; write a longer one")
        read, first, chosen = ids[:-1], 0, ids[1:]
    else:
        chosen = (answer or [])[: logits.data.shape[1]]
        read, first = [*prompt, *chosen[:-1]], len(prompt) - 1
    names = to_tokens(chosen, "target", recording.id_to_token)
    places = to_tokens(read[first:], "target", recording.id_to_token)
    outputs = tuple(Output(i, name, place) for i, name, place in zip(chosen, names, places, strict=True))
    positions = tuple(range(first, first + len(chosen)))
    return Replay(*parts, tuple(read), positions, outputs, tokens, len(prompt))


def replay_of_text(found: Replay, model: Any, predict: Callable[[], object]) -> Replay:
    """The same pass over another text, with the same answer: for patching between two texts."""
    source, prompt = first_inputs(model.inference_module, predict)
    names, tokens = model.id_to_token(), dict[str, list[str]]()
    if isinstance(source, Tokens) and source.data.ndim == 2 and source.data.numel():
        tokens["source"] = to_tokens(source.data[0].tolist(), "source", names)
    if prompt is None or found.read is None:
        return replace(found, source=source, tokens=tokens)
    if len(prompt) == found.prompt:  # another length is refused with both lengths
        prompt = [*prompt, *found.read[found.prompt :]][: len(found.read)]
    tokens["target"] = to_tokens(prompt, "target", names)
    return replace(found, source=source, read=tuple(prompt), tokens=tokens)


def first_inputs(module: nn.Module, predict: Callable[[], object]) -> tuple[Rows, list[int] | None]:
    """What the encoder reads first, and the ids that the decoder reads first; None if there is no decoder."""
    encoder, decoder = module.get_submodule("encoder"), getattr(module, "decoder", None)
    found: dict[str, Any] = {}

    def read_source(part: nn.Module, inputs: tuple[Any, ...]) -> None:
        found.setdefault("source", inputs[0])
        if decoder is None:
            raise _Read

    def read_target(part: nn.Module, inputs: tuple[Any, ...]) -> None:
        found["target"] = inputs[0]
        raise _Read

    hooks = [encoder.register_forward_pre_hook(read_source)]
    if decoder is not None:
        hooks.append(decoder.register_forward_pre_hook(read_target))
    try:
        with tracing(module):  # as the prediction was recorded: no accelerator stands in for a layer
            predict()
    except _Read:
        pass
    finally:
        for hook in hooks:
            hook.remove()
    if "source" not in found:
        raise ModelError("the model read nothing; is the text empty?")
    source: Rows = found["source"]
    first = source.select(torch.zeros(1, dtype=torch.long, device=source.device))
    target: Tokens | None = found.get("target")
    return first, None if target is None else target.data[0, : int(target.lengths[0])].tolist()


def label_outputs(logits: Record) -> tuple[tuple[int, ...], tuple[Output, ...]]:
    """Positions and outputs of a classifier (one) or a tagger (one per word): the label with the largest logit."""
    values: Tensor = logits.data[0]
    names = logits.labels.get("label") or logits.context.get("label")
    rows = values if values.ndim == 2 else values[None]
    label = logits.labels.get("position")
    places = [""] if values.ndim == 1 else [str(i + 1) for i in range(len(rows))] if label is None else list(label[0])
    best = rows.argmax(-1).tolist()
    outputs = (Output(i, str(names[i]) if names else str(i), place) for i, place in zip(best, places, strict=True))
    return tuple(range(len(rows))), tuple(outputs)


def decoded_outputs(
    logits: Record, decoded: Sequence[int], crf: LinearChainCRF
) -> tuple[tuple[int, ...], tuple[Output, ...], tuple[ChainScores, ...]]:
    """Outputs of a tagger with a CRF: the decoded label of each word, then largest emissions that are other labels."""
    positions, largest = label_outputs(logits)
    names = logits.labels.get("label") or logits.context.get("label") or [str(i) for i in range(len(crf.start))]
    ids = list(decoded)[: len(positions)]
    chosen = [Output(i, str(names[i]), output.place) for i, output in zip(ids, largest, strict=True)]
    others = [n for n, output in enumerate(largest) if output.id != ids[n]]
    outputs = [*chosen, *(replace(largest[n], place=f"{largest[n].place}, largest emission") for n in others)]
    at = [*positions, *others]
    start, steps, end = (part.detach() for part in (crf.start, crf.transitions, crf.end))

    def scores(position: int, label: int) -> ChainScores:
        first, last = position == 0, position == len(ids) - 1
        before = start[label] if first else steps[ids[position - 1], label]
        after = end[label] if last else steps[label, ids[position + 1]]
        return ChainScores(
            "" if first else str(names[ids[position - 1]]), float(before),
            "" if last else str(names[ids[position + 1]]), float(after),
        )  # fmt: skip

    chain = tuple(scores(position, output.id) for position, output in zip(at, outputs, strict=True))
    return tuple(at), tuple(outputs), chain


def mask_outputs(logits: Record, source: list[str], recording: Recording) -> tuple[tuple[int, ...], tuple[Output, ...]]:
    """Positions of the masks, and the most probable word at each."""
    best = logits.data[0].argmax(-1).tolist()
    words = to_tokens(best, "source", recording.id_to_token)
    positions = tuple(i for i, token in enumerate(source) if token == MASK)
    outputs = (Output(i, word, f"{MASK} {n}") for n, (i, word) in enumerate(zip(best, words, strict=True), 1))
    return positions, tuple(outputs)
