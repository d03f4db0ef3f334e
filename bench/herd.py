"""The herd of the ZooKeeper design: our members beside the original's, in one run on one ZooKeeper.

A change (mass start, leave or join) is settled when the owner znodes match the range rule; its time ends with the
creation of the last one, by the server's clock, which is this machine's. Times are measured without the counting proxy,
counts with it. A `Subject` is a set of members of one kind; `herd_report.py` prints the tables.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import psutil

from bench.children import Child, ChildEnded
from kernel.errors import RebalanceLabError
from kernel.waiting import WaitTimeout, until
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NoNode
from tests.support.zookeeper import count_model
from tests.support.zookeeper.proxy import ZooKeeperProxy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from comparison.originals.hosts import OriginalHost, OriginalMember
    from kernel.zookeeper.session import ZooKeeperSession

TOPIC = "herd"
PARTITIONS = 100
SETTLE_S = 40.0

#: For both kinds: enough retries for any herd, a session that outlasts a busy machine, and no timed commits.
SETTINGS = {
    "rebalance.backoff.ms": "200",
    "rebalance.max.retries": "30",
    "zookeeper.session.timeout.ms": "30000",
    "zookeeper.connection.timeout.ms": "30000",
    "auto.offset.reset": "smallest",
    "auto.commit.interval.ms": "3600000",
}


class Subject(Protocol):
    """Members of one kind."""

    label: str
    processes: int
    release: str  #: version of the count model: 0.8.2 or 1.1

    async def prepare(self, group: str) -> object: ...

    async def join(self, name: str, group: str, zookeeper: str) -> None: ...

    async def leave(self, name: str, group: str) -> None: ...

    def cpu_s(self) -> float: ...

    async def failed(self) -> int | None:
        """Failed attempts so far; None if only the proxy can count them."""

    async def close(self) -> None: ...


class Ours:
    """Our members, spread over several processes."""

    release = "0.8.2"

    def __init__(self, label: str, processes: int, settings: Mapping[str, str] | None = None) -> None:
        self.label = label
        self.processes = processes
        self._settings = settings or {}
        self._children: dict[str, list[Child]] = {}
        self._places: dict[tuple[str, str], Child] = {}

    async def join(self, name: str, group: str, zookeeper: str) -> None:
        children = await self.prepare(group)
        child = self._places[group, name] = children[int(name[1:]) % self.processes]
        await child.ask(do="join", name=name, zookeeper=zookeeper, topic=TOPIC)

    async def prepare(self, group: str) -> list[Child]:
        """Start its processes, before anything is timed."""
        if group not in self._children:
            first = {**SETTINGS, "group.id": group, "rebalance.retries.while.closing": "false", **self._settings}
            self._children[group] = await asyncio.gather(
                *(asyncio.to_thread(lambda: Child("bench.herd_members", first=first)) for _ in range(self.processes))
            )
        return self._children[group]

    async def leave(self, name: str, group: str) -> None:
        await self._places[group, name].ask(do="leave", name=name)

    def cpu_s(self) -> float:
        return sum(cpu_of(child.pid) for children in self._children.values() for child in children)

    async def failed(self) -> int:
        answers = await asyncio.gather(
            *(child.ask(do="failed") for children in self._children.values() for child in children)
        )
        return sum(answer["failed"] for answer in answers)

    async def close(self) -> None:
        children = [child for some in self._children.values() for child in some]
        await asyncio.gather(*(asyncio.to_thread(child.close) for child in children))
        self._children.clear()


class Originals:
    """Original consumers of one version in one JVM, or with `one_each` in a JVM each, which starts when they join."""

    processes = 1

    def __init__(self, version: str, folder: Path, *, one_each: bool = False) -> None:
        self.label = f"{version}, one each" if one_each else version
        self.release = "1.1" if version.startswith("1.1") else "0.8.2"
        self._version, self._folder = version, folder
        self._shared = None if one_each else self._started(f"herd-{version}", 1024)
        self._members: dict[tuple[str, str], OriginalMember] = {}

    def _started(self, name: str, heap_mb: int) -> OriginalHost:
        # Imported on use, because the bench also runs without the originals.
        from comparison.originals.hosts import OriginalHost

        host = OriginalHost(self._version, self._folder, name=name, heap_mb=heap_mb, log_level="WARN")
        host.start()
        return host

    async def prepare(self, group: str) -> None:
        """Do nothing: its one process is running, or the start belongs to the join."""

    async def join(self, name: str, group: str, zookeeper: str) -> None:
        host = self._shared or await asyncio.to_thread(self._started, f"each-{group}-{name}", 64)
        member = self._members[group, name] = host.member(
            name, zookeeper=zookeeper, group=group, topics={TOPIC: 1}, properties=SETTINGS, consuming=False
        )
        await member.join()

    async def leave(self, name: str, group: str) -> None:
        member = self._members.pop((group, name))
        await member.leave()
        if self._shared is None:
            await asyncio.to_thread(member.host.close)

    def _hosts(self) -> list[OriginalHost]:
        return [self._shared] if self._shared else [member.host for member in self._members.values()]

    def cpu_s(self) -> float:
        return sum(cpu_of(host.pid) for host in self._hosts())

    async def failed(self) -> None:
        return None

    async def close(self) -> None:
        for host in self._hosts():
            await asyncio.to_thread(host.close)


def cpu_of(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def names(members: int) -> list[str]:
    return [f"m{number:03d}" for number in range(members)]


def group_of(subject: Subject, members: int) -> str:
    return f"{subject.label.replace(', ', '-').replace(' ', '-')}-{members}"


def expected(group: str, members: Iterable[str]) -> dict[int, str]:
    """{partition: thread id} according to the range rule."""
    threads = sorted(f"{group}_{name}-0" for name in members)
    quotient, remainder = divmod(PARTITIONS, len(threads))
    owners: dict[int, str] = {}
    for position, thread in enumerate(threads):
        first = quotient * position + min(position, remainder)
        owners |= dict.fromkeys(range(first, first + quotient + (position < remainder)), thread)
    return owners


@dataclass
class Change:
    """All runs of one change of one subject at one size."""

    subject: str
    what: str  #: mass start, leave or join
    members: int  #: members after the change
    seconds: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)  #: failed attempts, if known
    unsettled: int = 0  #: runs that did not settle, which `seconds` leaves out
    before: dict[str, list[float]] = field(default_factory=lambda: {"get": [], "set": []})  #: the bystander's times, ms
    during: dict[str, list[float]] = field(default_factory=lambda: {"get": [], "set": []})


@dataclass(frozen=True)
class Count:
    """One run through the counting proxy. `model` has the reads (fewest, most) without failed attempts."""

    subject: str
    what: str
    members: int
    tally: count_model.Tally
    model: tuple[int, int]
    of_failed: int  #: the model's reads of failed attempts
    notifications: int


class Herd:
    """The bench on one ZooKeeper with `brokers` brokers and a topic of `PARTITIONS` partitions."""

    def __init__(self, session: ZooKeeperSession, bystander: Child, brokers: int) -> None:
        self._session = session
        self._bystander = bystander
        self._brokers = brokers

    # -- times ---------------------------------------------------------------------------------------------------

    async def time(self, subject: Subject, members: int, runs: int) -> list[Change]:
        """Time mass starts, then leaves and joins of the last member."""
        group = group_of(subject, members)
        everybody = names(members)
        mass, leave, join = (
            Change(subject.label, what, after)
            for what, after in (("mass start", members), ("leave", members - 1), ("join", members))
        )
        where = self._session.connect_string
        await self.warm(subject, group, where)
        for run in range(runs):
            await self._round(mass, subject, group, everybody, [subject.join(n, group, where) for n in everybody])
            if run < runs - 1:
                await self._all_leave(subject, group, everybody)
        last = everybody[-1]
        for _ in range(runs):
            await self._round(leave, subject, group, everybody[:-1], [subject.leave(last, group)])
            await self._round(join, subject, group, everybody, [subject.join(last, group, where)])
        await self._all_leave(subject, group, everybody)
        return [mass, leave, join]

    async def warm(self, subject: Subject, group: str, zookeeper: str) -> None:
        """Let one member of each process join and leave, so that parent and offset znodes exist and code is loaded."""
        await subject.prepare(group)
        first = names(subject.processes)
        await asyncio.gather(*(subject.join(name, group, zookeeper) for name in first))
        await self.settled(group, first)
        await asyncio.sleep(1)  # fetchers are still reporting the reset offsets
        await self._all_leave(subject, group, first)

    async def _round(
        self, change: Change, subject: Subject, group: str, members: Sequence[str], doing: Sequence[object]
    ) -> None:
        await asyncio.wrap_future(self._bystander.next())
        await asyncio.sleep(0.7)
        before, failed_before = await asyncio.wrap_future(self._bystander.next()), await subject.failed()
        cpu_s, started = subject.cpu_s(), time.time()
        tasks = [asyncio.ensure_future(each) for each in doing]  # type: ignore[call-overload]  # coroutines
        took_cpu_s = 0.0

        async def reached() -> None:
            """Take the figures of the change now, in case this state lasts."""
            nonlocal took_cpu_s
            took_cpu_s = subject.cpu_s() - cpu_s
            during = await asyncio.wrap_future(self._bystander.next())
            for kind in ("get", "set"):
                change.during[kind] += during[kind]

        try:
            last = await self.settled(group, members, reached)
            change.seconds.append(last - started)
            change.cpu_s.append(took_cpu_s)
            failed = await subject.failed()
            if failed is not None and failed_before is not None:
                change.failed.append(failed - failed_before)
        except WaitTimeout:
            change.unsettled += 1
        for kind in ("get", "set"):
            change.before[kind] += before[kind]
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, BaseException) and not isinstance(outcome, RebalanceLabError | ChildEnded):
                raise outcome

    async def _all_leave(self, subject: Subject, group: str, members: Sequence[str]) -> None:
        await asyncio.gather(*(subject.leave(name, group) for name in members), return_exceptions=True)
        await until(lambda: self._empty(group), SETTLE_S, f"{group} to be empty", every_s=0.1)

    async def _empty(self, group: str) -> bool:
        return not await self._session.children(paths.member_ids(group))

    async def settled(
        self, group: str, members: Sequence[str], reached: Callable[[], Awaitable[None]] | None = None
    ) -> float:
        """Wait until the owner znodes are as expected and stay so; return when the last was created (wall clock, s).

        `reached` is called each time they become as expected, before it is known whether they stay so.
        """
        wanted = expected(group, members)
        seen: tuple[dict[int, str], float] = ({}, 0.0)

        async def as_wanted() -> bool:
            nonlocal seen
            # Check the last member's last partition first: reading all costs the server one read per partition.
            try:
                data, _ = await self._session.get(paths.owner(group, TOPIC, PARTITIONS - 1))
            except NoNode:
                return False
            if data.decode() != wanted[PARTITIONS - 1]:
                return False
            seen = await self._owners(group)
            return seen[0] == wanted

        while True:
            await until(
                as_wanted,
                SETTLE_S,
                lambda: f"{group} to settle; {len(set(seen[0].values()))} members own partitions",
                every_s=0.05,
            )
            ended = seen[1]
            if reached is not None:
                await reached()
            await asyncio.sleep(0.7)  # longer than a backoff, within which a failed member retries
            if await as_wanted() and seen[1] == ended:
                return ended

    async def _owners(self, group: str) -> tuple[dict[int, str], float]:
        found = await asyncio.gather(
            *(self._session.get(paths.owner(group, TOPIC, number)) for number in range(PARTITIONS)),
            return_exceptions=True,
        )
        owners, last = {}, 0.0
        for number, answer in enumerate(found):
            if isinstance(answer, NoNode):
                continue
            if isinstance(answer, BaseException):
                raise answer
            owners[number] = answer[0].decode()
            last = max(last, answer[1].ctime_ms / 1000)
        return owners, last

    # -- counts --------------------------------------------------------------------------------------------------

    async def count(self, subject: Subject, members: int) -> list[Count]:
        """Count one mass start, one leave and one join through the proxy."""
        group = f"{group_of(subject, members)}-counted"
        everybody = names(members)
        last = everybody[-1]
        counts = []
        with ZooKeeperProxy(self._session.connect_string) as proxy:
            where = proxy.connect_string
            await self.warm(subject, group, where)
            for what, after, do in (
                ("mass start", everybody, [lambda n=n: subject.join(n, group, where) for n in everybody]),
                ("leave", everybody[:-1], [lambda: subject.leave(last, group)]),
                ("join", everybody, [lambda: subject.join(last, group, where)]),
            ):
                await proxy.quiet(0.5)
                mark = proxy.mark()
                await asyncio.gather(*(each() for each in do), return_exceptions=True)
                await self.settled(group, after)
                await proxy.quiet(0.5)
                ops = [(op.connection, op.op, op.path, op.result) for op in proxy.operations(mark)]
                counts.append(self._counted(subject, group, what, len(after), ops, len(proxy.events(mark))))
            await self._all_leave(subject, group, everybody)
        return counts

    def _counted(
        self,
        subject: Subject,
        group: str,
        what: str,
        members: int,
        ops: Sequence[tuple[str, str, str, str | None]],
        notifications: int,
    ) -> Count:
        shape = count_model.Shape(members, PARTITIONS, brokers=self._brokers)
        tally = count_model.tally(ops, group)
        of_failed = tally.reads_of_failed(shape)
        if what == "mass start":  # successful attempts may read offsets more than once as well
            of_failed = tally.failed * count_model.failed_attempt(shape, 0, 0) + tally.conflicts
        model = {
            "mass start": lambda: count_model.reads_of_mass_start(shape, release=subject.release),
            "leave": lambda: (count_model.reads_of_leave(shape),) * 2,
            "join": lambda: (count_model.reads_of_join(shape, release=subject.release),) * 2,
        }[what]()
        return Count(subject.label, what, members, tally, model, of_failed, notifications)
