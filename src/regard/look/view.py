"""View: base class of the views, plain data that draws itself as SVG, in a terminal, in a notebook and as JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from regard.look import svg, terminal
from regard.look.matrix import Matrix
from regard.look.terminal import ColorDepth


class View(ABC):
    """One drawing as plain data; `regard.look` has a subclass per kind."""

    @abstractmethod
    def svg(self) -> str:
        """The drawing as one self-contained SVG text."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""

    def text(self) -> str:
        """The drawing in characters; a summary where there is none."""
        return repr(self)

    def _fields(self, *names: str) -> dict[str, Any]:
        """Attributes as plain data, in this order."""
        return {name: _plain(getattr(self, name)) for name in names}

    def _repr_html_(self) -> str:
        return self.svg()


class MatrixView(View):
    """A view that is drawn as a heat map."""

    @property
    @abstractmethod
    def matrix(self) -> Matrix:
        """The heat map with its labels and its color scale."""

    def svg(self) -> str:
        """The heat map as one self-contained SVG text."""
        return svg.heat_map(self.matrix)

    def text(self, width: int | None = None, color: ColorDepth | None = None) -> str:
        """The heat map in characters; width and color depth are those of the terminal by default."""
        return terminal.heat_map(self.matrix, width, color)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.matrix.numbers.shape))
        return f"{type(self).__name__}({self.matrix.title!r}, {shape})"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, list | tuple) else value
