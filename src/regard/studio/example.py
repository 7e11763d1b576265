"""The built-in example: a tiny translator, trained once on the built-in phrases, so that the page is alive at once."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import regard

RECIPE = """# The studio's built-in example, trained when the page is first opened: regard train example.toml
[data]
kind = "phrases"
count = 6000

[text]
kind = "word"
size = 3000

[model]
kind = "transformer"
layers = 2
width = 64
inner = 128
heads = 4
dropout = 0.0
norm = "pre"

[task]
scored = 0

[train]
steps = 500
every = 500
tokens = 1024
select = "loss"

[train.schedule]
kind = "cosine"
lr = 4e-3
warmup = 50
"""
TEXT = "je suis étudiant"
State = Literal["absent", "making", "ready", "failed"]


class Example:
    """The example's folder, and how far it is. `then` is called with it when it is there.

    >>> import tempfile
    >>> Example(Path(tempfile.gettempdir()) / "nowhere").table()["state"]
    'absent'
    """

    def __init__(self, folder: Path, then: Callable[[], None] | None = None, recipe: str = RECIPE) -> None:
        version = hashlib.sha256(f"{regard.__version__}\n{recipe}".encode()).hexdigest()[:8]
        self.path, self.recipe, self.then = folder / f"example-{version}", recipe, then
        self._lock = threading.Lock()
        self._failed, self._began, self._process = "", 0.0, None  # type: tuple[str, float, subprocess.Popen[str] | None]
        self._closed = False

    def ready(self) -> Path | None:
        """The run, if it was made."""
        return self.path if (self.path / "last").exists() else None

    def table(self) -> dict[str, Any]:
        """How far it is."""
        state: State = "making" if self._began else "ready" if self.ready() else "failed" if self._failed else "absent"
        seconds = round(time.monotonic() - self._began, 1) if state == "making" else None
        return {"state": state, "seconds": seconds, "message": self._failed or None}

    def make(self) -> None:
        """Begin to make it, unless it is there or on its way."""
        with self._lock:
            if self._began or self._closed or self.ready():
                return
            self._began, self._failed = time.monotonic(), ""
        threading.Thread(target=self._make, daemon=True).start()

    def close(self) -> None:
        """Stop making it."""
        self._closed = True
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(20)

    def _make(self) -> None:
        # beside its place and renamed when whole: two studios may do this at once, and either may be stopped
        making = self.path.with_name(f"making-{secrets.token_hex(4)}")
        try:
            making.mkdir(parents=True)
            (making / "example.toml").write_text(self.recipe, encoding="utf-8")
            self._train(making)
            if not self.ready():
                (making / "run").replace(self.path)
            if self.then is not None:
                self.then()
        except Exception as error:  # whatever it is, the page says it
            self._failed = f"the example could not be made: {error}"
        finally:
            shutil.rmtree(making, ignore_errors=True)
            self._began = 0.0

    def _train(self, making: Path) -> None:
        command = [sys.executable, "-m", "regard", "train", str(making / "example.toml"), "--out", str(making / "run")]
        self._process = subprocess.Popen(
            [*command, "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8",
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
        _, told = self._process.communicate()
        if self._process.returncode:
            raise RuntimeError((told or "").strip()[-400:] or f"training ended with {self._process.returncode}")
