"""Views of images in a model: filters, feature maps, batch normalization, patches, and similarity of positions."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from regard.errors import ConfigError, ModelError
from regard.look.color_scales import ColorScale, DivergingScale, LinearScale
from regard.look.image_overlay import FRAME, FRAMES, IMAGE, find_image, image_pixels, is_of_frames
from regard.look.matrix import Matrix
from regard.look.tiles import ColorTile, NumberTile, Tile, TileGrid, TilesView
from regard.look.view import MatrixView
from regard.trace import Record

MAP_AXES = ("batch", "channel", "row", "column")
DEFAULT_MAPS, DEFAULT_CLIP_MAPS = 16, 6
"""feature maps that are shown by default, of an image and of the frames of a clip"""
STATISTICS = ("running_mean", "running_variance", "batch_mean", "batch_variance")
"""last parts of the names of a batch normalization's records"""
NOT_AN_IMAGE = "this model read no image"


@dataclass(frozen=True, eq=False, repr=False)
class FiltersView(TilesView):
    """The filters of the first layer, in colors if they read three channels.

    >>> view = FiltersView("encoder.stem.conv.filters", np.ones((4, 3, 5, 5)))
    >>> view.grid.title, view.grid.note
    ('encoder.stem.conv.filters, 4 filters of 5 x 5', 'gray is 0, black -1.0000 and white +1.0000 in all channels')
    """

    name: str
    filters: np.ndarray
    """(filters, channels, rows, columns): weights"""

    @property
    def grid(self) -> TileGrid:
        count, channels, rows, columns = self.filters.shape
        top = float(np.abs(self.filters).max()) or 1.0
        title = f"{self.name}, {count} filters of {rows} x {columns}"
        if channels == 3:
            colors = np.rint(127.5 + 127.5 * self.filters.transpose(0, 2, 3, 1) / top).astype(np.uint8)
            tiles: tuple[Tile, ...] = tuple(ColorTile(str(i), pixels) for i, pixels in enumerate(colors))
            note = f"gray is 0, black -{top:.4f} and white +{top:.4f} in all channels"
            return TileGrid(title, tiles, note=note, side=48)
        scale = DivergingScale(top)
        planes = self.filters.reshape(count, channels * rows, columns)
        return TileGrid(title, tuple(NumberTile(str(i), plane, scale) for i, plane in enumerate(planes)), side=48)

    def to_dict(self) -> dict[str, Any]:
        return self._fields("name", "filters")


@dataclass(frozen=True, eq=False, repr=False)
class MapsView(TilesView):
    """Feature maps of one layer on one color scale; of a clip a row of tiles per map, a tile per frame."""

    name: str
    """of the record, such as "encoder.stages.0.feature_map\""""
    maps: np.ndarray
    """(maps, rows, columns); of a clip (maps, frames, rows, columns)"""
    channels: list[int]
    """numbers of the maps"""
    count: int
    """number of maps of the layer"""
    layer: int
    """number among the layers of the same kind, from 0"""
    layers: int
    """number of layers of the same kind"""
    max_abs: float
    """largest absolute value of all maps of the layer"""

    @property
    def scale(self) -> ColorScale:
        """Linear from 0 after a ReLU, with 0 in the middle elsewhere."""
        return DivergingScale(self.max_abs) if (self.maps < 0).any() else LinearScale(self.max_abs)

    @property
    def grid(self) -> TileGrid:
        title = f"{self.name} (layer {self.layer} of 0 to {self.layers - 1}), {len(self.maps)} of {self.count} maps"
        scale = self.scale
        if self.maps.ndim == 3:
            tiles = tuple(NumberTile(str(channel), plane, scale) for channel, plane in zip(self.channels, self.maps))
            return TileGrid(title, tiles)
        tiles = tuple(
            NumberTile(f"{channel}, frame {i + 1}", plane, scale)
            for channel, frames in zip(self.channels, self.maps)
            for i, plane in enumerate(frames)
        )
        return TileGrid(title, tiles, self.maps.shape[1], is_spatial=True, side=88)

    def to_dict(self) -> dict[str, Any]:
        return self._fields("name", "layer", "layers", "channels", "count", "maps")


@dataclass(frozen=True, eq=False, repr=False)
class BatchNormView(MatrixView):
    """Statistics of one batch normalization: those it keeps from training, beside those of the recorded batch."""

    name: str
    """of the layer"""
    statistics: dict[str, np.ndarray]
    """running_mean, running_variance, batch_mean, batch_variance: one number per channel"""
    channels: list[int]
    """channels that are drawn"""
    layer: int
    layers: int

    @property
    def matrix(self) -> Matrix:
        """Means and standard deviations, a column per channel."""
        rows = ("running mean", "batch mean", "running deviation", "batch deviation")
        means = [self.statistics[name][self.channels] for name in ("running_mean", "batch_mean")]
        deviations = [np.sqrt(self.statistics[name][self.channels]) for name in ("running_variance", "batch_variance")]
        numbers = np.stack([*means, *deviations])
        width = len(self.statistics["running_mean"])
        title = (
            f"{self.name}, batch normalization {self.layer} of 0 to {self.layers - 1}, {len(self.channels)} of {width} "
            "channels"
        )
        return Matrix(
            numbers, rows, tuple(map(str, self.channels)), title, "statistic", "channel",
            color_scale=DivergingScale(float(np.abs(numbers).max(initial=0))), summary_words=("numbers", "is highest"),
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        numbers = {name: values.tolist() for name, values in self.statistics.items()}
        return self._fields("name", "layer", "layers", "channels") | numbers


@dataclass(frozen=True, eq=False, repr=False)
class PatchesView(TilesView):
    """The patches of a Vision Transformer, in their places."""

    name: str
    pixels: np.ndarray
    """(patch rows, patch columns, rows, columns, 3): colors from 0 to 255"""

    @property
    def grid(self) -> TileGrid:
        down, across, rows, columns, _ = self.pixels.shape
        tiles = tuple(ColorTile("", pixels) for row in self.pixels for pixels in row)
        title = f"{self.name}: {down} x {across} patches of {rows} x {columns} pixels"
        return TileGrid(title, tiles, across, is_spatial=True, side=max(12.0, min(48.0, 420 / across)))

    def to_dict(self) -> dict[str, Any]:
        return self._fields("name", "pixels")


@dataclass(frozen=True, eq=False, repr=False)
class PositionSimilarityView(TilesView):
    """Cosine similarity of position embeddings: a tile per patch, with its similarity to every patch.

    As figure 7 (center) of Dosovitskiy et al. 2021.
    """

    name: str
    similarity: np.ndarray
    """(patch rows, patch columns, patch rows, patch columns)"""

    MOST_ACROSS = 16

    @property
    def grid(self) -> TileGrid:
        rows, columns = self.similarity.shape[:2]
        step = -(-max(rows, columns) // self.MOST_ACROSS)
        shown = self.similarity[::step, ::step]
        scale = DivergingScale(1.0)
        tiles = tuple(NumberTile("", tile, scale) for row in shown for tile in row)
        note = "a tile per patch, in its place: cosine similarity of its position embedding with that of every patch"
        note += f"; every {step}th row and column of patches" if step > 1 else ""
        side = max(24.0, min(64.0, 480 / shown.shape[1]))
        return TileGrid(f"{self.name}, similarity", tiles, shown.shape[1], is_spatial=True, note=note, side=side)

    def to_dict(self) -> dict[str, Any]:
        return self._fields("name", "similarity")


def is_map(record: Record) -> bool:
    """Whether a record holds an image or feature maps."""
    return tuple(axis for axis in record.axes if axis != FRAME) == MAP_AXES


def filters_view(records: Sequence[Record]) -> FiltersView:
    """The view behind Recording.filters()."""
    found = next((record for record in records if record.name.rpartition(".")[2] == "filters"), None)
    if found is None:
        raise ModelError(f"no filters were recorded: {NOT_AN_IMAGE}")
    numbers = found.data.detach().cpu().float().numpy()
    return FiltersView(found.name, numbers[0] if numbers.ndim == 5 else numbers)  # condensed: with a batch axis


def maps_view(
    records: Sequence[Record], name: str | None, layer: int | None, channels: Sequence[int] | None, row: int
) -> MapsView:
    """The view behind Recording.maps()."""
    found = {r.name: r for r in records if is_map(r) and r.name.rpartition(".")[2] != IMAGE}
    if not found:
        raise ModelError(f"no feature maps were recorded; {_reason(records)}")
    names = _match_names(found, "feature_map" if name is None else name, "feature map")
    at = _choose_layer(names, layer)
    record = found[names[at]]
    data = record.data.detach().cpu().float()
    data = data.unflatten(0, (-1, int(record.context[FRAMES]))) if is_of_frames(record) else data
    if not 0 <= row < len(data):
        raise ConfigError(f"row: {len(data)} images were recorded, 0 to {len(data) - 1}, got {row}")
    maps = data[row].numpy()
    maps = maps if maps.ndim == 3 else maps.swapaxes(0, 1)
    chosen = _most_variable(maps) if channels is None else _check_channels(channels, len(maps), names[at])
    return MapsView(names[at], maps[chosen], chosen, len(maps), at, len(names), float(np.abs(maps).max(initial=0)))


def batch_norm_view(
    records: Sequence[Record], name: str | None, layer: int | None, channels: Sequence[int] | None
) -> BatchNormView:
    """The view behind Recording.batch_norm()."""
    kinds = [(r, *r.name.rpartition(".")[::2]) for r in records]
    found: dict[str, dict[str, np.ndarray]] = {}
    for record, base, kind in kinds:
        if kind in STATISTICS:
            found.setdefault(base, {})[kind] = record.data.detach().cpu().double().reshape(-1).numpy()
    if not found:
        raise ModelError("no batch normalization was recorded; this model has none")
    names = _match_names(found, name, "batch normalization")
    at = _choose_layer(names, layer)
    statistics = found[names[at]]
    width = len(statistics["running_mean"])
    if channels is None:
        difference = np.abs(statistics["batch_mean"] - statistics["running_mean"])
        spread = difference / np.sqrt(statistics["running_variance"] + 1e-5)
        chosen = sorted(np.argsort(-spread, kind="stable")[:DEFAULT_MAPS].tolist())
    else:
        chosen = _check_channels(channels, width, names[at])
    return BatchNormView(names[at], statistics, chosen, at, len(names))


def patches_view(records: Sequence[Record], row: int) -> PatchesView:
    """The view behind Recording.patches()."""
    record, image = find_patches(records), find_image(records)
    if image is None:
        raise ModelError(NOT_AN_IMAGE)
    down, across, _, rows, columns = record.data.shape[1:]
    pixels = image_pixels(image, row).reshape(down, rows, across, columns, 3).transpose(0, 2, 1, 3, 4)
    return PatchesView(record.name, pixels)


def position_similarity_view(records: Sequence[Record]) -> PositionSimilarityView:
    """The view behind Recording.position_similarity()."""
    return PositionSimilarityView(_find_positions(records).name, position_similarity(records).numpy())


def position_similarity(records: Sequence[Record]) -> Tensor:
    """(rows, columns, rows, columns): cosines of the position embeddings, by torch operations."""
    down, across = find_patches(records).data.shape[1:3]
    vectors = _find_positions(records).data[0, -down * across :].detach().cpu().double()  # without [CLS]
    units = F.normalize(vectors, dim=1)
    return (units @ units.t()).reshape(down, across, down, across)


def _find_positions(records: Sequence[Record]) -> Record:
    """The record of a Vision Transformer's position embeddings."""
    base = find_patches(records).name.removesuffix("patches")
    position = next((record for record in records if record.name == f"{base}position"), None)
    if position is None:
        raise ModelError("no position embeddings were recorded")
    return position


def find_patches(records: Sequence[Record]) -> Record:
    """The record of the patches of a Vision Transformer."""
    found = next((record for record in records if record.name.rpartition(".")[2] == "patches"), None)
    if found is None:
        raise ModelError(f"no patches were recorded; {_reason(records)}")
    return found


def _reason(records: Sequence[Record]) -> str:
    if find_image(records) is None:
        return NOT_AN_IMAGE
    return "a Vision Transformer (vit) has patches, a convolutional network (cnn, alexnet, resnet) feature maps"


def _match_names(found: dict[str, Any], pattern: str | None, what: str) -> list[str]:
    """Names that match a pattern, or whose last part is the pattern, in the order of computation."""
    if pattern is None:
        return list(found)
    names = [n for n in found if fnmatch.fnmatchcase(n, pattern) or n.rpartition(".")[2] == pattern]
    if not names:
        known = ", ".join(list(found)[:24]) + (", ..." if len(found) > 24 else "")
        raise ConfigError(f"name: no {what} is called {pattern!r}; there are {known}")
    return names


def _choose_layer(names: Sequence[str], layer: int | None) -> int:
    """Index of a layer among those of a kind: by default the first; -1 is the last."""
    layer = 0 if layer is None else len(names) - 1 if layer == -1 else layer
    if not 0 <= layer < len(names):
        numbers = ", ".join(f"{i} {name}" for i, name in enumerate(names[:24])) + (", ..." if len(names) > 24 else "")
        raise ConfigError(f"layer: there is no layer {layer}; there are {numbers}")
    return layer


def _most_variable(maps: np.ndarray) -> list[int]:
    """The maps whose values vary most, in the order of their numbers."""
    spread, most = maps.reshape(len(maps), -1).std(1), DEFAULT_MAPS if maps.ndim == 3 else DEFAULT_CLIP_MAPS
    return sorted(np.argsort(-spread, kind="stable")[:most].tolist())


def _check_channels(channels: Sequence[int], width: int, name: str) -> list[int]:
    wrong = [channel for channel in channels if not 0 <= channel < width]
    if wrong or not channels:
        raise ConfigError(f"unit: {name} has the channels 0 to {width - 1}, got {wrong[0] if wrong else 'none'}")
    return list(channels)
