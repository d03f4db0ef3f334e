"""Errors of ZooKeeper operations; `requests.py` translates kazoo's exceptions into them.

A `zk_op` event in the trace records the error by its class name.
"""

from __future__ import annotations

from kernel.errors import RebalanceLabError, Retriable, Unavailable, UserError


class ZooKeeperError(RebalanceLabError):
    """An operation failed; `path` is the caller's path of the znode."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class NoNode(ZooKeeperError):
    """The znode does not exist; for a create, its parent does not."""


class NoChroot(NoNode, UserError):
    """The chroot of the session's connect string does not exist, so that not even its first znode can be created."""


class NodeExists(ZooKeeperError):
    """The znode already exists. After a lost connection it may be our own, if only the reply was lost."""


class BadVersion(ZooKeeperError):
    """The znode's data version differs from the one in the operation."""


class NotEmpty(ZooKeeperError):
    """The znode has children, so it cannot be deleted."""


class NoChildrenForEphemerals(ZooKeeperError):
    """The parent is ephemeral, so it cannot have children."""


class NodeTooLarge(ZooKeeperError):
    """The data exceeds jute.maxbuffer (1 MB); the server would just drop the connection."""


class OperationRefused(ZooKeeperError):
    """Any other error, such as no authorization, a malformed path or an internal error. The message names it."""


class RolledBack(ZooKeeperError):
    """This part of a transaction was undone because another part failed."""


class ConnectionLost(ZooKeeperError, Unavailable, Retriable):
    """The connection broke before the reply, so it is unknown whether the operation was applied."""


class Unanswered(ZooKeeperError, Unavailable, Retriable):
    """The server is there, and has not answered the operation in time. It is unknown whether it was applied."""


class SessionExpired(ZooKeeperError, Retriable):
    """The session of this operation has expired, and its ephemeral znodes are gone."""


class OperationTimeout(ZooKeeperError, Retriable):
    """The server gave up on the operation."""


class SessionClosed(ZooKeeperError):
    """The session was closed by this client and cannot be used."""


class SessionFailed(ZooKeeperError):
    """A bug has ended the session's thread, so the session cannot be used, and expires. Who holds it must stop."""
