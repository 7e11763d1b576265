"""The built-in example: a small trained translator that the package contains, so that the page is never empty."""

from __future__ import annotations

import hashlib
from importlib.resources import as_file, files
from pathlib import Path

import regard
from regard.errors import OutputError
from regard.exchange.pack import unpack_run

PACK = files("regard.studio") / "example.regard"
"""trained and packed by docs/example.py, by the recipe example.toml"""
TEXT = "je suis étudiant"


class Example:
    """The example as a run in the cache `folder`; each version of it has a folder of its own."""

    def __init__(self, folder: Path) -> None:
        digest = hashlib.sha256(regard.__version__.encode() + PACK.read_bytes()).hexdigest()
        self.path = folder / f"example-{digest[:8]}"

    def ready(self) -> Path | None:
        """The run; None before it is extracted."""
        return self.path if self.path.is_dir() else None

    def extract(self) -> None:
        """Extract the run from the package, unless that was done before."""
        try:
            if self.ready() is None:
                with as_file(PACK) as pack:
                    unpack_run(pack, self.path)
        except OutputError:
            if self.ready() is None:  # otherwise another studio was faster
                raise
