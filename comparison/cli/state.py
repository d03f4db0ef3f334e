"""State files of the servers that a user has started, one each.

A pid alone may have been reused by another process, so the file holds the process's start time as well: in the
operating system's clock ticks since boot, with the boot id, so that changes of the clock do not matter.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import psutil

from kernel.errors import EnvironmentFault
from kernel.platform.json_file import json_if_readable
from kernel.platform.whole_file import whole_file
from kernel.trace.writer import boot_id
from kernel.waiting import wait_until

#: The environment variable for the folder of the state files.
STATE_VARIABLE = "REBALANCE_LAB_STATE"
_STOP_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """One started server."""

    name: str  #: `zookeeper`, or `broker-<port>`
    pid: int
    started: str  #: see `process_start`
    address: str  #: for clients
    folder: str
    details: dict[str, str] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        """Whether the process that wrote this state is alive: both pid and start time match."""
        return process_start(self.pid) == self.started


def state_dir() -> Path:
    """$REBALANCE_LAB_STATE, or a folder by the XDG convention."""
    chosen = os.environ.get(STATE_VARIABLE)
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "rebalance-lab"


def process_start(pid: int) -> str | None:
    """A value that identifies a process's start time; None when there is no such process, or it is a zombie."""
    try:
        # The second field is the program's name in parentheses, which may contain anything.
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
        with whole_file(path) as file:
            file.write_bytes(msgspec.json.encode(state))
    except OSError as error:
        raise EnvironmentFault(
            f"cannot write the state file {path}: {error.strerror}. Set {STATE_VARIABLE} to a folder of your own"
        ) from error


def read_state(name: str) -> ServerState | None:
    """The state of a server; None when it does not exist or is unreadable."""
    return json_if_readable(_path(name), ServerState)


def states(prefix: str) -> list[ServerState]:
    """All states whose names start with `prefix`, sorted by name."""
    names = sorted(path.stem for path in state_dir().glob(f"{prefix}*.json"))
    return [state for name in names if (state := read_state(name)) is not None]


def forget(state: ServerState) -> None:
    """Remove the state file, unless another process has written it since."""
    current = read_state(state.name)
    if current is not None and (current.pid, current.started) == (state.pid, state.started):
        _path(state.name).unlink(missing_ok=True)


def stop_server(state: ServerState) -> bool:
    """Stop the server by SIGTERM; False when its process has already ended.

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
