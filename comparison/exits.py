"""Exit codes of the commands: Jepsen's, and the shell's for an interrupt.

click's code for a usage error, 2, means an unknown verdict here.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command."""

    AS_EXPECTED = 0  #: every verdict is as expected, or the command succeeded
    #: A verdict is not as expected, something is worse than `diff` allows, or what a status command asks about is not
    #: running.
    NOT_AS_EXPECTED = 1
    UNKNOWN = 2  #: a verdict could not be reached
    #: Ctrl-C or SIGTERM; a run's traces are kept but not analysed. What runs until then ends with 0 if it was at work.
    INTERRUPTED = 130
    USAGE = 254  #: wrong arguments, settings or environment: the message says what to change
    INTERNAL = 255  #: an internal error, or a server that did not answer
