"""Members of other groups that heartbeat evenly and time each heartbeat: `... PORT GROUPS MEMBERS PER_SECOND [TOPIC]`.

With a topic, which has as many partitions as a group has members, every second group is one of the `consumer` design.

Ready once all groups are stable. Lines on standard input (`children`) start and stop the heartbeats in turn; a stop is
answered with `{"samples": [[sent at, ms], ...], "late": N}`, by the monotonic clock that all processes of a machine
share. `late` counts heartbeats that were skipped because the previous one was still unanswered when they were due.
"""

from __future__ import annotations

import os
import select
import sys
import time

from bench import lean, lean_consumers, lean_groups, machine
from bench.lean import Member
from bench.lean_consumers import ConsumerMember
from bench.lean_sockets import Connection, Sockets
from comparison.scenarios.processes.host import Host

SILENCE_S = 60.0
#: Interval of the heartbeats that settle groups of the `consumer` design.
SETTLING_S = 0.2


class Bystanders:
    def __init__(self, connections: list[Connection], per_second: float) -> None:
        self._connections = connections
        self._pause_s = 1 / per_second
        self._epoll = select.epoll()
        self._epoll.register(sys.stdin.fileno(), select.EPOLLIN)
        self._by_fileno = {connection.fileno: connection for connection in connections}
        for fileno in self._by_fileno:
            self._epoll.register(fileno, select.EPOLLIN)
        self._frames = [connection.data.heartbeat() for connection in connections]
        self._sent: dict[int, float] = {}
        self._late = 0
        self._samples: list[tuple[float, float]] = []

    def beat(self) -> None:
        """Send heartbeats, member by member, until a line comes."""
        clock = time.monotonic
        turn, due = 0, clock()
        is_asked = False
        while not is_asked or self._sent:
            if not is_asked and clock() >= due:
                self._send(turn)
                turn = (turn + 1) % len(self._connections)
                due += self._pause_s
            for fileno, _ in self._epoll.poll(max(due - clock(), 0) if not is_asked else 1.0):
                if fileno in self._by_fileno:
                    self._receive(self._by_fileno[fileno])
                else:
                    is_asked = True
                    self._epoll.unregister(fileno)
        self._epoll.register(sys.stdin.fileno(), select.EPOLLIN)

    def _send(self, turn: int) -> None:
        connection = self._connections[turn]
        if connection.fileno in self._sent:
            self._late += 1
            if time.monotonic() - self._sent[connection.fileno] > SILENCE_S:
                raise TimeoutError("heartbeats get no answer")
            return
        self._sent[connection.fileno] = time.monotonic()
        connection.socket.send(self._frames[turn])

    def _receive(self, connection: Connection) -> None:
        answer = connection.socket.recv(4096)
        received = time.monotonic()
        if answer != connection.data.heartbeat_answer(lean.NONE):
            raise RuntimeError(f"heartbeat of {connection.data.name}: error {lean_groups.heartbeat_error(answer)}")
        sent = self._sent.pop(connection.fileno)
        self._samples.append((sent, (received - sent) * 1000))

    def take(self) -> dict[str, object]:
        taken = {"samples": self._samples, "late": self._late}
        self._samples, self._late = [], 0
        return taken


def read_line() -> bool:
    """Read a line without the buffer of `sys.stdin`, which epoll does not see."""
    return bool(os.read(sys.stdin.fileno(), 4096))


def stable_group(sockets: Sockets, port: int, number: int, members: int, topic: str | None) -> list[Connection]:
    """One group of bystanders."""
    group = f"bystanders-{number}"
    lean_groups.find_coordinator(sockets, port, group)
    if topic is None or number % 2 == 0:
        classic = [Member(f"b{number}-{place}", group, place) for place in range(members)]
        connections = lean_groups.connect(sockets, port, classic)
        lean_groups.settle(sockets, connections)
    else:
        others = [ConsumerMember(f"b{number}-{place}", group, place, topic) for place in range(members)]
        connections = lean_consumers.connect(sockets, port, others)
        lean_consumers.settle(sockets, connections, members, interval_s=SETTLING_S)
    return connections


def main() -> None:
    port, groups, each, per_second = (int(argument) for argument in sys.argv[1:5])
    topic = sys.argv[5] if len(sys.argv) > 5 else None
    with Sockets() as sockets, machine.no_collections():
        connections = [
            connection for group in range(groups) for connection in stable_group(sockets, port, group, each, topic)
        ]
        bystanders = Bystanders(connections, per_second)
        Host().write({"event": "ready"})
        while read_line():
            Host().write({"event": "started"})
            bystanders.beat()
            if not read_line():
                break
            Host().write(bystanders.take())
        lean_groups.leave(sockets, connections)


if __name__ == "__main__":
    main()
