"""What ZooKeeper refuses or loses, in our own words; kazoo's exceptions end in `requests.py`.

`str(type(error).__name__)` is the name under which a trace's `zk_op` records the error.
"""

from __future__ import annotations

from kernel.errors import RebalanceLabError, Retriable, Unavailable


class ZooKeeperError(RebalanceLabError):
    """An operation failed; `path` is the znode it was about, as the caller named it."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class NoNode(ZooKeeperError):
    """The znode does not exist, or, for a create, its parent does not."""


class NodeExists(ZooKeeperError):
    """The znode exists already. After a lost connection it may be our own, from a create whose reply was lost."""


class BadVersion(ZooKeeperError):
    """The znode has another data version than the operation asked for."""


class NotEmpty(ZooKeeperError):
    """The znode has children, so it cannot be deleted."""


class NoChildrenForEphemerals(ZooKeeperError):
    """The parent is ephemeral, so it cannot have children."""


class NodeTooLarge(ZooKeeperError):
    """The data is larger than jute.maxbuffer lets through (1 MB): the server would only drop the connection."""


class OperationRefused(ZooKeeperError):
    """Any other answer: no authorisation, a malformed path, a server's internal error. The message names it."""


class RolledBack(ZooKeeperError):
    """Part of a transaction of which another part failed."""


class ConnectionLost(ZooKeeperError, Unavailable, Retriable):
    """The connection broke before the answer came: whether the operation was done is unknown."""


class SessionExpired(ZooKeeperError, Retriable):
    """The session this operation was sent in is gone, and its ephemeral znodes with it."""


class OperationTimeout(ZooKeeperError, Retriable):
    """The server gave up on the operation."""


class SessionClosed(ZooKeeperError):
    """The session was closed on this side; nothing can be done in it any more."""
