"""What becomes of our own mistakes in a broker: whatever is raised that nobody raises on purpose.

One policy: the smallest thing whose state can no longer be trusted stops, the traceback is logged, and everybody who
waits for it is answered with an error. docs/architecture.md, "Our own mistakes", lists what stops when.
"""

from __future__ import annotations

import logging

from kernel.broker.storage.errors import LogStopped

log = logging.getLogger(__name__)


def stopped(what: str, mistake: BaseException) -> LogStopped:
    """Log that `what` stops, with the traceback; the error that answers whoever waits for it."""
    log.critical("%s has stopped because of a bug in this program:", what, exc_info=mistake)
    return LogStopped(
        f"{what} has stopped because of a bug in this program ({type(mistake).__name__}: {mistake}). The broker's log"
        " has the traceback. Nothing acknowledged is lost: restart the broker."
    )
