"""Commits per second of 100 members of one group, 10 partitions each, and the CPU cost of one.

Each member sends its next commit, of an offset one higher, when the last one is answered. Every answer is compared with
the expected bytes, and at the end every offset is read back and compared with the last acknowledged one.
"""

from __future__ import annotations

import select
import struct
import time
from typing import TYPE_CHECKING

from bench import lean, lean_groups, machine
from bench.figures import Row, print_rows
from bench.lean import Member
from bench.lean_sockets import Sockets
from bench.sides import KAFKA, OURS

if TYPE_CHECKING:
    from bench.bench import Bench
    from bench.lean_sockets import Connection
    from bench.sides import Side

MEMBERS, PARTITIONS = 100, 10
TOPIC, GROUP = "commits", "committing"
WARM_UP_COMMITS = 20_000
CREATED_S = 60.0
_PACK_OFFSET = struct.Struct(">q").pack_into


class Committer:
    """One member and the partitions that it commits."""

    def __init__(self, connection: Connection) -> None:
        member: Member = connection.data
        self.partitions = range(member.number * PARTITIONS, (member.number + 1) * PARTITIONS)
        self.offset = 0  #: the last offset sent
        self.good = member.commit_answer(TOPIC, self.partitions)
        self.receive, self._send = connection.socket.recv, connection.socket.send
        frames = [member.commit(TOPIC, self.partitions, offset) for offset in (0, -1)]
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


class CommitLoad:
    """Form the group, on a topic with a partition for each commit."""

    def __init__(self, sockets: Sockets, side: Side, count: int) -> None:
        self._sockets, self._side = sockets, side
        members = [Member(f"m{number}", GROUP, number) for number in range(count)]
        lean_groups.find_coordinator(sockets, side.port, GROUP)
        self._connections = lean_groups.connect(sockets, side.port, members)
        error = lean.created_error(sockets.ask(self._connections[0], lean.create_topic(TOPIC, count * PARTITIONS)))
        if error != lean.NONE:
            raise RuntimeError(f"CreateTopics of {TOPIC}: error {error}")
        lean_groups.settle(sockets, self._connections)
        self._committers = {connection.fileno: Committer(connection) for connection in self._connections}
        self._wait_until_known()

    def _wait_until_known(self) -> None:
        """Wait until the broker knows all partitions; before, it refuses their offsets."""
        deadline = time.monotonic() + CREATED_S
        for connection in self._connections:
            committer = self._committers[connection.fileno]
            frame = connection.data.commit(TOPIC, committer.partitions, 0)
            while self._sockets.ask(connection, frame) != committer.good:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"offsets of {TOPIC} were still refused after {CREATED_S:g} s")
                time.sleep(0.05)

    def measure(self, seconds: float) -> dict[str, float]:
        cpu_s, started = self._side.cpu_s(), time.monotonic()
        commits = self._closed_loop(seconds)
        elapsed, cpu_s = time.monotonic() - started, self._side.cpu_s() - cpu_s
        return {"per_s": commits / elapsed, "per_cpu_s": commits / cpu_s, "cpu_us": 1e6 * cpu_s / commits}

    def warm_up(self, commits: int) -> None:
        while next(iter(self._committers.values())).offset < commits / len(self._committers):
            self._closed_loop(1.0)

    def _closed_loop(self, seconds: float) -> int:
        epoll = select.epoll()
        commits = 0
        with epoll, machine.no_collections():
            deadline = time.monotonic() + seconds
            for fileno, committer in self._committers.items():
                epoll.register(fileno, select.EPOLLIN)
                committer.send_next()
            in_flight = len(self._committers)
            while in_flight:
                ready = epoll.poll(30)
                if not ready:
                    raise TimeoutError("commits get no answer")
                goes_on = time.monotonic() < deadline
                for fileno, _ in ready:
                    committer = self._committers[fileno]
                    if committer.receive(4096) != committer.good:
                        raise RuntimeError("a commit was not answered with NONE for each of its partitions")
                    commits += 1
                    if goes_on:
                        committer.send_next()
                    else:
                        in_flight -= 1
        return commits

    def end(self) -> None:
        """Read everything back, then leave. Raises RuntimeError if an offset is not the acknowledged one."""
        expected = {(TOPIC, p): c.offset for c in self._committers.values() for p in c.partitions}
        frame = lean.fetch_offsets(GROUP, TOPIC, range(len(expected)), "bench")
        error, found = lean.fetched_offsets(self._sockets.ask(self._connections[0], frame))
        if error != lean.NONE or found != expected:
            wrong = sum(found.get(which) != offset for which, offset in expected.items())
            raise RuntimeError(f"{wrong} of {len(expected)} offsets are not the last acknowledged ones (error {error})")
        lean_groups.leave(self._sockets, self._connections)


def run(bench: Bench) -> None:
    """Run the part `commits`."""
    count = bench.sizes[0] if bench.sizes else (10 if bench.smoke else MEMBERS)
    runs, seconds = (1, 0.3) if bench.smoke else (bench.runs or 5, 3.0)
    with bench.sides("commits") as sides, Sockets() as sockets:
        loads = [CommitLoad(sockets, side, count) for side in sides]
        for load in loads:
            load.warm_up(500 if bench.smoke else WARM_UP_COMMITS)
        with sides[0].profiling():
            for _ in range(runs):
                for side, load in zip(sides, loads, strict=True):
                    bench.figures.add("commits", side.name, {"members": count}, load.measure(seconds))
        for load in loads:
            load.end()
    about = {"members": count}
    rows = [
        Row("commits/s", about, "per_s"),
        Row("commits/CPU-s", about, "per_cpu_s"),
        Row("CPU per commit, us", about, "cpu_us"),
    ]
    title = f"{count} members commit {PARTITIONS} partitions each, closed loop; all read back"
    print_rows(bench.console, bench.figures, "commits", title, (OURS, KAFKA), rows)
