"""Commits per second of 100 members of one group, 10 partitions each, and the CPU cost of one.

Each member sends its next commit, of an offset one higher, when the last one is answered. At the end every offset is
read back and compared with the last acknowledged one.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING

from bench import closed_loop, lean, lean_groups
from bench.closed_loop import Exchange, Load
from bench.figures import Row
from bench.lean import Member

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bench.bench import Bench
    from bench.lean_sockets import Connection, Sockets
    from bench.sides import Side

MEMBERS, PARTITIONS = 100, 10
TOPIC, GROUP = "commits", "committing"
WARM_UP_COMMITS = 20_000
_PACK_OFFSET = struct.Struct(">q").pack_into


class Committer:
    """One member, and the commit that it sends again and again, each time of another offset."""

    def __init__(self, connection: Connection) -> None:
        member: Member = connection.data
        self.offset = 0  #: the last one sent
        self._send = connection.socket.send
        frames = [member.commit(TOPIC, member.partitions(PARTITIONS), offset) for offset in (0, -1)]
        self._frame = bytearray(frames[0])
        # The two differ only in the offsets, eight bytes each.
        differing = [at for at, (one, other) in enumerate(zip(*frames, strict=True)) if one != other]
        self._places = differing[::8]
        assert len(differing) == 8 * PARTITIONS

    def send_next(self) -> None:
        self.offset += 1
        for place in self._places:
            _PACK_OFFSET(self._frame, place, self.offset)
        self._send(self._frame)


class CommitLoad(Load):
    """Form the group, on a topic with a partition for each commit."""

    def __init__(self, sockets: Sockets, side: Side, count: int) -> None:
        members = [Member(f"m{number}", GROUP, number) for number in range(count)]
        lean_groups.find_coordinator(sockets, side.port, GROUP)
        super().__init__(sockets, side, lean_groups.connect(sockets, side.port, members))
        lean_groups.create_topic(sockets, self._connections[0], TOPIC, count * PARTITIONS)
        lean_groups.settle(sockets, self._connections)
        lean_groups.commit(sockets, self._connections, TOPIC, PARTITIONS, [0] * count)
        self._committers = {connection: Committer(connection) for connection in self._connections}

    def exchanges(self) -> Mapping[int, Exchange]:
        return {
            each.fileno: Exchange(
                each.socket.recv, committer.send_next, each.data.commit_answer(TOPIC, each.data.partitions(PARTITIONS))
            )
            for each, committer in self._committers.items()
        }

    def measure(self, seconds: float) -> dict[str, float]:
        found = super().measure(seconds)
        return {**found, "cpu_us": 1e6 / found["per_cpu_s"]}

    def end(self) -> None:
        """Read everything back, then leave. Raises RuntimeError if an offset is not the acknowledged one."""
        expected = {
            (TOPIC, number): committer.offset
            for connection, committer in self._committers.items()
            for number in connection.data.partitions(PARTITIONS)
        }
        frame = lean.fetch_offsets(GROUP, TOPIC, range(len(expected)), "bench")
        error, found = lean.fetched_offsets(self._sockets.ask(self._connections[0], frame))
        if error != lean.NONE or found != expected:
            wrong = sum(found.get(which) != offset for which, offset in expected.items())
            raise RuntimeError(f"{wrong} of {len(expected)} offsets are not the last acknowledged ones (error {error})")
        super().end()


def run(bench: Bench) -> None:
    """Run the part `commits`."""
    count = bench.sizes[0] if bench.sizes else (10 if bench.smoke else MEMBERS)
    about = {"members": count}
    with bench.sides("commits") as sides:
        warm_up = 500 if bench.smoke else WARM_UP_COMMITS
        closed_loop.measure(bench, "commits", about, sides, partial(CommitLoad, count=count), warm_up)
    rows = [
        Row("commits/s", about, "per_s"),
        Row("commits/CPU-s", about, "per_cpu_s"),
        Row("CPU per commit, us", about, "cpu_us"),
    ]
    title = f"{count} members commit {PARTITIONS} partitions each, closed loop; all read back"
    bench.print_rows("commits", title, rows)
