"""The built-in example: a tiny translator, trained once on the built-in phrases, so that the page is never empty."""

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
vocab_size = 3000

[model]
kind = "transformer"
layers = 2
width = 64
ffn_width = 128
heads = 4
dropout = 0.0
norm = "pre"

[task]
bleu_sentences = 0

[train]
steps = 500
validate_every = 500
batch_tokens = 1024
best_metric = "loss"

[train.schedule]
kind = "cosine"
lr = 4e-3
warmup = 50
"""
TEXT = "je suis étudiant"
State = Literal["absent", "training", "ready", "failed"]


class Example:
    """Folder and status of the example; `on_ready` is called after it was trained."""

    def __init__(self, folder: Path, on_ready: Callable[[], None] | None = None, recipe: str = RECIPE) -> None:
        version = hashlib.sha256(f"{regard.__version__}\n{recipe}".encode()).hexdigest()[:8]
        self.path, self.recipe, self.on_ready = folder / f"example-{version}", recipe, on_ready
        self._lock = threading.Lock()
        self._error, self._started = "", 0.0
        self._process: subprocess.Popen[str] | None = None
        self._closed = False

    def ready(self) -> Path | None:
        """The run, if it was trained."""
        return self.path if (self.path / "last").exists() else None

    def status(self) -> dict[str, Any]:
        """State, seconds since the training started, and the error if it failed."""
        is_training = bool(self._started)
        state: State = "training" if is_training else "ready" if self.ready() else "failed" if self._error else "absent"
        seconds = round(time.monotonic() - self._started, 1) if is_training else None
        return {"state": state, "seconds": seconds, "message": self._error or None}

    def train(self) -> None:
        """Start to train it in a thread, unless it is ready or being trained."""
        with self._lock:
            if self._started or self._closed or self.ready():
                return
            self._started, self._error = time.monotonic(), ""
        threading.Thread(target=self._train, daemon=True).start()

    def close(self) -> None:
        """Stop the training."""
        self._closed = True
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(20)

    def _train(self) -> None:
        # in a temporary folder that is renamed at the end: two studios may train at once, and either may be stopped
        folder = self.path.with_name(f"training-{secrets.token_hex(4)}")
        try:
            folder.mkdir(parents=True)
            (folder / "example.toml").write_text(self.recipe, encoding="utf-8")
            self._run_command(folder)
            if not self.ready():
                (folder / "run").replace(self.path)
            if self.on_ready is not None:
                self.on_ready()
        except Exception as error:  # shown by the page
            self._error = f"the example could not be trained: {error}"
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self._started = 0.0

    def _run_command(self, folder: Path) -> None:
        command = [sys.executable, "-m", "regard", "train", str(folder / "example.toml"), "--out", str(folder / "run")]
        self._process = subprocess.Popen(
            [*command, "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8",
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
        _, stderr = self._process.communicate()
        if self._process.returncode:
            raise RuntimeError((stderr or "").strip()[-400:] or f"training ended with {self._process.returncode}")
