"""Statistics of prepared classification data, for `regard data stats`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regard.data import padding_share
from regard.plurals import count_noun
from regard.tasks.base import read_counts
from regard.tasks.classify.images import ImageInput
from regard.tasks.classify.inputs import COLUMN, TableInput, TextInput
from regard.tasks.classify.labels import Labels, shorten
from regard.tasks.classify.loader import ExampleLoader


def statistics(run: Path, loader: ExampleLoader) -> dict[str, Any]:
    """Vocabulary or columns, and per split the examples, lengths, batches and labels, as plain JSON."""
    labels, counts, encoder = Labels.load(run), read_counts(run), loader.input_encoder
    found: dict[str, Any] = {"unit": encoder.unit}
    if isinstance(encoder, TextInput):
        found["vocabulary"] = {"kind": encoder.kind, "size": encoder.tokenizer.size}
        if encoder.vectors is not None:
            found["vectors"] = vars(encoder.vectors)
    if isinstance(encoder, ImageInput):
        found["images"] = vars(encoder.shape)
    if isinstance(encoder, TableInput | ImageInput):
        columns = zip(encoder.scaler.names, encoder.scaler.mean, encoder.scaler.scale, strict=True)
        found["columns"] = {name: {"mean": mean, "deviation": deviation} for name, mean, deviation in columns}
    for split, shards in (("train", loader.train), ("valid", loader.valid)):
        batches = list(loader.plan(shards).epoch(0))
        found[split] = {**counts[split], "kept": len(shards), "batches": len(batches)}
        if isinstance(encoder, TextInput):
            found[split] |= shards.length_statistics(COLUMN)
            found[split]["padding"] = padding_share(encoder.lengths(shards), batches)
        per_label = np.bincount(shards.flat("label"), minlength=len(labels.names)).tolist()
        found[split]["labels"] = dict(zip(labels.names, per_label, strict=True))
    return found


def image_warnings(run: Path, loader: ExampleLoader) -> list[str]:
    """Animated images, of which one frame is read, and labels that validation does not measure."""
    found = []
    if animated := sum(counts.get("animated", 0) for counts in read_counts(run).values()):
        found.append(f"{count_noun(animated, 'image')} with several frames: the first was read")
    names = Labels.load(run).names
    train_C, valid_C = (
        np.bincount(shards.flat("label"), minlength=len(names)) for shards in (loader.train, loader.valid)
    )
    missing = [f"{shorten(name)} ({train_C[i]} to train on)" for i, name in enumerate(names) if not valid_C[i]]
    if missing:
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        found.append(f"no image to validate on has the label {', '.join(missing[:5])}{more}; add images")
    return found


def format_statistics(found: Mapping[str, Any], max_length: int) -> list[str]:
    """The statistics as lines of text."""
    table = "columns" in found
    lines = _table_lines(found) if table else _text_lines(found, max_length)
    shares = found["train"]["labels"]
    frequent = sorted(shares.items(), key=lambda item: -item[1])[:10]
    each = ", ".join(f"{name} {100 * count / found['train']['kept']:.1f} %" for name, count in frequent)
    rest = ", ..." if len(shares) > len(frequent) else ""
    return [*lines, f"labels      {len(shares)}; of {found['train']['kept']:,} training {found['unit']} {each}{rest}"]


def _table_lines(found: Mapping[str, Any]) -> list[str]:
    lines = [
        f"column      {name}: mean {column['mean']:.4g}, deviation {column['deviation']:.4g}"
        for name, column in found["columns"].items()
    ]
    return lines + [
        f"{split:<10}  {found[split]['kept']:,} {found['unit']} in {found[split]['batches']:,} batches"
        + (f", {animated:,} with several frames" if (animated := found[split].get("animated")) else "")
        for split in ("train", "valid")
    ]


def _text_lines(found: Mapping[str, Any], max_length: int) -> list[str]:
    vocabulary, vectors = found["vocabulary"], found.get("vectors")
    lines = [f"vocabulary  {vocabulary['kind']} {vocabulary['size']:,}"]
    if vectors:
        share = 100 * vectors["found"] / vectors["words"]
        lines.append(f"vectors     of width {vectors['width']}, for {vectors['found']:,} words ({share:.1f} %)")
    for split in ("train", "valid"):
        row = found[split]
        dropped = f"{row['empty']:,} empty" if row["empty"] else "none"
        truncated = f", {row['cut']:,} cut to {max_length} tokens" if row["cut"] else ""
        lines.append(f"{split:<10}  {row['kept']:,} of {row['read']:,} {found['unit']}; dropped: {dropped}{truncated}")
        lines.append(
            f"  tokens    {row['tokens']:,}, {row['mean']} per {found['unit'][:-1]}, 99 % have at most {row['p99']}, "
            f"the longest {row['most']}; padding {100 * row['padding']:.1f} % of {row['batches']:,} batches"
        )
    return lines
