"""Trace file: records in one .safetensors file, readable without the model (format trace/3).

The header is JSON in the file's metadata under "trace": {"format": "trace/3", "records": [...], "contexts": [...],
"tokens": {...}}. A record has name, tensor (its key in the file), axes, sides (axis -> fact of the context that labels
it), labels (labels that are not in the context) and the number of its context; "tokens" maps ids to tokens.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from regard.errors import InputError, ModelError
from regard.files import write_bytes_atomically
from regard.look import candidates, lens
from regard.look.decoding_path import ANSWER, IdToToken, axis_side
from regard.trace import Record

FORMAT = "trace/3"


def write(path: Path, records: Sequence[Record], id_to_token: IdToToken) -> None:
    """Write records to a file, atomically."""
    tensors: dict[str, Tensor] = {}
    numbers: dict[int, int] = {}
    contexts: list[Any] = []
    entries, counts, seen = [], Counter(r.name for r in records), Counter[str]()
    for record in records:
        key = record.name if counts[record.name] == 1 else f"{record.name}/{seen[record.name]}"
        seen[record.name] += 1
        tensors[key] = _copy(record.data)
        if id(record.context) not in numbers:
            numbers[id(record.context)] = len(contexts)
            where = f"context.{len(contexts)}"
            contexts.append({name: _pack(fact, f"{where}.{name}", tensors) for name, fact in record.context.items()})
        sides = {axis: side for axis in record.labels if (side := axis_side(record, axis))}
        labels = {a: _pack(words, f"{key}.{a}", tensors) for a, words in record.labels.items() if a not in sides}
        entries.append(
            {"name": record.name, "tensor": key, "axes": list(record.axes), "sides": sides, "labels": labels,
             "context": numbers[id(record.context)]}
        )  # fmt: skip
    header = {"format": FORMAT, "records": entries, "contexts": contexts, "tokens": _tokens(records, id_to_token)}
    write_bytes_atomically(path, save(tensors, {"trace": json.dumps(header, allow_nan=False)}))


def _copy(tensor: Tensor) -> Tensor:
    # safetensors refuses tensors that share memory
    return tensor.detach().to("cpu", copy=True).contiguous()


def _pack(fact: Any, key: str, tensors: dict[str, Tensor]) -> Any:
    """A fact as JSON: integers in the header, where they are readable, other tensors among the tensors."""
    if isinstance(fact, Tensor) and (fact.is_floating_point() or fact.is_complex()):
        tensors[key] = _copy(fact)
        return {"tensor": key}
    if isinstance(fact, Tensor):
        return {"values": fact.tolist(), "shape": list(fact.shape), "dtype": str(fact.dtype).removeprefix("torch.")}
    if isinstance(fact, float) and not math.isfinite(fact):
        return {"float": str(fact)}
    if fact is None or isinstance(fact, str | int | float):
        return fact
    if isinstance(fact, Sequence):
        return [_pack(item, f"{key}.{i}", tensors) for i, item in enumerate(fact)]
    if isinstance(fact, Mapping):
        return {"mapping": {str(name): _pack(item, f"{key}.{name}", tensors) for name, item in fact.items()}}
    raise ModelError(f"{key}: a {type(fact).__name__} cannot be stored; use text, numbers, lists or tensors")


def _unpack(fact: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(fact, list):
        return [_unpack(item, tensors) for item in fact]
    if not isinstance(fact, dict):
        return fact
    if "tensor" in fact:
        return tensors[fact["tensor"]]
    if "values" in fact:
        return torch.tensor(fact["values"], dtype=getattr(torch, fact["dtype"])).reshape(fact["shape"])
    if "float" in fact:
        return float(fact["float"])
    return {name: _unpack(item, tensors) for name, item in fact["mapping"].items()}


def _names(fact: Any) -> Any:
    """Names along an axis, such as those of gates, are a tuple, which JSON lacks; tokens are lists of rows."""
    return tuple(fact) if isinstance(fact, list) and fact and all(isinstance(item, str) for item in fact) else fact


def _tokens(records: Sequence[Record], id_to_token: IdToToken) -> dict[str, dict[str, str]]:
    """Tokens of the ids among the labels, so that no tokenizer is needed."""
    found: dict[str, set[int]] = {}
    for record in records:
        for axis, label in record.labels.items():
            side = axis_side(record, axis)
            if side is not None and side in id_to_token:
                found.setdefault(side, set()).update(_ids(label))
        if record.name == ANSWER and "target" in id_to_token:
            found.setdefault("target", set()).update(_ids(record.data))
        side = record.context.get("vocabulary", "target")
        if side in id_to_token and record.name in (lens.IDS, candidates.LOGITS):
            shown = record.data if record.name == lens.IDS else _candidate_ids(record)
            found.setdefault(side, set()).update(_ids(shown))
    return {side: {str(i): id_to_token[side](i) for i in sorted(ids)} for side, ids in found.items()}


def _candidate_ids(record: Record) -> Tensor:
    """Ids that a view of recorded logits shows; those over labels are no ids of tokens."""
    return candidates.top_ids(record.data) if record.axes[-1] == "vocabulary" else torch.zeros(0, dtype=torch.long)


def _ids(label: Any) -> Iterator[int]:
    if isinstance(label, Tensor):
        yield from label.unique().tolist() if not label.is_floating_point() else ()
    elif isinstance(label, int):
        yield label
    elif isinstance(label, Sequence) and not isinstance(label, str):
        for item in label:
            yield from _ids(item)


def read(path: Path) -> tuple[list[Record], dict[str, dict[int, str]]]:
    """The records of a file, and the tokens of each side's ids."""
    if not path.is_file():
        raise InputError(f"{path}: {'a folder, expected a trace file' if path.is_dir() else 'no such file'}")
    try:
        with safe_open(path, framework="pt") as file:
            text = (file.metadata() or {}).get("trace")
            if text is None:
                raise ModelError(f"{path}: safetensors without a trace; expected a file written by Recording.save")
            tensors = {key: file.get_tensor(key).clone() for key in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, RuntimeError) as error:
        raise ModelError(f"{path}: not a trace: it cannot be read as safetensors ({error})") from error
    try:
        return _parse(path, json.loads(text), tensors)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ModelError(f"{path}: the trace's header is damaged ({type(error).__name__}: {error})") from error


def _parse(
    path: Path, header: dict[str, Any], tensors: Mapping[str, Tensor]
) -> tuple[list[Record], dict[str, dict[int, str]]]:
    if header["format"] != FORMAT:
        raise ModelError(f"{path}: expected the format {FORMAT}, found {header['format']!r}; save the trace again")
    sides = {side for entry in header["records"] for side in entry["sides"].values()}
    contexts = [{name: _unpack(fact, tensors) for name, fact in facts.items()} for facts in header["contexts"]]
    contexts = [{name: _names(f) if name in sides else f for name, f in facts.items()} for facts in contexts]
    records = []
    for entry in header["records"]:
        context = contexts[entry["context"]]
        labels = {axis: context[side] for axis, side in entry["sides"].items()}
        labels |= {axis: _names(_unpack(label, tensors)) for axis, label in entry["labels"].items()}
        records.append(Record(entry["name"], tuple(entry["axes"]), tensors[entry["tensor"]], labels, context))
    tokens = {side: {int(i): token for i, token in table.items()} for side, table in header["tokens"].items()}
    return records, tokens
