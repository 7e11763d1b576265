"""Recipes that start from a model (model.init): its shape and its tokenizer, where the recipe has none of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_type_hints

from regard import config
from regard.errors import InputError, ModelError
from regard.files import file_sha256
from regard.manifest import OtherVersion, check_is_run, read_recipe_table
from regard.packs import pack_folder
from regard.renamed import renamed_key
from regard.text import Tokenizer
from regard.text.byte_bpe import find_byte_bpe
from regard.train.checkpoint_store import run_folder


@dataclass(frozen=True)
class InitFields:
    """What a recipe of any task says about the model that it starts from."""

    init: Path | None = field(default=None, kw_only=True, metadata={"table": "model"})
    """fine-tuning: a run or a checkpoint whose weights training starts from; its shape is taken too unless model.kind
    is given, and its tokenizer unless the recipe sets one up"""

    @classmethod
    def reads_text(cls, table: Mapping[str, Any]) -> bool:
        """Whether a recipe of this table has a tokenizer, which it may take from the run of model.init."""
        return hasattr(cls, "text")


def with_source_sections(table: config.Table, has_text: bool, started: Path | None = None) -> config.Table:
    """A recipe with the sections that it takes from the run of model.init.

    `started` is the run that is trained: if the source is gone, its sections are in there.
    """
    model = table.get("model")
    init = model.get("init") if isinstance(model, dict) else None
    if not isinstance(model, dict) or not isinstance(init, str):
        return table
    takes_model = not {"kind", "preset"} & model.keys()
    takes_text = has_text and "text" not in table
    takes_elmo = model.get("kind") == "elmo-recurrent" and "elmo" not in model
    if not (takes_model or takes_text or takes_elmo):
        return table
    gone = not (run_folder(init) / "recipe.toml").is_file()
    found = (gone and _started_sections(init, started)) or _source_sections(init)
    taken = dict(table)
    if takes_model:
        taken["model"] = {**found["model"], **model}
    if takes_elmo:
        taken["model"] = {**model, "elmo": _elmo_section(found["model"], init)}
    if takes_text and "text" in found:
        taken["text"] = found["text"]
    return taken


def check_taken_kind(recipe: type, given: config.Table, taken: config.Table) -> None:
    """Refuse the kind of model that was taken from the run of model.init, if the task of the recipe has none such."""
    before, model = given.get("model"), taken.get("model")
    if not isinstance(before, dict) or not isinstance(model, dict) or "kind" in before or "kind" not in model:
        return
    members = config.union_members(get_type_hints(recipe, include_extras=True)["model"])
    kinds = [config.kind_of(member) for member in members if "kind" in get_type_hints(member)]
    if kinds and model["kind"] not in kinds:
        raise ModelError(
            f'model.init: {before["init"]} has model.kind = "{model["kind"]}", which this task does not have; set '
            f"model.kind to one of {', '.join(kinds)}, and what fits of the weights is taken"
        )


def _source_sections(init: str) -> config.Table:
    """[model] and [text] of the source; text.tokenizer names it, and BPE-dropout is not taken over."""
    run = run_folder(init)
    check_is_run(run, "model.init: ")
    source = read_recipe_table(run)
    for key in config.flat({name: source[name] for name in ("model", "text") if name in source}):
        if present := renamed_key(key):
            change = f"{key} is now {present}"
            raise OtherVersion(f"{run} was saved by an earlier version of regard ({change}); train it again")
    sections = {"model": {key: value for key, value in _section(source, "model", init).items() if key != "init"}}
    if tokenizer_files(run):
        text = {key: value for key, value in _section(source, "text", init).items() if key != "dropout"}
        sections["text"] = {**text, "tokenizer": init}
    return sections


def _elmo_section(model: config.Table, init: str) -> config.Table:
    """[model.elmo] of a model that starts from this one: the model itself, or the ELMo that it reads by."""
    found = model.get("elmo") if model.get("kind") == "elmo-recurrent" else model
    if not isinstance(found, dict) or found.get("kind", "elmo") != "elmo":
        kind = model.get("kind")
        raise ModelError(
            f'model.init: {init} has model.kind = "{kind}", and "elmo-recurrent" reads by an "elmo"; name its run'
        )
    return found


def _section(source: config.Table, name: str, init: str) -> config.Table:
    found = source.get(name)
    if not isinstance(found, dict):
        raise ModelError(f"model.init: {init}/recipe.toml has no [{name}] section; is it a run of regard?")
    return found


def _started_sections(init: str, started: Path | None) -> config.Table | None:
    """[model] and [text] of a run that was started from the same model before, else None."""
    if started is None or not (started / "recipe.toml").is_file():
        return None
    own = read_recipe_table(started)
    model = own.get("model")
    if not isinstance(model, dict) or model.get("init") != Path(init).as_posix():
        return None
    sections = {"model": {key: value for key, value in model.items() if key != "init"}}
    return sections | ({"text": own["text"]} if "text" in own else {})


def tokenizer_files(path: Path) -> dict[str, Path]:
    """The tokenizer files of a run or a pack by name, GPT-2's two files, or a tokenizer.json itself; or none."""
    path = pack_folder(path)
    if pair := find_byte_bpe(path):
        return {file.name: file for file in pair}
    if path.is_file():
        return {path.name: path}
    return {file.name: file for file in sorted(run_folder(path).glob("tokenizer*.json"))}


def tokenizer_digests(path: Path) -> dict[str, str]:
    """SHA-256 of the tokenizer files of a run: prepared data depends on them."""
    return {name: file_sha256(file) for name, file in tokenizer_files(path).items()}


def load_pretrained_tokenizer(path: Path, side: Literal["source", "target"], lowercase: bool = False) -> Tokenizer:
    """The tokenizer that text.tokenizer names; `side` chooses one where a run has two vocabularies.

    A text file is the vocab.txt of a BERT, which does not say whether texts become lower case: `lowercase` does. A
    folder with encoder.json and vocab.bpe, or with vocab.json and merges.txt, holds the byte-level BPE of a GPT-2.
    """
    if pair := find_byte_bpe(path):
        return Tokenizer.from_byte_bpe(*pair)
    if path.suffix == ".txt":
        return Tokenizer.from_wordpiece(path, lowercase)
    files = tokenizer_files(path)
    if not files:
        there = "there is no tokenizer" if path.exists() else "there is no such file or directory"
        raise InputError(f"text.tokenizer = {path}: {there}; name a run with a tokenizer*.json, or such a file")
    return Tokenizer.load(files.get(f"tokenizer.{side}.json", next(iter(files.values()))))
