"""A large group that connects, forms and gets one more member, for `bystanders`: `... PORT GROUP SIZE NICE [TOPIC]`.

With a topic, which has as many partitions, it is one of the `consumer` design, which settles; nobody joins it later.

Runs in a process of its own, at a lower priority than the bystanders, so that they get their turns on a shared core.
Prints `{"ready": true}`, and after a line on standard input `{"began", "connected", "stable", "ended"}` by the
monotonic clock; after the next line all members leave.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING

from bench import lean_consumers, lean_groups, machine
from bench.lean import Member
from bench.lean_consumers import ConsumerMember
from bench.lean_sockets import Sockets

if TYPE_CHECKING:
    from bench.lean_sockets import Connection


def say(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def classic_crowd(sockets: Sockets, port: int, group: str, size: int) -> None:
    """Let the group form and one more member join; leave after the next line."""
    members = [Member(f"c{number}", group, number) for number in range(size + 1)]
    began = time.monotonic()
    *connections, joiner = lean_groups.connect(sockets, port, members)
    connected = time.monotonic()
    lean_groups.settle(sockets, connections)
    stable = time.monotonic()
    course = lean_groups.rebalance(sockets, connections, joiner)
    leave_when_told(
        sockets,
        [*connections, joiner],
        {"began": began, "connected": connected, "stable": stable, "ended": course.ended},
    )


def consumer_crowd(sockets: Sockets, port: int, group: str, size: int, topic: str) -> None:
    """Let the group settle; leave after the next line."""
    members = [ConsumerMember(f"c{number}", group, number, topic) for number in range(size)]
    began = time.monotonic()
    connections = lean_consumers.connect(sockets, port, members)
    connected = time.monotonic()
    lean_consumers.settle(sockets, connections, size)
    leave_when_told(sockets, connections, {"began": began, "connected": connected, "ended": time.monotonic()})


def leave_when_told(sockets: Sockets, connections: list[Connection], course: dict[str, float]) -> None:
    say(course)
    sys.stdin.readline()
    lean_groups.leave(sockets, connections)


def main() -> None:
    port, group, size, nice = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    machine.allow_connections(size + 1)
    os.nice(nice)
    with Sockets() as sockets, machine.no_collections():
        lean_groups.find_coordinator(sockets, port, group)
        say({"ready": True})
        sys.stdin.readline()
        if len(sys.argv) > 5:
            consumer_crowd(sockets, port, group, size, sys.argv[5])
        else:
            classic_crowd(sockets, port, group, size)


if __name__ == "__main__":
    main()
