"""A broker's identity: its id is stored with the data, so that a restarted broker is the same broker.

All brokers of a cluster share the data folder; each has its own subfolder:

    brokers/<broker id>/meta.properties   Kafka's own file: broker.id, version, cluster.id (MetaProperties, 3.9)
    brokers/<broker id>/lock              locked (flock) by this broker's process while it lives; it contains the
                                          process id, the current or last listener, and whether it is leaving
    brokers/<broker id>/session           its ZooKeeper session, which a successor ends after a kill -9

A broker started without broker.id becomes, of the brokers in the folder that are not running,

1. the one that last listened on the same address (of several, the most recent one);
2. otherwise the one with the lowest id;
3. or a new one if there is none.

So a broker that is stopped or killed and started again keeps its identity, on its old port or a new one, even next to
other brokers; and two processes are never the same broker, because the lock ends with its process.

All brokers of a folder belong to one cluster; starting one for another cluster is refused, as Kafka does
("Invalid cluster.id in: .../meta.properties. Expected X, but read Y", 3.9.1). And all brokers of a cluster use one
folder: see `data_folder.py`.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from kernel.decimals import decimal
from kernel.errors import EnvironmentFault, UserError
from kernel.platform.syncing import synced
from kernel.waiting import wait_until
from kernel.zookeeper.end_session import SessionCredentials

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER = "brokers"
_META, _LOCK, _SESSION = "meta.properties", "lock", "session"
#: meta.properties of a cluster with ZooKeeper; KRaft writes 1.
_VERSION = "0"
#: Choosing takes milliseconds, but a process stopped (SIGSTOP) in the middle of it delays the others; for this long.
_CHOOSING_S = 10.0


class BrokerAlreadyRunning(UserError):
    """A live process is already this broker of this data folder."""


class WrongCluster(UserError):
    """The data folder belongs to another cluster."""


class DamagedIdentity(EnvironmentFault):
    """meta.properties is malformed. Kafka would take a new id, and leave its topics without a leader."""


@dataclass(frozen=True, slots=True)
class Meta:
    """The contents of meta.properties."""

    broker_id: int
    cluster_id: str


class Identity:
    """A broker's id, held until `release` or the end of the process. Created by `claim`; methods raise OSError."""

    def __init__(self, node_id: int, folder: Path, lock: int, listener: str) -> None:
        self.node_id = node_id
        self._folder = folder
        self._lock: int | None = lock
        self._listener = listener
        self._describe()

    def leave(self) -> None:
        """State that this broker writes no more, while it still holds its identity: see `others_serve`."""
        self._describe(leaving=True)

    def _describe(self, **more: object) -> None:
        assert self._lock is not None, "released"
        os.truncate(self._lock, 0)
        os.pwrite(self._lock, json.dumps({"pid": os.getpid(), "listener": self._listener, **more}).encode(), 0)

    def last_session(self) -> SessionCredentials | None:
        """The session of this broker's previous process; it may have ended."""
        try:
            fields = json.loads((self._folder / _SESSION).read_bytes())
            return SessionCredentials(int(fields["session"], 16), bytes.fromhex(fields["password"]))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def keep_session(self, credentials: SessionCredentials) -> None:
        """Save the session. Call before creating ephemeral nodes in it. Readable by this user only."""
        fields = {"session": f"{credentials.session_id:x}", "password": credentials.password.hex()}
        temporary = self._folder / f"{_SESSION}.new"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            json.dump(fields, file)
        temporary.replace(self._folder / _SESSION)

    def release(self) -> None:
        """Let another process be this broker. Idempotent."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def check_cluster(data_dir: Path, cluster_id: str | None) -> None:
    """Raise WrongCluster if the folder belongs to another cluster. None: ZooKeeper has no cluster yet."""
    for meta in _known(data_dir).values():
        if meta.cluster_id != cluster_id:
            held = "holds no cluster yet" if cluster_id is None else f"holds cluster {cluster_id}"
            raise WrongCluster(
                f"the data folder {data_dir} belongs to cluster {meta.cluster_id} ({FOLDER}/{meta.broker_id}/{_META}),"
                f" but this ZooKeeper {held}. Connect to the ZooKeeper of cluster {meta.cluster_id} (--zookeeper, or"
                " its old --folder), or choose another data folder for this broker (--folder)."
            )


def claim(data_dir: Path, cluster_id: str, listener: str, *, node_id: int | None = None) -> Identity | None:
    """Become broker `node_id`, or without one a broker of this folder that is not running (see above). Blocks.

    Returns None if no id was given and the folder has none available: the caller then generates one. Raises
    BrokerAlreadyRunning, WrongCluster, DamagedIdentity, EnvironmentFault.
    """
    with disk_faults_named(data_dir), choosing(data_dir):
        check_cluster(data_dir, cluster_id)
        if node_id is not None:
            return _become(data_dir, node_id, cluster_id, listener)
        for candidate in _candidates(data_dir, listener):
            try:
                return _become(data_dir, candidate, cluster_id, listener)
            except BrokerAlreadyRunning:
                continue
        return None


@contextmanager
def disk_faults_named(data_dir: Path) -> Iterator[None]:
    """Turn an OSError into an EnvironmentFault that names the folder and what to do."""
    try:
        yield
    except OSError as error:
        raise EnvironmentFault(
            f"cannot use the data folder {data_dir}: {error.strerror or error} ({error.filename}). Choose a writable"
            " one (--folder)."
        ) from error


def _become(data_dir: Path, node_id: int, cluster_id: str, listener: str) -> Identity:
    folder = data_dir / FOLDER / str(node_id)
    folder.mkdir(exist_ok=True)
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BrokerAlreadyRunning(_runs(data_dir, node_id)) from None
        if not (folder / _META).exists():
            _write_meta(folder, Meta(node_id, cluster_id))
        return Identity(node_id, folder, lock, listener)
    except BaseException:
        os.close(lock)
        raise


def others_serve(data_dir: Path, node_id: int) -> bool:
    """Whether another broker of the folder is running, and not leaving. Blocks; raises OSError."""
    with choosing(data_dir):
        return any(
            _is_held(path) and not _holder(path).get("leaving")
            for path in (data_dir / FOLDER).glob(f"*/{_LOCK}")
            if path.parent.name != str(node_id)
        )


def _is_held(path: Path) -> bool:
    lock = os.open(path, os.O_RDWR)
    try:
        return not _locked(lock)
    finally:
        os.close(lock)


def _runs(data_dir: Path, node_id: int) -> str:
    holder = _holder(_lock_of(data_dir, node_id))
    return (
        f"broker {node_id} of the data folder {data_dir} is already running (pid {holder.get('pid', 'unknown')},"
        f" listening on {holder.get('listener', 'an unknown address')}). Stop that one, or choose another broker.id."
    )


def _candidates(data_dir: Path, listener: str) -> list[int]:
    """Brokers of the folder, in the order to try them."""

    def preference(node_id: int) -> tuple[bool, float, int]:
        lock = _lock_of(data_dir, node_id)
        if _holder(lock).get("listener") != listener:
            return True, 0.0, node_id
        return False, -lock.stat().st_mtime, node_id

    return sorted(_known(data_dir), key=preference)


def _lock_of(data_dir: Path, node_id: int) -> Path:
    return data_dir / FOLDER / str(node_id) / _LOCK


def _holder(lock: Path) -> dict[str, object]:
    """The current or last process of a broker, by its lock; empty if unreadable."""
    try:
        fields = json.loads(lock.read_bytes())
    except (OSError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _known(data_dir: Path) -> dict[int, Meta]:
    """The brokers of this folder.

    A folder without meta.properties was left by a killed start; it belongs to no broker.
    """
    known = {}
    for path in sorted((data_dir / FOLDER).glob(f"*/{_META}")):
        meta = parse_meta(path.read_text(encoding="utf-8", errors="replace"), path)
        if path.parent.name != str(meta.broker_id):
            raise DamagedIdentity(
                f"{path} names broker {meta.broker_id}, but is in the folder of broker {path.parent.name}. If you"
                " moved it, move it back."
            )
        known[meta.broker_id] = meta
    return known


def parse_meta(text: str, path: Path) -> Meta:
    """The text of meta.properties; `path` is for the error. Raises DamagedIdentity."""
    lines = [line.strip() for line in text.splitlines()]
    pairs = [line.partition("=") for line in lines if line and line[0] not in "#!"]
    fields = {name.strip(): value.strip() for name, _, value in pairs}
    broker_id, cluster_id = decimal(fields.get("broker.id", "")), fields.get("cluster.id", "")
    problem = ""
    if fields.get("version") != _VERSION:
        problem = f"version is {fields.get('version', 'missing')}, not {_VERSION}"
    elif broker_id is None or broker_id >= 2**31:
        problem = f"broker.id is {fields.get('broker.id', '')[:40]!r}, not a number"
    elif not cluster_id:
        problem = "cluster.id is missing"
    if problem or broker_id is None:
        raise DamagedIdentity(
            f"{path} is not usable: {problem}. Restore it (version={_VERSION}, broker.id={path.parent.name}, and"
            " cluster.id as in ZooKeeper's /cluster/id), or remove its folder to abandon this broker."
        )
    return Meta(broker_id, cluster_id)


def meta_text(meta: Meta) -> str:
    """The file as 3.9.1 writes it (java.util.Properties.store)."""
    now = time.strftime("%a %b %d %H:%M:%S UTC %Y", time.gmtime())
    return f"#\n#{now}\nbroker.id={meta.broker_id}\nversion={_VERSION}\ncluster.id={meta.cluster_id}\n"


def _write_meta(folder: Path, meta: Meta) -> None:
    temporary = folder / f"{_META}.new"
    temporary.write_text(meta_text(meta), encoding="utf-8")
    synced(temporary)
    temporary.replace(folder / _META)
    synced(folder, folder.parent)


@contextmanager
def choosing(data_dir: Path) -> Iterator[None]:
    """Let one broker of the folder at a time choose its identity, or look who else is there."""
    (data_dir / FOLDER).mkdir(parents=True, exist_ok=True)
    lock = os.open(data_dir / FOLDER / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        wait_until(lambda: _locked(lock), _CHOOSING_S, f"another broker to choose its id in {data_dir}")
        yield
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
