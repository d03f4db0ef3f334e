"""Waits for the end of the process that started it, and removes the containers and networks which that one has left.

    python -m kernel.zookeeper.containers.guard <label value>

Its standard input is a pipe, which the kernel closes however the other end's process ends.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from kernel.errors import EnvironmentFault
from kernel.zookeeper.containers.engine import engine, libraries
from kernel.zookeeper.containers.ownership import DISMISSED, remove_owned

#: The engine may still carry out the last request of a killed process: it is asked until nothing has appeared so long.
_QUIET_S = 2.0
_TIMEOUT_S = 60.0
_EVERY_S = 0.25


def main(label: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if os.read(sys.stdin.fileno(), 1) == DISMISSED:
        return
    docker, _ = libraries()
    deadline = time.monotonic() + _TIMEOUT_S
    quiet = time.monotonic() + _QUIET_S
    while time.monotonic() < min(deadline, quiet):
        try:
            client = engine()
            try:
                if remove_owned(client, label):
                    quiet = time.monotonic() + _QUIET_S
            finally:
                client.close()
        except (EnvironmentFault, docker.errors.APIError, OSError):
            quiet = time.monotonic() + _QUIET_S  # it may be removing a container already: try again
        time.sleep(_EVERY_S)


if __name__ == "__main__":
    main(sys.argv[1])
