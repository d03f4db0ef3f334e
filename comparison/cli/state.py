"""Servers that a user has started: one state file each, and whether its process still is the one that wrote it.

A process id alone may have gone to somebody else since; so the file holds the process's start time as well, in
the kernel's own clock ticks since boot together with the boot id, which no correction of the clock can change.
"""

from __future__ import annotations

import os
import signal
from dataclasses import asdict, dataclass, field
from pathlib import Path

import msgspec
import psutil

from kernel.errors import EnvironmentFault
from kernel.trace.writer import boot_id
from kernel.waiting import wait_until

#: Where the state files are kept, when it is set.
STATE_VARIABLE = "REBALANCE_LAB_STATE"
_STOP_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """One started server."""

    name: str  #: `zookeeper`, or `broker-<port>`
    pid: int
    started: str  #: see `process_start`
    address: str  #: what a client is to connect to
    folder: str
    details: dict[str, str] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        """Whether the process of this state is alive: the id and its start time both agree."""
        return process_start(self.pid) == self.started


def state_dir() -> Path:
    """$REBALANCE_LAB_STATE, or the place that the XDG convention names."""
    chosen = os.environ.get(STATE_VARIABLE)
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "rebalance-lab"


def process_start(pid: int) -> str | None:
    """When a process was started, in terms that stay the same; None when there is no such process (or a zombie)."""
    try:
        # The second field is the program's name in brackets, which may hold anything.
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
    except OSError:
        return None if Path("/proc/self").exists() else _start_elsewhere(pid)
    fields = after_name.split()
    return None if fields[0] in ("Z", "X") else f"{boot_id()}:{fields[19]}"


def _start_elsewhere(pid: int) -> str | None:
    """On systems without /proc."""
    try:
        return f"{psutil.Process(pid).create_time():.2f}"
    except psutil.NoSuchProcess:
        return None


def this_process(name: str, address: str, folder: Path, **details: str) -> ServerState:
    """The state of a server that runs in this process."""
    started = process_start(os.getpid())
    assert started is not None
    return ServerState(
        name=name, pid=os.getpid(), started=started, address=address, folder=str(folder), details=details
    )


def write_state(state: ServerState) -> None:
    """Raises `EnvironmentFault` when the folder cannot be written."""
    path = _path(state.name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{state.pid}")
        beside.write_bytes(msgspec.json.encode(asdict(state)))
        beside.replace(path)
    except OSError as error:
        raise EnvironmentFault(
            f"cannot write the state file {path}: {error.strerror}; set {STATE_VARIABLE} to a folder of your own"
        ) from error


def read_state(name: str) -> ServerState | None:
    """The state of a server, None when none was written or it is unreadable."""
    try:
        return msgspec.json.decode(_path(name).read_bytes(), type=ServerState)
    except (OSError, msgspec.DecodeError):
        return None


def states(prefix: str) -> list[ServerState]:
    """All states whose names start with `prefix`, in order of name."""
    names = sorted(path.stem for path in state_dir().glob(f"{prefix}*.json"))
    return [state for name in names if (state := read_state(name)) is not None]


def forget(state: ServerState) -> None:
    """Remove the state file, unless it has become another process's."""
    current = read_state(state.name)
    if current is not None and (current.pid, current.started) == (state.pid, state.started):
        _path(state.name).unlink(missing_ok=True)


def stop_server(state: ServerState) -> bool:
    """End the server in order; False when the process is not the one that wrote the state (nothing is killed).

    Raises `Unavailable` when it does not end.
    """
    if not state.running:
        forget(state)
        return False
    os.kill(state.pid, signal.SIGTERM)
    wait_until(lambda: not state.running, _STOP_S, f"{state.name} (pid {state.pid}) to end after SIGTERM")
    forget(state)
    return True


def _path(name: str) -> Path:
    return state_dir() / f"{name}.json"
