"""Random joins, leaves, kills, freezes and expiries of real members on a real ensemble whose servers are killed too.

A member runs in a separate process, or in this one (so that its session can expire while it runs). All write traces to
the folder, and the checks use only these and ZooKeeper itself.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from comparison.scenarios.processes.children import ChildProcess, ended_within
from comparison.scenarios.processes.fork_server import ForkServer
from comparison.scenarios.processes.member_process import MemberConfig
from kernel.assignors.thread_range import thread_range
from kernel.errors import RebalanceLabError
from kernel.tasks import cancel_and_wait
from kernel.trace.events import Role
from kernel.trace.writer import TraceIdentity, TraceWriter
from kernel.values import TopicPartition
from kernel.zookeeper import paths
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.errors import NoNode
from kernel.zookeeper.servers import leader_of
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.consumers.zookeeper import owners
from tests.support.zookeeper.sessions import expire
from zkconsumer.consumer import ZooKeeperConsumer
from zkconsumer.settings import ZkConsumerConfig
from zkconsumer.znodes.payloads import UnreadableZnode, parse_registration, thread_ids

GROUP, TOPIC, PARTITIONS = "g", "t", 8
TICK_MS, SESSION_MS, BACKOFF_MS, RETRIES = 250, 1500, 200, 8
MEMBERS_MIN, MEMBERS_MAX = 2, 6
#: Far above every bound: a group that has not settled by then never will.
NEVER_S = 40.0

#: Two are not the original's defaults: with short timers four tries would end before a dead session does, and members
#: that leave while all others rebalance would each make all of their tries first (0.8.2.2), which says nothing more.
SETTINGS = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "zookeeper.connection.timeout.ms": "15000",
    "rebalance.backoff.ms": str(BACKOFF_MS),
    "rebalance.max.retries": str(RETRIES),
    "auto.commit.interval.ms": "300",
    "auto.offset.reset": "smallest",
    "rebalance.retries.while.closing": "false",
}

Event = dict[str, object]
JUDGED_BY = frozenset(
    {
        "attempt_started",
        "attempt_ended",
        "phase_entered",
        "rebalance_triggered",
        "rebalance_started",
        "rebalance_ended",
        "records_delivered",
        "position_started",
    }
)


@dataclass
class LocalMember:
    """A member in this process."""

    name: str
    consumer: ZooKeeperConsumer
    trace: Trace
    tracer: TraceWriter
    work: asyncio.Task[None] | None = None

    async def live(self) -> None:
        """As `member_process`: after a failed first rebalance it stays registered and continues."""
        try:
            await self.consumer.start()
            await self.consumer.subscribe({TOPIC: 1})
        except RebalanceLabError as error:
            self.tracer.emit("member_failed", error=f"{type(error).__name__}: {error}")
        while True:
            await self.consumer.getmany(timeout_ms=100)

    async def leave(self) -> None:
        assert self.work is not None
        await cancel_and_wait(self.work)
        await self.consumer.close()
        self.tracer.close()


@dataclass
class ProcessMember:
    """A member in a separate process."""

    name: str
    child: ChildProcess
    trace: Trace

    async def leave(self) -> None:
        self.child.send({"command": "stop"})
        assert await ended_within(self.child, 60) == 0, self.child.log_tail()


Member = LocalMember | ProcessMember
M = TypeVar("M", LocalMember, ProcessMember)


@dataclass(frozen=True)
class Settled:
    """How a fault settled: the time and its bound, or the idle members that keep the group from settling."""

    step: int
    fault: str
    took_s: float
    bound_s: float
    idle: frozenset[str] = frozenset()

    def __str__(self) -> str:
        ended = f"idle: {', '.join(sorted(self.idle))}" if self.idle else f"{self.took_s:.2f} of {self.bound_s:.2f} s"
        return f"{self.step:3} {self.fault}: {ended}"


@dataclass
class Soak:
    """One run; `step` injects a fault, heals it, and waits until the group has settled."""

    folder: Path
    ensemble: EmbeddedZooKeeper
    fork_server: ForkServer
    session: ZooKeeperSession
    seed: int
    timed: bool  #: whether a group must also settle within its bound, which no pause of the machine prolongs
    members: list[Member] = field(default_factory=list)
    ended: list[Settled] = field(default_factory=list)
    traces: list[Trace] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chosen = random.Random(self.seed)

    # -- faults ------------------------------------------------------------------------------------------------------

    async def step(self) -> Settled:
        """Inject the seed's next fault."""
        can = [name for name, possible in self._possible().items() if possible]
        fault = self._chosen.choice(can)
        about = await getattr(self, f"_{fault}")()
        settled = await self.settle(f"{fault} {about}")
        self.ended.append(settled)
        return settled

    def _possible(self) -> dict[str, bool]:
        here = any(isinstance(member, LocalMember) for member in self.members)
        elsewhere = any(isinstance(member, ProcessMember) for member in self.members)
        few, many = len(self.members) <= MEMBERS_MIN, len(self.members) >= MEMBERS_MAX
        return {
            "join": not many,
            "join_two": not many,
            "leave": not few,
            "kill": not few and elsewhere,
            "freeze": elsewhere,
            "expire": here,
            "server": True,
        }

    async def _join(self) -> str:
        return await (self.join_local() if self._chosen.random() < 0.4 else self.join_process())

    async def _join_two(self) -> str:
        return " and ".join(await asyncio.gather(self.join_local(), self.join_process()))

    async def _leave(self) -> str:
        member = self._chosen.choice(self.members)
        self.members.remove(member)
        await member.leave()
        return member.name

    async def _kill(self) -> str:
        member = self._one(ProcessMember)
        self.members.remove(member)
        await member.child.kill()
        return member.name

    async def _freeze(self) -> str:
        """Freeze a member for less than the session timeout, or for longer."""
        member = self._one(ProcessMember)
        seconds = self._chosen.choice((0.4, 0.9, 1.7, 2.5)) * SESSION_MS / 1000
        member.child.freeze()
        await asyncio.sleep(seconds)
        member.child.thaw()
        return f"{member.name} for {seconds:.1f} s"

    async def _expire(self) -> str:
        member = self._one(LocalMember)
        await expire(member.consumer.session)
        return member.name

    async def _server(self) -> str:
        """Kill and restart one of three servers; the other two continue, possibly after an election."""
        server = self._chosen.choice(self.ensemble.servers)
        mode = await asyncio.to_thread(server.mode)
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(self._chosen.choice((0.0, 0.5)))
        await asyncio.to_thread(server.restart)
        await asyncio.to_thread(leader_of, self.ensemble.servers)
        return f"{server.number}, which was {mode}"

    def _one(self, kind: type[M]) -> M:
        return self._chosen.choice([member for member in self.members if isinstance(member, kind)])

    async def join_local(self) -> str:
        name, settings, trace = self._new_member()
        config, _ = ZkConsumerConfig.from_settings(settings)
        tracer = TraceWriter(trace.path, self._identity(name))
        member = LocalMember(name, ZooKeeperConsumer(config, tracer=tracer, process=name), trace, tracer)
        self.members.append(member)
        member.work = asyncio.create_task(member.live(), name=f"member {name}")
        return name

    async def join_process(self) -> str:
        name, settings, trace = self._new_member()
        config = MemberConfig(
            process=name,
            design="zookeeper",
            run="soak",
            scenario="soak",
            seed=self.seed,
            trace=str(trace.path),
            group=GROUP,
            topics={TOPIC: 1},
            zookeeper=self.ensemble.connect_string,
            bootstrap="",
            settings=settings,
        )
        child = await ChildProcess.spawn(
            self.fork_server,
            "comparison.scenarios.processes.member_process",
            name,
            self.folder / f"{name}.log",
            lambda _: None,
        )
        self.members.append(ProcessMember(name, child, trace))
        child.send(msgspec.to_builtins(config))
        return name

    def _new_member(self) -> tuple[str, dict[str, str], Trace]:
        name = f"m{len(self.traces)}"
        trace = Trace(self.folder / f"{name}.jsonl")
        self.traces.append(trace)
        given = {"zookeeper.connect": self.ensemble.connect_string, "group.id": GROUP, "consumer.id": name}
        return name, {**SETTINGS, **given}, trace

    def _identity(self, name: str) -> TraceIdentity:
        return TraceIdentity(
            run="soak", scenario="soak", design="zookeeper", role=Role.MEMBER, process=name, seed=self.seed
        )

    async def end(self) -> None:
        for member in list(self.members):
            self.members.remove(member)
            await member.leave()

    # -- settling ------------------------------------------------------------------------------------------------------

    async def settle(self, fault: str) -> Settled:
        """Wait until every partition has the owner given by the rule, or only idle members prevent that."""
        healed_ns, seen = time.monotonic_ns(), "nothing"
        while True:
            registered, owned = await self._registered(), await owners(self.session, GROUP)
            wanted = _by_the_rule(registered)
            took_s = (time.monotonic_ns() - healed_ns) / 1e9
            everybody = set(registered) == {f"{GROUP}_{member.name}" for member in self.members}
            if everybody and owned == wanted:
                return self._within(fault, took_s, healed_ns)
            missing = {thread.rsplit("-", 1)[0] for tp, thread in wanted.items() if owned.get(tp) != thread}
            bound_s = self._bound_s(healed_ns)
            if everybody and took_s > bound_s and missing <= (idle := self._idle()):
                return Settled(len(self.ended), fault, took_s, bound_s, frozenset(missing & idle))
            seen = f"registered {sorted(registered)}, owned {owned}, idle {sorted(self._idle())}"
            if took_s > NEVER_S:
                raise AssertionError(self.described(f"not settled {took_s:.1f} s after {fault}: {seen}"))
            await asyncio.sleep(0.05)

    def _within(self, fault: str, took_s: float, healed_ns: int) -> Settled:
        settled = Settled(len(self.ended), fault, took_s, self._bound_s(healed_ns))
        assert not self.timed or took_s <= settled.bound_s, self.described(f"settled too late: {settled}")
        return settled

    def _bound_s(self, since_ns: int) -> float:
        """Session timeout + one tick + retries x (backoff + the longest attempt since then)."""
        longest_s = max((attempt_s for attempt_s in self._attempts_s(since_ns)), default=0.0)
        return (SESSION_MS + TICK_MS + RETRIES * BACKOFF_MS) / 1000 + RETRIES * longest_s

    def _attempts_s(self, since_ns: int) -> Iterator[float]:
        """The durations of all attempts that ended since then, without backoff."""
        for member in self.members:
            began = 0
            for event in member.trace.events():
                ns = int(str(event["ns"]))
                if event["kind"] == "attempt_started":
                    began = ns
                elif began and (
                    event["kind"] == "attempt_ended"
                    or (event["kind"], event.get("phase")) == ("phase_entered", "backoff")
                ):
                    if ns >= since_ns:
                        yield (ns - max(began, since_ns)) / 1e9
                    began = 0

    def _idle(self) -> set[str]:
        """Members whose last rebalance failed, without a notification since: the original's are idle too."""
        idle = set()
        for member in self.members:
            last = ""
            for event in member.trace.events():
                if event["kind"] in ("rebalance_triggered", "rebalance_started"):
                    last = ""
                elif event["kind"] == "rebalance_ended":
                    last = str(event["outcome"])
            if last == "failed":
                idle.add(f"{GROUP}_{member.name}")
        return idle

    async def _registered(self) -> dict[str, int]:
        """{member: streams}."""
        found = {}
        try:
            for name in await self.session.children(paths.member_ids(GROUP)):
                path = paths.member_id(GROUP, name)
                data, _ = await self.session.get(path)
                found[name] = parse_registration(path, data).subscription[TOPIC]
        except (NoNode, UnreadableZnode):
            return {}
        return found

    def described(self, what: str) -> str:
        """The message with the seed, the faults so far, and the command to repeat the run."""
        before = "\n".join(str(settled) for settled in self.ended)
        again = f"python -m pytest -m 'faults or long' tests/faults/test_soak.py --seed {self.seed}"
        return f"{what}\n{before}\nseed {self.seed}, traces in {self.folder}; again: {again}"

    # -- deliveries ------------------------------------------------------------------------------------------------

    def delivered(self) -> dict[TopicPartition, list[tuple[int, int]]]:
        """(first, next) of every delivery to any member, in order of time."""
        pieces: dict[TopicPartition, list[tuple[int, int, int]]] = {}
        for trace in self.traces:
            for event in trace.events():
                if event["kind"] == "records_delivered":
                    piece = (int(str(event["ns"])), int(str(event["first"])), int(str(event["last"])) + 1)
                    pieces.setdefault(_partition(event), []).append(piece)
        return {tp: [(first, after) for _, first, after in sorted(found)] for tp, found in pieces.items()}

    def starts(self) -> dict[TopicPartition, set[int]]:
        """The offsets at which members started to deliver."""
        found: dict[TopicPartition, set[int]] = {}
        for trace in self.traces:
            for event in trace.events():
                if event["kind"] == "position_started":
                    found.setdefault(_partition(event), set()).add(int(str(event["offset"])))
        return found


@dataclass
class Trace:
    """The events of a trace that is still being written."""

    path: Path
    _known: list[Event] = field(default_factory=list)
    _read: int = 0

    def events(self) -> list[Event]:
        """The events so far; a torn last line of a killed process is skipped."""
        if self.path.exists():
            with self.path.open("rb") as file:
                file.seek(self._read)
                new = file.read()
            whole = new[: new.rfind(b"\n") + 1]
            self._read += len(whole)
            events = (msgspec.json.decode(line, type=dict[str, object]) for line in whole.splitlines())
            self._known += [event for event in events if event.get("kind") in JUDGED_BY]
        return self._known


def _partition(event: Mapping[str, object]) -> TopicPartition:
    return TopicPartition(str(event["topic"]), int(str(event["partition"])))


def _by_the_rule(registered: Mapping[str, int]) -> dict[TopicPartition, str]:
    threads = sorted(thread for member, streams in registered.items() for thread in thread_ids(member, streams))
    if not threads:
        return {}
    shares = thread_range(range(PARTITIONS), threads)
    return {TopicPartition(TOPIC, number): thread for thread, part in shares.items() for number in part}
