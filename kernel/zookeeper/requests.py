"""Build kazoo's requests, and translate its replies and errors. Nothing is sent from here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kazoo import exceptions as kazoo
from kazoo.protocol import serialization as wire
from kazoo.security import OPEN_ACL_UNSAFE

from kernel.zookeeper import errors, operations
from kernel.zookeeper.operations import TransactionPart, ZnodeStat
from kernel.zookeeper.replies import UnreadableReply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: jute.maxbuffer, the limit for a whole request, is 0xfffff by default; this leaves room for path and header.
MAX_DATA_BYTES = 0xFFFFF - 4096

_EPHEMERAL = 1
_SEQUENCE = 2


def armed(_event: object) -> None:
    """A watcher that does nothing: passing one makes kazoo's request set a watch."""


def _watcher(watch: bool) -> Callable[[object], None] | None:
    return armed if watch else None


def _checked(path: str, data: bytes | None) -> bytes | None:
    if data is not None and len(data) > MAX_DATA_BYTES:
        raise errors.NodeTooLarge(f"{len(data)} bytes of data exceed the limit of {MAX_DATA_BYTES}", path)
    return data


def create(path: str, data: bytes | None, *, ephemeral: bool) -> wire.Create:
    return wire.Create(path, _checked(path, data), OPEN_ACL_UNSAFE, _EPHEMERAL if ephemeral else 0)


def create_numbered(path: str, data: bytes | None) -> wire.Create:
    return wire.Create(path, _checked(path, data), OPEN_ACL_UNSAFE, _SEQUENCE)


def delete(path: str, version: int) -> wire.Delete:
    return wire.Delete(path, version)


def exists(path: str, *, watch: bool) -> wire.Exists:
    return wire.Exists(path, _watcher(watch))


def get(path: str, *, watch: bool) -> wire.GetData:
    return wire.GetData(path, _watcher(watch))


def children(path: str, *, watch: bool) -> wire.GetChildren:
    return wire.GetChildren(path, _watcher(watch))


def set_data(path: str, data: bytes | None, version: int) -> wire.SetData:
    return wire.SetData(path, _checked(path, data), version)


def sync(path: str) -> wire.Sync:
    return wire.Sync(path)


def transaction(parts: Sequence[TransactionPart], absolute: Callable[[str], str]) -> wire.Transaction:
    return wire.Transaction([_part(part, absolute(part.path)) for part in parts])


def _part(part: TransactionPart, path: str) -> Any:
    match part:
        case operations.Create():
            return create(path, part.data, ephemeral=part.ephemeral)
        case operations.Delete():
            return wire.Delete(path, part.version)
        case operations.SetData():
            return set_data(path, part.data, part.version)
        case operations.CheckVersion():
            return wire.CheckVersion(path, part.version)


def stat(answer: Any) -> ZnodeStat:
    """Our ZnodeStat from kazoo's, which has the same fields in the same order."""
    return ZnodeStat(*answer)


#: kazoo's exceptions and ours. The first match counts, since some are subclasses of others.
_TRANSLATION: tuple[tuple[type[BaseException], type[errors.ZooKeeperError], str], ...] = (
    (kazoo.NoNodeError, errors.NoNode, "no such znode, or no parent for it"),
    (kazoo.NodeExistsError, errors.NodeExists, "the znode exists already"),
    (kazoo.BadVersionError, errors.BadVersion, "the znode has another version"),
    (kazoo.NotEmptyError, errors.NotEmpty, "the znode has children"),
    (kazoo.NoChildrenForEphemeralsError, errors.NoChildrenForEphemerals, "the parent is ephemeral"),
    (kazoo.ConnectionClosedError, errors.SessionClosed, "the session was closed"),
    (kazoo.SessionExpiredError, errors.SessionExpired, "the session has expired"),
    (kazoo.SessionMovedError, errors.ConnectionLost, "the session has moved to another server"),
    (kazoo.ConnectionLoss, errors.ConnectionLost, "the connection broke before the answer"),
    (kazoo.OperationTimeoutError, errors.OperationTimeout, "the server gave up on the operation"),
    (kazoo.RequestTimeoutError, errors.OperationTimeout, "the server gave up on the operation"),
    (kazoo.RolledBackError, errors.RolledBack, "another part of the transaction failed"),
    (kazoo.RuntimeInconsistency, errors.RolledBack, "an earlier part of the transaction failed"),
)


def translate(error: BaseException, path: str) -> errors.ZooKeeperError:
    """Our error for kazoo's. Unknown errors, and those of unreadable replies, become `OperationRefused`."""
    for theirs, ours, message in _TRANSLATION:
        if isinstance(error, theirs):
            return ours(f"{message}: {error}" if str(error) else message, path)
    if isinstance(error, UnreadableReply):
        return errors.OperationRefused(f"ZooKeeper's reply cannot be used: {error}", path)
    return errors.OperationRefused(f"ZooKeeper refused: {type(error).__name__} {error}".rstrip(), path)


def failed_part(results: Sequence[Any], parts: Sequence[TransactionPart]) -> errors.ZooKeeperError | None:
    """The error of the part that made a transaction fail, or None if it succeeded."""
    refusals = [
        translate(result, part.path)
        for result, part in zip(results, parts, strict=False)
        if isinstance(result, kazoo.ZookeeperError)
    ]
    for refusal in refusals:
        if not isinstance(refusal, errors.RolledBack):
            return refusal
    return refusals[0] if refusals else None
