"""What somebody else asks of a run while it trains: a file in its directory, for which the trainer looks at each step.

The file holds one word. `echo save > runs/mine/control` writes a checkpoint after the step that is going on, `stop`
writes one and ends the run; the studio's buttons do the same. Whoever trains takes the file away: that is the answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from regard.files import write_text_atomically

FILE = "control"
Request = Literal["save", "stop"]
REQUESTS: tuple[Request, ...] = get_args(Request)
BITS = 4
"""more than any request's number: a signal and a request travel as one number, the signal first"""


class Control:
    """The trainer's end. Only who leads looks, the others are told; what was asked of an earlier training is dropped.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     control = Control(Path(folder), leads=True)
    ...     ask(Path(folder), "stop")
    ...     control.asked(), control.asked()
    (2, 0)
    """

    def __init__(self, run: Path, leads: bool) -> None:
        self.file, self.leads = run / FILE, leads
        self.asked()

    def asked(self) -> int:
        """What is asked now: 0 for nothing, else the number of a request, counted from 1. One stat if nobody asks."""
        if not self.leads or not self.file.is_file():
            return 0
        taken = self.file.with_name(f"{FILE}.taken")
        try:
            self.file.replace(taken)  # first of all: what is asked from here on is another request
            word = taken.read_text(encoding="utf-8", errors="replace").strip()
            taken.unlink()
        except OSError:  # where nobody may write, nobody could have asked
            return 0
        return next((number for number, request in enumerate(REQUESTS, 1) if request == word), 0)


def ask(run: Path, request: Request) -> None:
    """Ask whoever trains in `run`; a later request replaces one that was not seen yet, but none replaces "stop".

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ask(Path(folder), "stop")
    ...     ask(Path(folder), "save")
    ...     pending(Path(folder))
    'stop'
    """
    if pending(run) != "stop":
        write_text_atomically(run / FILE, f"{request}\n")


def pending(run: Path) -> Request | None:
    """What was asked and not answered yet.

    >>> pending(Path("nowhere")) is None
    True
    """
    try:
        with (run / FILE).open(encoding="utf-8", errors="replace") as file:
            word = file.read(8).strip()
    except OSError:
        return None
    return next((request for request in REQUESTS if request == word), None)
