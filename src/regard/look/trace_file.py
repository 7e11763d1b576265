"""trace/1: records in one .safetensors file, readable without the model.

The header is JSON in the file's metadata under "trace": {"format": "trace/1", "records": [...], "scenes": [...],
"tokens": {...}}. A record has name, tensor (its key in the file), axes, sides (axis -> the name of the scene's fact
that its words are), labels (words that are no fact of the scene) and the number of its scene; "tokens" spells ids.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from regard.errors import InputError, ModelError, OutputError
from regard.look.decoding_path import ANSWER, Spell, side
from regard.trace import Record

FORMAT = "trace/1"


def write(path: Path, records: Sequence[Record], spell: Spell) -> None:
    """Put records into a file, whole or not at all.

    >>> import tempfile
    >>> one = Record("w", ("key",), torch.ones(2), {}, {"step": 3})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder) / "a.safetensors", [one], {})
    ...     read(Path(folder) / "a.safetensors")[0][0].scene
    {'step': 3}
    """
    tensors: dict[str, Tensor] = {}
    scenes: dict[int, int] = {}
    facts: list[Any] = []
    entries, times, seen = [], Counter(r.name for r in records), Counter[str]()
    for record in records:
        key = record.name if times[record.name] == 1 else f"{record.name}/{seen[record.name]}"
        seen[record.name] += 1
        tensors[key] = _own(record.data)
        if id(record.scene) not in scenes:
            scenes[id(record.scene)] = len(facts)
            where = f"scene.{len(facts)}"
            facts.append({name: _packed(fact, f"{where}.{name}", tensors) for name, fact in record.scene.items()})
        sides = {axis: whose for axis in record.labels if (whose := side(record, axis))}
        labels = {a: _packed(words, f"{key}.{a}", tensors) for a, words in record.labels.items() if a not in sides}
        entries.append(
            {"name": record.name, "tensor": key, "axes": list(record.axes), "sides": sides, "labels": labels,
             "scene": scenes[id(record.scene)]}
        )  # fmt: skip
    header = {"format": FORMAT, "records": entries, "scenes": facts, "tokens": _tokens(records, spell)}
    _replace(path, save(tensors, {"trace": json.dumps(header, allow_nan=False)}))


def _own(tensor: Tensor) -> Tensor:
    # safetensors refuses tensors that share memory
    return tensor.detach().to("cpu", copy=True).contiguous()


def _packed(fact: Any, key: str, tensors: dict[str, Tensor]) -> Any:
    """A fact as JSON: whole numbers in the header, where a person or a page reads them, others among the tensors."""
    if isinstance(fact, Tensor) and (fact.is_floating_point() or fact.is_complex()):
        tensors[key] = _own(fact)
        return {"tensor": key}
    if isinstance(fact, Tensor):
        return {"values": fact.tolist(), "shape": list(fact.shape), "dtype": str(fact.dtype).removeprefix("torch.")}
    if isinstance(fact, float) and not math.isfinite(fact):
        return {"float": str(fact)}
    if fact is None or isinstance(fact, str | int | float):
        return fact
    if isinstance(fact, Sequence):
        return [_packed(item, f"{key}.{i}", tensors) for i, item in enumerate(fact)]
    if isinstance(fact, Mapping):
        return {"mapping": {str(name): _packed(item, f"{key}.{name}", tensors) for name, item in fact.items()}}
    raise ModelError(f"{key}: a {type(fact).__name__} cannot be stored; use text, numbers, lists or tensors")


def _unpacked(fact: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(fact, list):
        return [_unpacked(item, tensors) for item in fact]
    if not isinstance(fact, dict):
        return fact
    if "tensor" in fact:
        return tensors[fact["tensor"]]
    if "values" in fact:
        return torch.tensor(fact["values"], dtype=getattr(torch, fact["dtype"])).reshape(fact["shape"])
    if "float" in fact:
        return float(fact["float"])
    return {name: _unpacked(item, tensors) for name, item in fact["mapping"].items()}


def _tokens(records: Sequence[Record], spell: Spell) -> dict[str, dict[str, str]]:
    """How the ids among the labels are spelt, so that no tokenizer is needed any more."""
    found: dict[str, set[int]] = {}
    for record in records:
        for axis, label in record.labels.items():
            whose = side(record, axis)
            if whose is not None and whose in spell:
                found.setdefault(whose, set()).update(_ids(label))
        if record.name == ANSWER and "target" in spell:
            found.setdefault("target", set()).update(_ids(record.data))
    return {whose: {str(i): spell[whose](i) for i in sorted(ids)} for whose, ids in found.items()}


def _ids(label: Any) -> Iterator[int]:
    if isinstance(label, Tensor):
        yield from label.unique().tolist() if not label.is_floating_point() else ()
    elif isinstance(label, int):
        yield label
    elif isinstance(label, Sequence) and not isinstance(label, str):
        for item in label:
            yield from _ids(item)


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".tmp-{path.name}-{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: the trace cannot be written ({error.strerror})") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def read(path: Path) -> tuple[list[Record], dict[str, dict[int, str]]]:
    """The records of a file, and how each side's ids are spelt.

    >>> read(Path("nowhere.safetensors"))
    Traceback (most recent call last):
    regard.errors.InputError: nowhere.safetensors: no such file
    """
    if not path.is_file():
        raise InputError(f"{path}: {'a folder, expected a trace file' if path.is_dir() else 'no such file'}")
    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get("trace")
            if text is None:
                raise ModelError(f"{path}: safetensors without a trace; expected a file that Recording.save wrote")
            tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, RuntimeError) as error:
        raise ModelError(f"{path}: not a trace: it cannot be read as safetensors ({error})") from error
    try:
        return _opened(path, json.loads(text), tensors)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ModelError(f"{path}: the trace's header is damaged ({type(error).__name__}: {error})") from error


def _opened(
    path: Path, header: dict[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[list[Record], dict[str, dict[int, str]]]:
    if header["format"] != FORMAT:
        raise ModelError(f"{path}: expected the format {FORMAT}, found {header['format']!r}; save the trace again")
    scenes = [{name: _unpacked(fact, tensors) for name, fact in facts.items()} for facts in header["scenes"]]
    records = []
    for entry in header["records"]:
        scene = scenes[entry["scene"]]
        labels = {axis: scene[whose] for axis, whose in entry["sides"].items()}
        labels |= {axis: _unpacked(label, tensors) for axis, label in entry["labels"].items()}
        records.append(Record(entry["name"], tuple(entry["axes"]), tensors[entry["tensor"]], labels, scene))
    spelt = {whose: {int(i): token for i, token in table.items()} for whose, table in header["tokens"].items()}
    return records, spelt
