"""Unexpected exceptions in a broker: bugs of ours.

One policy: the smallest thing whose state can no longer be trusted stops, its traceback is logged, and every client
that waits for it gets an error. docs/architecture.md, "Internal errors", lists what stops when.
"""

from __future__ import annotations

import logging

from kernel.broker.storage.errors import LogStopped

log = logging.getLogger(__name__)


def log_stopped(what: str, bug: BaseException) -> LogStopped:
    """Log that `what` stops, with the traceback, and return the error for those who wait for it."""
    log.critical("%s has stopped because of a bug in this program:", what, exc_info=bug)
    return LogStopped(
        f"{what} has stopped because of a bug in this program ({type(bug).__name__}: {bug}). The broker's log"
        " has the traceback. Nothing acknowledged is lost: restart the broker."
    )
