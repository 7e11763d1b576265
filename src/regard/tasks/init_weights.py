"""Fine-tuning: initial weights from another model, matched by parameter names, with vocabulary rows matched by token.

The source may have another task: an encoder starts from the encoder of any model of its kind, or from a recurrent
language model; an embedding from any embedding of its width. What is missing in the source stays as it was initialized.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import parse, plain
from regard.errors import ConfigError, ModelError
from regard.files import parse_json, read_bounded, write_text_atomically
from regard.tasks.base import Recipe
from regard.text.token_rows import RowCounts, TokenStrings, map_rows
from regard.text.tokenizer_training import MASK, SPECIAL
from regard.train.checkpoint import Checkpoint
from regard.train.weights import tied_names, weights

INIT_FILE = "init.json"
"""file of a run: what it was started from"""
FREE = frozenset({"kind", "dropout", "tie", "forget_bias", "samples"})
"""settings of a model that may differ: they change neither the shape of a trained weight nor what it computes"""
MAX_SIZE = 4 << 20
"""bytes of the largest init.json that is read"""
MAX_LINEAGE = 20
"""ancestors that are remembered"""
EMBEDDINGS = ("encoder.embed.", "decoder.embed.", "embed.")
ELMO_PARTS = ("embed", "stack", "backward_stack", "mix")
"""attributes of an ELMo encoder that have weights"""
ELMO_LM = {"embed": "decoder.embed.", "stack": "decoder.stack.", "backward_stack": "backward_decoder.stack."}
"""where the parts of ELMo are in its language models, which have no mix"""
POOLERS = ("pool.pool.", "pooler.")
"""BERT's pooler in a classifier, and beside the encoder that it was pre-trained with"""


@dataclass(frozen=True)
class ModelOrigin:
    """The checkpoint that a model was started from."""

    path: str
    """as the recipe named it"""
    task: str
    model: str
    """kind of the model"""
    step: int
    digest: str
    """SHA-256 of the checkpoint"""


@dataclass(frozen=True)
class InitReport:
    """What a model was started from, and what was taken: the content of init.json, in the run's folder."""

    origin: ModelOrigin
    loaded: tuple[str, ...]
    """weights that were taken"""
    fresh: tuple[str, ...] = ()
    """weights that the source does not have: they start from their initialization"""
    unused: tuple[str, ...] = ()
    """weights of the source that were not taken"""
    rows: dict[str, RowCounts] = field(default_factory=dict)
    """of weights with a row per token or label: where the rows come from, if the vocabularies differ"""
    ancestors: tuple[ModelOrigin, ...] = ()
    """what the source was fine-tuned from itself, the nearest first"""
    refused: tuple[str, ...] = ()
    """why better or newer checkpoints of the source could not be used"""

    def save(self, run: Path) -> None:
        """Write init.json."""
        write_text_atomically(run / INIT_FILE, json.dumps(plain(self), ensure_ascii=False, indent=1) + "\n")

    @classmethod
    def load(cls, run: Path) -> InitReport | None:
        """Read init.json of a run; None if it was not started from a model, or the file is not what `save` wrote."""
        try:
            return parse(cls, parse_json(read_bounded(run / INIT_FILE, MAX_SIZE)))
        except (OSError, ValueError, RecursionError, ConfigError):
            return None

    def lines(self) -> list[str]:
        """The report as lines of a log."""
        found = [f" warning  {reason}" for reason in self.refused]
        total = len(self.loaded) + len(self.fresh)
        found += [f" init     {self.origin.path}, step {self.origin.step:,}: {len(self.loaded)} of {total} weights"]
        found += [
            f"          {name}: {n.copied:,} rows by token, {n.from_pieces:,} from pieces, {n.fresh:,} fresh"
            for name, n in self.rows.items()
        ]
        found += [f" fresh    {self.fresh_names()}"] if self.fresh else []
        return found + ([f" unused   {self.unused_names()}"] if self.unused else [])

    def fresh_names(self) -> str:
        """The weights that were not in the source, in short."""
        return ", ".join(collapse(self.fresh, self.loaded))

    def unused_names(self) -> str:
        """The weights of the source that were not taken, in short."""
        return ", ".join(collapse(self.unused, self.loaded))


@dataclass(frozen=True)
class InitSource:
    """A trained model to start from."""

    path: Path
    """as the recipe names it"""
    run: Path
    recipe: Recipe
    checkpoint: Checkpoint
    refused: Sequence[str] = ()
    """why better or newer checkpoints of the run could not be used"""

    @cached_property
    def tensors(self) -> Mapping[str, Tensor]:
        """The weights."""
        return self.checkpoint.tensors("model")

    @property
    def origin(self) -> ModelOrigin:
        """The source as a run remembers it."""
        recipe, saved = self.recipe, self.checkpoint
        return ModelOrigin(self.path.as_posix(), recipe.kind(), recipe.model.kind, saved.step, saved.digest)

    def ancestors(self) -> tuple[ModelOrigin, ...]:
        """What the source was fine-tuned from itself."""
        own = InitReport.load(self.run)
        return () if own is None else (own.origin, *own.ancestors)[:MAX_LINEAGE]


def collapse(names: Iterable[str], others: Iterable[str]) -> list[str]:
    """Names with a pattern in place of each module that is listed as a whole.

    >>> collapse(["decoder.a.weight", "decoder.b.weight", "encoder.c.bias"], ["encoder.c.weight"])
    ['decoder.*', 'encoder.c.bias']
    """
    taken = {".".join(name.split(".")[:depth]) for name in others for depth in range(1, name.count(".") + 1)}
    found = []
    for name in names:
        parts = name.split(".")
        prefixes = (".".join(parts[:depth]) for depth in range(1, len(parts)))
        whole = next((prefix for prefix in prefixes if prefix not in taken), None)
        found.append(name if whole is None else f"{whole}.*")
    return list(dict.fromkeys(found))


def elmo_prefixes(names: Iterable[str]) -> dict[str, str]:
    """Prefixes of the weights of each part of ELMo in a model: its language models, an encoder, or inside of one.

    >>> elmo_prefixes(["encoder.elmo.backward_stack.layers.0.x"])["stack"], elmo_prefixes(["encoder.stack.x"])
    ('encoder.elmo.stack.', {})
    """
    for name in names:
        if name.startswith("backward_decoder."):
            return ELMO_LM
        for home in ("encoder.elmo.", "encoder."):
            if name.startswith(f"{home}backward_stack."):
                return {part: f"{home}{part}." for part in ELMO_PARTS}
    return {}


def report_differences(prefix: str, here: Mapping[str, Any], there: Mapping[str, Any], source: InitSource) -> None:
    """Refuse settings that differ, naming both values."""
    differing = [key for key in here if key not in FREE and here[key] != there.get(key)]
    if differing:
        pairs = (f"{prefix}{key} is {here[key]} here and {there.get(key)} in {source.path}" for key in differing)
        raise ConfigError(
            f"{' and '.join(pairs)}; the model must have the shape of the one it starts from (without "
            "model.kind it is taken over)"
        )


def is_elmo_input(recipe: Recipe, source: InitSource) -> bool:
    """Whether a model reads by an ELMo that was trained in another kind of model or task; refuses one of other shape.

    Of its shape the softmax of the language models may differ.
    """
    here, there = recipe.model.language_models, source.recipe.model.language_models
    same = type(recipe) is type(source.recipe) and type(recipe.model) is type(source.recipe.model)
    if same or here is None or there is None:
        return False
    tables = [{key: value for key, value in plain(m).items() if key != "softmax_words"} for m in (here, there)]
    report_differences("model." if here is recipe.model else "model.elmo.", tables[0], tables[1], source)
    return True


def check_shape(recipe: Recipe, source: InitSource) -> None:
    """Refuse a model of the source's kind with another width, depth or function, naming both values."""
    if is_elmo_input(recipe, source):
        return
    parts = [part for part in ("encoder", "decoder") if any(name.startswith(f"{part}.") for name in source.tensors)]
    for part in parts or [""]:
        prefix, here = part_settings(recipe.model, part)
        there = part_settings(source.recipe.model, part)[1]
        if here.get("kind") == there.get("kind"):
            report_differences(prefix, here, there, source)


def part_settings(model: Any, part: str) -> tuple[str, dict[str, Any]]:
    """Settings of the encoder or the decoder of a model config, and their prefix in a recipe."""
    half = getattr(model, part, None)
    return ("model.", plain(model)) if half is None else (f"model.{part}.", plain(half))


def init_weights(model: nn.Module, recipe: Recipe, run: Path, source: InitSource) -> InitReport:
    """Start a model from the weights of another, in place; `run` holds the prepared files of `recipe`."""
    check_shape(recipe, source)
    own, tied = weights(model), tied_names(source.tensors)
    matcher = _Matcher(own, recipe, source, recipe.vocabularies(run), source.recipe.vocabularies(source.run))
    aliases = tied_names(own)
    groups: dict[str, list[str]] = {}
    for name in own:
        groups.setdefault(aliases.get(name, name), []).append(name)
    used: set[str] = set()
    loaded, fresh, rows = [], [], {}
    for owner, names in groups.items():
        pair = next(filter(None, map(matcher.match, names)), None)
        if pair is None:
            fresh.append(owner)
            continue
        loaded.append(owner)
        used.add(tied.get(pair.theirs, pair.theirs))
        if counts := matcher.copy(pair):
            rows[owner] = counts
    if not loaded:
        raise ModelError(_nothing_fits(recipe, source))
    unused = [name for name in source.tensors if name not in tied and name not in used]
    lists = tuple(loaded), tuple(fresh), tuple(unused)
    return InitReport(source.origin, *lists, rows, source.ancestors(), tuple(source.refused))


def _nothing_fits(recipe: Recipe, source: InitSource) -> str:
    theirs = f"{source.path} was trained to {source.recipe.kind()} ({source.recipe.model.summary})"
    return (
        f"model.init: {theirs}, and none of its weights fits the model here ({recipe.model.summary}); what can be used "
        "is an encoder of the same kind and shape, or an embedding of the same width"
    )


@dataclass(frozen=True)
class _Pair:
    """A weight of the model and the weight of the source that it starts from."""

    ours: str
    theirs: str


@dataclass(frozen=True)
class _Matcher:
    """Finds for each weight of a model the weight of the source that it starts from."""

    own: Mapping[str, Tensor]
    recipe: Recipe
    source: InitSource
    vocabularies: Mapping[str, TokenStrings]
    source_vocabularies: Mapping[str, TokenStrings]

    def match(self, name: str) -> _Pair | None:
        """The weight of the source for a weight of the model, or None."""
        theirs = self.counterpart(name)
        if theirs is None:
            return None
        here, there = self.own[name], self.source.tensors[theirs]
        if name in self.vocabularies and theirs in self.source_vocabularies:
            fits = here.shape[1:] == there.shape[1:]
        else:
            fits = here.shape == there.shape and name not in self.vocabularies
        return _Pair(name, theirs) if fits else None

    def counterpart(self, name: str) -> str | None:
        """Name of the corresponding weight in the source; None if it has none that means the same."""
        part = name.partition(".")[0]
        for elmo_part, home in self.elmo_homes[0].items():
            if name.startswith(home):
                theirs = self.elmo_homes[1].get(elmo_part, "-") + name.removeprefix(home)
                return theirs if theirs in self.source.tensors else None
        for homes in (EMBEDDINGS, POOLERS):
            if own := next((home for home in homes if name.startswith(home)), None):
                tail = name.removeprefix(own)
                return next((home + tail for home in (own, *homes) if home + tail in self.source.tensors), None)
        if part in ("encoder", "decoder"):
            theirs = self.source_part(part) + name.removeprefix(part)
            return theirs if theirs in self.source.tensors and self.is_usable(part) else None
        return name if name in self.source.tensors and self.means_the_same(name) else None

    @cached_property
    def elmo_homes(self) -> tuple[dict[str, str], dict[str, str]]:
        """Prefixes of the parts of ELMo in the model and in the source; none if one of them has no ELMo."""
        ours, theirs = elmo_prefixes(self.own), elmo_prefixes(self.source.tensors)
        return (ours, theirs) if ours and theirs else ({}, {})

    def source_part(self, part: str) -> str:
        """The part of the source that a part starts from: a language model, which has no encoder, can be one."""
        has_encoder = any(name.startswith("encoder.") for name in self.source.tensors)
        return "decoder" if part == "encoder" and not has_encoder else part

    def is_usable(self, part: str) -> bool:
        """Whether a part is that of the source's kind, or of another kind with exactly the same weights."""
        theirs = self.source_part(part)
        here, there = part_settings(self.recipe.model, part)[1], part_settings(self.source.recipe.model, theirs)[1]
        if part == theirs and here.get("kind") == there.get("kind"):
            return True
        if any(here[key] != there[key] for key in here.keys() & there.keys() - FREE):
            return False
        names = [name for name in self.own if name.startswith(f"{part}.")]
        body = [name for name in names if not name.startswith((*EMBEDDINGS, "decoder.readout."))]
        shapes = {name: self.source.tensors.get(theirs + name.removeprefix(part)) for name in body}
        return all(tensor is not None and tensor.shape == self.own[name].shape for name, tensor in shapes.items())

    def means_the_same(self, head: str) -> bool:
        """Whether a head predicts the same as the source's: the same task and, without rows per label, its labels."""
        if self.recipe.kind() != self.source.recipe.kind():
            return False
        if head in self.vocabularies:
            return True
        labels = [
            [list(found[name].strings) for name in sorted(found) if not name.startswith(EMBEDDINGS)]
            for found in (self.vocabularies, self.source_vocabularies)
        ]
        return labels[0] == labels[1]

    @torch.no_grad()
    def copy(self, pair: _Pair) -> RowCounts | None:
        """Copy a weight, row by row if the vocabularies differ."""
        here, there = self.own[pair.ours], self.source.tensors[pair.theirs]
        ours, theirs = self.vocabularies.get(pair.ours), self.source_vocabularies.get(pair.theirs)
        if ours is None or theirs is None or list(ours.strings) == list(theirs.strings):
            here.copy_(there)
            return None
        counts = map_rows(there, theirs, here, ours)
        special = {*SPECIAL, *MASK} & {*ours.strings} & {*theirs.strings}
        if pair.ours.startswith(EMBEDDINGS) and counts.copied <= len(special) and not counts.from_pieces:
            sizes = (
                f"the vocabulary here ({len(ours.strings):,} tokens)",
                f"that of {self.source.path} ({len(theirs.strings):,} tokens)",
            )
            raise ModelError(
                f"model.init: {' and '.join(sizes)} have no token in common but special ones; leave [text] out to "
                "take over the tokenizer"
            )
        return counts
