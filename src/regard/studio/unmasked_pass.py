"""Teacher-forced pass over an answer without the causal mask: each token also attends to later ones.

During generation there are no later tokens, so removing the mask has an effect only in such a pass.
"""

from __future__ import annotations

import torch
from torch import Tensor

import regard
from regard.device import module_device
from regard.look import Recording
from regard.look.decoding_path import ANSWER, passes, strip_padding, to_list
from regard.look.replay import chain_replacements
from regard.sequence import Tokens
from regard.studio.errors import ApiError
from regard.studio.interventions import Replacements, masked_weights, unmasked_weights
from regard.trace import Record, tap, trace_context


@torch.no_grad()
def run_unmasked(model: regard.Model, text: str, generated: Recording, replacements: Replacements) -> Recording:
    """Recording of an unmasked pass over the answer of the recording `generated`, in the form of a decoding pass."""
    decoding = next((one for one in passes("logits", generated.records) if one.is_decoding), None)
    answer = next((record for record in generated.records if record.name == ANSWER), None)
    names = masked_weights(generated.condense())
    if decoding is None or answer is None or not names:
        raise ApiError(422, "bad-request", "this model has no causal mask", "choose another change")
    steps = decoding.path(decoding.sources[0])
    prompt = strip_padding(to_list(steps[0][0].context["target"][0]))
    ids = to_list(answer.data[0])[: len(steps)]  # a text generated in several windows is longer than the first
    target = Tokens.pad([[*prompt, *ids[:-1]]])
    source, module = model.teacher_forced(text).source, model.inference_module
    device = module_device(module)
    records = generated.records
    words: list[list[str]] = next((r.context["source"] for r in records if len(r.context.get("source", ()))), [])
    with (
        model.record(chain_replacements(unmasked_weights(names), replacements)) as recording,
        trace_context(source=words, target=target.data),
    ):
        features_1TD = module(source.to(device), target.to(device))
        logits_TV = module.readout(features_1TD[:, len(prompt) - 1 :])[0]
        _tap_steps(module, logits_TV, prompt, ids, answer)
    return recording


def _tap_steps(module: torch.nn.Module, logits_TV: Tensor, prompt: list[int], ids: list[int], answer: Record) -> None:
    """Tap the logits and the answer step by step, as a search does."""
    for step, logits_V in enumerate(logits_TV):
        before = torch.tensor([ids[:step] if step else prompt])
        with trace_context(step=step, sources=torch.zeros(1, dtype=torch.long), target=before):
            tap(module, "logits", logits_V[None], "batch vocabulary")
    tokens = answer.labels.get("position")
    with trace_context(target=tokens, sources=torch.zeros(1, dtype=torch.long)):
        tap(module, ANSWER, answer.data[:1], "batch position:target")
