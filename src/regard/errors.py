"""What can go wrong through no fault of the program: each kind knows the exit code the command line ends with.

An error says where, what was expected, what was found and what to do, in one or two sentences.
"""

from __future__ import annotations


class RegardError(Exception):
    """Something a person can mend; the command line prints it without a traceback.

    >>> raise ConfigError("train.steps: expected a whole number, got 'many'")
    Traceback (most recent call last):
    regard.errors.ConfigError: train.steps: expected a whole number, got 'many'
    """

    exit_code = 1


class ConfigError(RegardError):
    """A recipe, a setting or a flag is wrong.

    >>> ConfigError.exit_code
    2
    """

    exit_code = 2


class ModelError(RegardError):
    """A model, a run or a checkpoint cannot be used.

    >>> ModelError.exit_code
    3
    """

    exit_code = 3


class DataError(RegardError):
    """Data was read, and is not usable.

    >>> DataError.exit_code
    4
    """

    exit_code = 4


class Diverged(RegardError):
    """The loss or a gradient is not a number any more.

    >>> Diverged.exit_code
    5
    """

    exit_code = 5


class ThresholdMissed(RegardError):
    """A score that was asked for was not reached.

    >>> ThresholdMissed.exit_code
    6
    """

    exit_code = 6


class InputError(RegardError):
    """A file or folder to read from cannot be opened.

    >>> InputError.exit_code
    66
    """

    exit_code = 66


class NetworkError(RegardError):
    """A registry was not reached, or what it sent is not what was asked for.

    >>> NetworkError.exit_code
    69
    """

    exit_code = 69


class OutputError(RegardError):
    """Something cannot be written: the disk is full, or permission is missing.

    >>> OutputError.exit_code
    74
    """

    exit_code = 74


class Interrupted(RegardError):
    """Ctrl-C; what had to be kept was written.

    >>> Interrupted.exit_code
    130
    """

    exit_code = 130


class Terminated(RegardError):
    """SIGTERM; what had to be kept was written.

    >>> Terminated.exit_code
    143
    """

    exit_code = 143
