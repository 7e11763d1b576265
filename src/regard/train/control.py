"""Control file of a running training: the trainer reads it after each step.

The file holds one word: `echo save > runs/mine/control` writes a checkpoint after the current step, `stop` writes one
and ends the run. The studio's buttons write the same file. The trainer removes it, which acknowledges the command.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from regard.files import open_regular, write_text_atomically

FILE = "control"
Command = Literal["save", "stop"]
COMMANDS: tuple[Command, ...] = get_args(Command)
RADIX = 4
"""larger than any command's number: ranks exchange a signal and a command as one number, RADIX * signal + command"""


class Control:
    """Reads the control file on the main rank; a command left over from an earlier training is dropped."""

    def __init__(self, run: Path, is_main: bool) -> None:
        self.file, self.is_main = run / FILE, is_main
        self.poll()

    def poll(self) -> int:
        """Number of the pending command, counted from 1; 0 for none. Costs one stat if there is no file."""
        if not self.is_main or not self.file.is_file():
            return 0
        taken = self.file.with_name(f"{FILE}.taken")
        try:
            self.file.replace(taken)  # first: a file written from here on is another command
            word = taken.read_text(encoding="utf-8", errors="replace").strip()
            taken.unlink()
        except OSError:  # a folder that cannot be written
            return 0
        return next((number for number, command in enumerate(COMMANDS, 1) if command == word), 0)


def send_command(run: Path, command: Command) -> None:
    """Send a command to the training in `run`; it replaces one that was not read yet, except "stop"."""
    if pending_command(run) != "stop":
        write_text_atomically(run / FILE, f"{command}\n")


def pending_command(run: Path) -> Command | None:
    """The command that the trainer has not read yet."""
    try:
        with open_regular(run / FILE) as file:
            word = file.read(8).decode(errors="replace").strip()
    except OSError:
        return None
    return next((command for command in COMMANDS if command == word), None)
