"""An answer that is read again at once, as in training, with no mask: each of its words sees those after it.

While an answer is said word by word there is nothing later to see, so a mask that is taken away shows only here.
"""

from __future__ import annotations

import torch
from torch import Tensor

import regard
from regard.look import Recording
from regard.look.decoding_path import ANSWER, passes, plain, trimmed
from regard.sequence import Tokens
from regard.studio.errors import Refusal
from regard.studio.interventions import Replacing, masks, unmasked
from regard.trace import Record, scene, tap


@torch.no_grad()
def reread(model: regard.Model, text: str, first: Recording, replacing: Replacing) -> Recording:
    """What happens when the answer of a pass is read at once without a mask, as if it had been said that way."""
    found = next((one for one in passes("logits", first.records) if one.decoded), None)
    answer = next((record for record in first.records if record.name == ANSWER), None)
    names = masks(first.condensed())
    if found is None or answer is None or not names:
        raise Refusal(422, "bad-request", "this model has no mask", "choose another change")
    steps = found.path(found.sources[0])
    prompt = trimmed(plain(steps[0][0].scene["target"][0]))
    said = plain(answer.data[0])[: len(steps)]  # a text that is written in windows is longer than the first
    target = Tokens.of([[*prompt, *said[:-1]]])
    source, ready = model.reading(text).source, model.ready
    words: list[list[str]] = next((r.scene["source"] for r in first.records if len(r.scene.get("source", ()))), [])
    with model.record({**replacing, **unmasked(names)}) as again, scene(source=words, target=target.data):
        features_1TD = ready(source, target)
        logits_TV = ready.readout(features_1TD[:, len(prompt) - 1 :])[0]
        _say(ready, logits_TV, prompt, said, answer)
    return again


def _say(ready: torch.nn.Module, logits_TV: Tensor, prompt: list[int], said: list[int], answer: Record) -> None:
    """Show the logits and the answer as a search shows them, one step after the other."""
    for step, logits_V in enumerate(logits_TV):
        before = torch.tensor([said[:step] if step else prompt])
        with scene(step=step, sources=torch.zeros(1, dtype=torch.long), target=before):
            tap(ready, "logits", logits_V[None], "batch vocabulary")
    spelt = answer.labels.get("position")
    with scene(target=spelt, sources=torch.zeros(1, dtype=torch.long)):
        tap(ready, ANSWER, answer.data[:1], "batch position:target")
