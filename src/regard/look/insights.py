"""Insight tools: views of one output of a replayed pass, by name. Each reports its progress and ends with its view."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from regard.look.head_importance import head_importance_steps
from regard.look.input_attribution import input_attribution_steps
from regard.look.logit_attribution import logit_attribution
from regard.look.replay import Replay
from regard.look.tokens import token_label
from regard.look.view import View
from regard.progress import Progress

Steps = Iterator[tuple[int, int] | View]
"""(passes done, passes in all) as often as there is progress, then the view"""


def _attribution(replay: Replay, at: int) -> Steps:
    yield logit_attribution(replay, at)


TOOLS: dict[str, Callable[[Replay, int], Steps]] = {
    "attribution": _attribution,
    "importance": head_importance_steps,
    "integrated": input_attribution_steps,
}
"""name -> tool of an output with a number"""


def run_tool(name: str, replay: Replay, at: int, progress: Progress) -> View:
    """The view of a tool, with its progress."""
    return finish(TOOLS[name](replay, at), name, progress)


def finish(steps: Steps, name: str, progress: Progress) -> View:
    """The view at the end of a tool's steps."""
    for step in steps:
        if isinstance(step, View):
            return step
        progress(name, *step)
    raise RuntimeError(f"{name} ended without a view")


def to_dict(view: View, replay: Replay) -> dict[str, Any]:
    """Plain data of a view, with the outputs that can be chosen."""
    outputs = [vars(output) | {"label": token_label(output.token)} for output in replay.outputs]
    chain = [vars(scores) for scores in replay.chain]
    return view.to_dict() | {"outputs": outputs, "note": replay.note, "chain": chain}
