"""Who owns a container or a network, and who removes it if its owner cannot.

Everything that a run creates has a label that identifies the run's process. It is removed in one of four ways: by the
run when it stops; by `atexit`; by a guard, another process that notices the end of a run that was killed; and, if the
guard was killed as well, by the next run that uses Docker.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING, Any

import psutil

from kernel.decimals import decimal
from kernel.platform.interpreter import module_command
from kernel.trace.writer import boot_id
from kernel.zookeeper.containers.engine import libraries

if TYPE_CHECKING:
    from collections.abc import Callable

#: Its value identifies the owner: boot id, process id and start time of the process.
LABEL = "org.rebalance-lab.zookeeper"

_GUARD = "kernel.zookeeper.containers.guard"
#: The guard ends after this byte, and otherwise acts when its input ends.
DISMISSED = b"."
_DISMISSAL_S = 10.0


def owner() -> str:
    """A label value that identifies this process uniquely."""
    return f"{boot_id()}/{os.getpid()}/{psutil.Process().create_time():.2f}"


def remove_abandoned(client: Any) -> list[str]:
    """Remove what belongs to processes of this machine that have ended; the ids of the containers and networks."""
    return _remove(client, _abandoned)


def remove_owned(client: Any, by: str) -> list[str]:
    """Remove what belongs to one process; the ids of the containers and networks."""
    return _remove(client, lambda label: label == by)


def _remove(client: Any, meant: Callable[[str], bool]) -> list[str]:
    docker, _ = libraries()
    removed = []
    filters = {"label": LABEL}
    # Somebody else may remove the same at this moment.
    for container in client.containers.list(all=True, filters=filters, ignore_removed=True):
        if meant(container.labels.get(LABEL, "")):
            with contextlib.suppress(docker.errors.NotFound):
                container.remove(force=True, v=True)
            removed.append(str(container.id))
    for network in client.networks.list(filters=filters):
        if meant((network.attrs.get("Labels") or {}).get(LABEL, "")):
            with contextlib.suppress(docker.errors.NotFound):
                network.remove()
            removed.append(str(network.id))
    return removed


def _abandoned(label: str) -> bool:
    boot, _, process = label.partition("/")
    pid, _, started = process.partition("/")
    number = decimal(pid)
    if boot != boot_id() or number is None:
        return False  # from another machine or an earlier boot, so the owner is unknown
    try:
        return f"{psutil.Process(number).create_time():.2f}" != started
    except psutil.NoSuchProcess:
        return True


class Guard:
    """The process that removes what this one owns, should this one end without `dismiss`."""

    def __init__(self) -> None:
        # No child of `kernel.platform.processes`: it would end with us. Ctrl-C does not reach another session.
        self._process = subprocess.Popen(
            module_command(_GUARD, owner()),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """End the guard, because everything has been removed."""
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):  # it may have been killed
            self._process.communicate(DISMISSED, timeout=_DISMISSAL_S)
