"""What a command's exit code says; the same as Jepsen's, with the shell's own for an interrupt.

click would use 2 for a usage error, which is taken: it means that a verdict could not be reached.
"""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command."""

    AS_EXPECTED = 0  #: every verdict as expected, or the command did what it was asked
    NOT_AS_EXPECTED = 1  #: a verdict is not as expected, or something that was asked about is not there
    UNKNOWN = 2  #: a verdict could not be reached
    INTERRUPTED = 130  #: Ctrl-C or SIGTERM; a run's traces are kept, and not analysed
    USAGE = 254  #: wrong arguments, settings or surroundings: the message says what to change
    INTERNAL = 255  #: an internal error, or a server that did not answer
