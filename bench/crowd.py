"""A large group that connects, forms and gets one more member, for `bystanders`: `... PORT GROUP SIZE NICE [TOPIC]`.

With a topic, which has as many partitions, it is one of the `consumer` design, which settles; nobody joins it later.

Runs in a process of its own (`children`), at a lower priority than the bystanders, so that they get their turns on a
shared core. Answers a line with `{"began", "connected", "stable", "ended"}` by the monotonic clock; at the end of the
input all members leave.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from bench import lean_consumers, lean_groups, machine
from bench.lean import Member
from bench.lean_consumers import ConsumerMember
from bench.lean_sockets import Sockets
from comparison.scenarios.processes.host import Host

if TYPE_CHECKING:
    from bench.lean_sockets import Connection


def classic_crowd(sockets: Sockets, port: int, group: str, size: int) -> tuple[list[Connection], dict[str, float]]:
    """Let the group form and one more member join."""
    members = [Member(f"c{number}", group, number) for number in range(size + 1)]
    began = time.monotonic()
    *connections, joiner = lean_groups.connect(sockets, port, members)
    connected = time.monotonic()
    lean_groups.settle(sockets, connections)
    stable = time.monotonic()
    ended = lean_groups.rebalance(sockets, connections, joiner).ended
    return [*connections, joiner], {"began": began, "connected": connected, "stable": stable, "ended": ended}


def consumer_crowd(
    sockets: Sockets, port: int, group: str, size: int, topic: str
) -> tuple[list[Connection], dict[str, float]]:
    """Let the group settle."""
    members = [ConsumerMember(f"c{number}", group, number, topic) for number in range(size)]
    began = time.monotonic()
    connections = lean_consumers.connect(sockets, port, members)
    connected = time.monotonic()
    lean_consumers.settle(sockets, connections, size)
    return connections, {"began": began, "connected": connected, "ended": time.monotonic()}


def main() -> None:
    port, group, size, nice = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    machine.allow_connections(size + 1)
    os.nice(nice)
    with Sockets() as sockets, machine.no_collections():
        lean_groups.find_coordinator(sockets, port, group)
        Host().write({"event": "ready"})
        sys.stdin.readline()
        if len(sys.argv) > 5:
            connections, course = consumer_crowd(sockets, port, group, size, sys.argv[5])
        else:
            connections, course = classic_crowd(sockets, port, group, size)
        Host().write(course)
        sys.stdin.read()
        lean_groups.leave(sockets, connections)


if __name__ == "__main__":
    main()
