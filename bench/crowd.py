"""A large group that connects, forms and gets one more member, for `bystanders`: `... PORT GROUP SIZE NICE`.

Runs in a process of its own, at a lower priority than the bystanders, so that they get their turns on a shared core.
Prints `{"ready": true}`, and after a line on standard input `{"began", "connected", "stable", "ended"}` by the
monotonic clock; after the next line all members leave.
"""

from __future__ import annotations

import json
import os
import sys
import time

from bench import lean_groups, machine
from bench.lean import Member
from bench.lean_sockets import Sockets


def say(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    port, group, size, nice = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    machine.allow_connections(size + 1)
    os.nice(nice)
    members = [Member(f"c{number}", group, number) for number in range(size + 1)]
    with Sockets() as sockets, machine.no_collections():
        lean_groups.find_coordinator(sockets, port, group)
        say({"ready": True})
        sys.stdin.readline()
        began = time.monotonic()
        *connections, joiner = lean_groups.connect(sockets, port, members)
        connected = time.monotonic()
        lean_groups.settle(sockets, connections)
        stable = time.monotonic()
        course = lean_groups.rebalance(sockets, connections, joiner)
        say({"began": began, "connected": connected, "stable": stable, "ended": course.ended})
        sys.stdin.readline()
        lean_groups.leave(sockets, [*connections, joiner])


if __name__ == "__main__":
    main()
