"""Statistics of a prepared time series, for `regard data stats`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.tasks.forecast.loader import WindowLoader
from regard.tasks.forecast.prepare import SeriesStats

Counts = Mapping[str, Mapping[str, int]]


def statistics(series: SeriesStats, loader: WindowLoader, counts: Counts) -> dict[str, Any]:
    """Columns, frequency, season, rows per split and windows per epoch, as plain JSON."""
    windows = {"windows": len(loader.train), "rows": loader.rows, "batches": loader.batches_per_epoch()}
    return {
        "columns": list(series.names),
        "covariates": list(series.covariate_scaler.names),
        "constant": [name for i, name in enumerate(series.names) if i not in series.varying],
        "frequency": str(series.index.frequency),
        "season": series.season,
        **counts,
        "epoch": windows,
    }


def format_statistics(statistics: Mapping[str, Any]) -> list[str]:
    """The statistics as lines of text."""
    epoch, lines = statistics["epoch"], [f"columns     {', '.join(statistics['columns'])}"]
    for name in ("covariates", "constant"):
        lines += [f"{name:<10}  {', '.join(statistics[name])}"] if statistics[name] else []
    lines += [f"frequency   {statistics['frequency']}, a season is {statistics['season']} rows"]
    for split in ("train", "valid"):
        counts = statistics[split]
        filled = f", {counts['filled']:,} empty cells filled" if counts["filled"] else ""
        lines.append(f"{split:<10}  {counts['rows']:,} rows{filled}")
    batches = f"{epoch['batches']:,} batches of {epoch['rows']}"
    return [*lines, f"epoch       {epoch['windows']:,} windows in {batches}"]
