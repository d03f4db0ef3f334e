"""How soon a successor serves 1,000 groups of 10 members with 100,000 committed offsets, and what it has lost.

One broker leads all of `__consumer_offsets` and is killed (SIGKILL); another one takes over. The killed one then starts
again and is the next successor. A broker is named leader when the partition's state is written to ZooKeeper; it answers
when a fetch returns all offsets of one of the partition's groups. Meanwhile Heartbeat, SyncGroup and OffsetFetch are
sent again and again, and only answers that clients may expect are allowed. Afterwards every member sends Heartbeat and
SyncGroup in its generation, and every offset is read.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kazoo.client import KazooClient

from bench import lean, lean_groups, machine
from bench.figures import Row, at_most_absolute
from bench.lean import Member
from bench.lean_sockets import Sockets
from bench.sides import KAFKA, OURS, SETTINGS, OurBroker
from coordinator.groups.placement import partition_of
from kernel.topic_names import OFFSETS_TOPIC
from kernel.waiting import wait_until
from kernel.zookeeper import paths
from kernel.zookeeper.embedded import EmbeddedZooKeeper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.bench import Bench
    from bench.lean_sockets import Connection

GROUPS, EACH, PARTITIONS = 1_000, 10, 10
#: Groups that form at the same time, with all their members connected.
AT_ONCE = 250
TOPIC = "failover"
TARGET_S = 2.0
#: The dead broker's session timeout, which is not part of the measure.
SESSION_MS = 6_000
TAKEN_OVER_S = 120.0
#: Between two rounds of probes, so that they do not keep the successor busy.
PAUSE_S = 0.05

#: Allowed errors by API until the group is loaded.
FORESEEN = {
    lean.OFFSET_FETCH: {0, lean.COORDINATOR_LOADING, lean.NOT_COORDINATOR},
    lean.HEARTBEAT: {0, lean.NOT_COORDINATOR},  # NONE while loading
    lean.SYNC: {0, lean.REBALANCE_IN_PROGRESS, lean.NOT_COORDINATOR},  # 27 while loading
}
NAMES = {lean.OFFSET_FETCH: "OffsetFetch", lean.HEARTBEAT: "Heartbeat", lean.SYNC: "SyncGroup"}


@dataclass(frozen=True)
class Groups:
    """All groups: their members, in order, and the offset that each has committed."""

    names: tuple[str, ...]
    members: tuple[tuple[Member, ...], ...]

    @classmethod
    def named(cls, count: int) -> Groups:
        names = tuple(f"kept-{number}" for number in range(count))
        return cls(names, tuple(tuple(Member(f"m{n}", name, n) for n in range(EACH)) for name in names))

    def offset(self, group: int, number: int) -> int:
        return group * EACH + number

    def fetch(self, group: int) -> bytes:
        return lean.fetch_offsets(self.names[group], TOPIC, range(EACH * PARTITIONS), "bench")

    def fetched_error(self, group: int, answer: bytes) -> int:
        """The error of an answer. Raises RuntimeError if it has other offsets than the committed ones."""
        error, found = lean.fetched_offsets(answer)
        if error == lean.NONE and found != {
            (TOPIC, p): self.offset(group, each.number)
            for each in self.members[group]
            for p in each.partitions(PARTITIONS)
        }:
            raise RuntimeError(f"the offsets of {self.names[group]} are not those committed")
        return error


def prepare(port: int, groups: Groups) -> None:
    """Form the groups and commit."""
    with Sockets() as sockets:
        lean_groups.find_coordinator(sockets, port, groups.names[0])
        for first in range(0, len(groups.names), AT_ONCE):
            some = range(first, min(first + AT_ONCE, len(groups.names)))
            connections = lean_groups.connect(sockets, port, [m for group in some for m in groups.members[group]])
            if first == 0:
                lean_groups.create_topic(sockets, connections[0], TOPIC, EACH * PARTITIONS)
            lean_groups.settle(sockets, connections)
            offsets = [groups.offset(group, number) for group in some for number in range(EACH)]
            lean_groups.commit(sockets, connections, TOPIC, PARTITIONS, offsets)
            sockets.drop(connections)


class Probe:
    """One request of one group, sent again and again; kept as `data` of its connection."""

    def __init__(self, groups: Groups, group: int, api: int) -> None:
        self.api, self.group = api, group
        self._groups, self._member = groups, groups.members[group][0]
        self.frame = {
            lean.OFFSET_FETCH: lambda: groups.fetch(group),
            lean.HEARTBEAT: self._member.heartbeat,
            lean.SYNC: lambda: self._member.sync({}),
        }[api]()

    def error(self, answer: bytes) -> int:
        """The error of an answer. Raises RuntimeError if it is not allowed."""
        if self.api == lean.OFFSET_FETCH:
            error = self._groups.fetched_error(self.group, answer)
        elif self.api == lean.HEARTBEAT:
            error = lean_groups.heartbeat_error(answer)
        else:
            error, assignment = lean.synced(answer)
            if error == lean.NONE and assignment != self._member.assignment:
                raise RuntimeError(f"SyncGroup of {self._member.group} returned another assignment than before")
        if error not in FORESEEN[self.api]:
            raise RuntimeError(f"{NAMES[self.api]} of {self._member.group} during takeover: error {error}")
        return error


def watch(
    sockets: Sockets, connections: Sequence[Connection], at_first: Callable[[], None]
) -> tuple[dict[int, float], Counter[str]]:
    """Wait until every group's offsets are there: ({group: wall-clock time}, how often each answer came).

    The three probes of a group end together. `at_first` is called when the first partition starts loading.
    """
    answering: dict[int, float] = {}
    is_begun = False
    seen: Counter[str] = Counter()
    waiting: list[Connection] = list(connections)
    groups = {connection.data.group for connection in connections}
    deadline = time.monotonic() + TAKEN_OVER_S
    while len(answering) < len(groups):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(groups) - len(answering)} groups have no coordinator after {TAKEN_OVER_S:g} s")
        for connection in waiting:
            connection.send(connection.data.frame)
        in_flight, waiting = len(waiting), []
        while in_flight:
            for connection, answer in sockets.answers(lean_groups.SILENCE_S):
                in_flight -= 1
                probe: Probe = connection.data
                error = probe.error(answer)
                seen[f"{NAMES[probe.api]} {error}"] += 1
                if not is_begun and error != lean.NOT_COORDINATOR:
                    is_begun = True
                    at_first()
                if probe.api == lean.OFFSET_FETCH and error == lean.NONE:
                    answering[probe.group] = time.time()
                waiting.append(connection)
        waiting = [connection for connection in waiting if connection.data.group not in answering]
        time.sleep(PAUSE_S)
    return answering, seen


def left_of(port: int, groups: Groups) -> int:
    """Number of members that would have to rejoin. Raises RuntimeError for any other difference."""
    rejoins = 0
    numbers = range(len(groups.names))
    with Sockets() as sockets:
        connections = [c for c, _ in sockets.connect(port, [groups.fetch(group) for group in numbers])]
        for group, answer in enumerate(lean_groups.ask_each(sockets, connections, [groups.fetch(g) for g in numbers])):
            if groups.fetched_error(group, answer) != lean.NONE:
                raise RuntimeError(f"no offsets of {groups.names[group]}")
        for number in range(EACH):
            members = [groups.members[group][number] for group in numbers]
            answers = lean_groups.ask_each(sockets, connections, [member.heartbeat() for member in members])
            rejoins += sum(answer != m.heartbeat_answer(lean.NONE) for m, answer in zip(members, answers, strict=True))
            answers = lean_groups.ask_each(sockets, connections, [member.sync({}) for member in members])
            for member, answer in zip(members, answers, strict=True):
                if lean.synced(answer) != (lean.NONE, member.assignment):
                    raise RuntimeError(f"SyncGroup of {member.name} in {member.group}: {lean.synced(answer)}")
    return rejoins


def leaders(zookeeper: KazooClient, partitions: int) -> dict[int, tuple[int, float]]:
    """{partition of the offsets topic: (its leader, wall-clock time of the election)}."""
    found = {}
    for number in range(partitions):
        data, stat = zookeeper.get(paths.partition_state(OFFSETS_TOPIC, number))
        found[number] = (json.loads(data)["leader"], stat.mtime / 1000)
    return found


def fail_over(
    leader: OurBroker, successor: OurBroker, node_id: int, groups: Groups, zookeeper: KazooClient
) -> dict[str, float]:
    """Kill the leader and measure the successor, which has `node_id`."""
    partitions = int(SETTINGS["offsets.topic.num.partitions"])
    of_partition = {partition_of(name, partitions): group for group, name in enumerate(groups.names)}
    with Sockets() as sockets, machine.no_collections():
        probes = [Probe(groups, group, api) for group in of_partition.values() for api in FORESEEN]
        connections = []
        for probe, (connection, _) in zip(
            probes, sockets.connect(successor.port, [p.frame for p in probes]), strict=True
        ):
            connection.data = probe
            connections.append(connection)
        before: list[float] = []
        killed = time.time()
        leader.kill()
        answering, seen = watch(sockets, connections, lambda: before.append(machine.cpu_s(successor.pid)))
        cpu_s = machine.cpu_s(successor.pid) - before[0]
    named = leaders(zookeeper, partitions)
    assert {leading for leading, _ in named.values()} == {node_id}, named
    slowest = max(answering[group] - named[partition][1] for partition, group in of_partition.items())
    ended = max(answering.values())
    return {
        "named_to_answering_s": ended - min(named[partition][1] for partition in of_partition),
        "slowest_partition_s": slowest,
        "killed_to_answering_s": ended - killed,
        "cpu_s": cpu_s,
        "rejoins": float(left_of(successor.port, groups)),
        **{f"answers {name}": float(count) for name, count in sorted(seen.items())},
    }


def run(bench: Bench) -> None:
    """Run the part `failover`."""
    count = max(1, bench.sizes[0] // EACH) if bench.sizes else (5 if bench.smoke else GROUPS)
    runs = bench.runs or (1 if bench.smoke else 5)
    machine.allow_connections(max(AT_ONCE * EACH, count, 150))
    settings = {**SETTINGS, "offsets.topic.replication.factor": "2", "zookeeper.session.timeout.ms": str(SESSION_MS)}
    if bench.profiles is not None:
        bench.leave_out("the profile of failover", "each run has another successor process")
    groups, folder = Groups.named(count), bench.folder / "failover"
    partitions = int(settings["offsets.topic.num.partitions"])
    with machine.pinned(bench.cores.driver), ExitStack() as stack:
        server = stack.enter_context(EmbeddedZooKeeper(folder / "zookeeper"))
        zookeeper = KazooClient(server.connect_string)
        zookeeper.start()
        stack.callback(zookeeper.close)
        stack.callback(zookeeper.stop)
        brokers = {}
        for node_id in (1, 2):
            its = {**settings, "broker.id": str(node_id)}
            broker = OurBroker(folder / f"broker-{node_id}", server.connect_string, its, cores=bench.cores)
            brokers[node_id] = stack.enter_context(broker)
        make_one_lead(brokers, zookeeper, partitions)
        prepare(brokers[1].port, groups)
        leading, next_one = 1, 2
        for _ in range(runs):
            found = fail_over(brokers[leading], brokers[next_one], next_one, groups, zookeeper)
            bench.figures.add("failover", OURS, {"groups": count}, found)
            brokers[leading].start()
            leading, next_one = next_one, leading
    report(bench, count)


def make_one_lead(brokers: dict[int, OurBroker], zookeeper: KazooClient, partitions: int) -> None:
    """Make broker 1 lead everything while broker 2 runs: stop broker 2 in order, and start it again."""
    with Sockets() as sockets:
        lean_groups.find_coordinator(sockets, brokers[1].port, "any", here=False)
    brokers[2].stop()
    wait_until(
        lambda: {leader for leader, _ in leaders(zookeeper, partitions).values()} == {1}, 30, "broker 1 to lead all"
    )
    brokers[2].start()


def report(bench: Bench, count: int) -> None:
    about, goal = {"groups": count}, (f"<= {TARGET_S:g} s", at_most_absolute(TARGET_S))
    rows = [
        Row("named leader until all answer, s", about, "named_to_answering_s", ".2f", *goal),
        Row("the slowest partition, s", about, "slowest_partition_s", ".2f"),
        Row(f"killed until all answer (session {SESSION_MS / 1000:g} s), s", about, "killed_to_answering_s", ".2f"),
        Row("CPU of the successor, loading, s", about, "cpu_s", ".2f"),
        Row("members that have to rejoin", about, "rejoins", target="0", met=at_most_absolute(0)),
    ]
    names = sorted({name for run in bench.figures.runs if run.measure == "failover" for name in run.figures})
    rows += [Row(name, about, name) for name in names if name.startswith("answers ")]
    title = f"kill -9 of the coordinator of {count:,} groups x {EACH} members, {count * EACH * PARTITIONS:,} offsets"
    bench.print_rows("failover", title, rows)
    bench.leave_out(f"{KAFKA} in failover", "a cluster with one node has no successor")
