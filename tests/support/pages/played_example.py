"""A game of forty seconds as its page sees it, made by hand: no process is needed to show it.

Two designs with three members and six partitions; m2 of both is cut off from its authority for a while.

    game = RecordedGame(example())          # implements comparison.playground.messages.Game
    game.commands                           # what the page has sent
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field

from comparison.playground import commands as c
from comparison.playground import messages
from comparison.playground.applying import applied
from comparison.playground.live.lanes import Lanes, style_of

Recording = tuple[messages.Snapshot, tuple[messages.Increment, ...]]

_PARTITIONS = tuple(f"orders-{number}" for number in range(6))
_SHARES = {"m1": _PARTITIONS[:2], "m2": _PARTITIONS[2:4], "m3": _PARTITIONS[4:]}
_STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead")
_TABLE = (
    messages.StepRow(step="R1", phase="detect", does="list the brokers", requests="getChildren /brokers/ids"),
    messages.StepRow(step="R5", phase="release", does="delete the owner nodes, unconditionally", requests="delete x k"),
    messages.StepRow(step="R11", phase="claim", does="create the owner nodes", requests="create x k'"),
)


class _Writer:
    """Writes increments of one game."""

    def __init__(self) -> None:
        self.increments: list[messages.Increment] = []
        self._ids = 0
        self._lanes: defaultdict[str, Lanes] = defaultdict(Lanes)

    def at(self, at_ms: int, *changes: messages.AnyChange) -> None:
        self.increments.append(messages.Increment(seq=len(self.increments) + 1, at_ms=at_ms, changes=changes))

    def opened(
        self, design: str, kind: messages.IntervalKind, member: str, at_ms: int, what: str
    ) -> Iterator[messages.IntervalChanged]:
        self._lanes[design].open(kind, member, at_ms, **_named(kind, what))
        yield from self._drained(design)

    def closed(
        self, design: str, kind: messages.IntervalKind, member: str, at_ms: int, what: str
    ) -> Iterator[messages.IntervalChanged]:
        self._lanes[design].close(kind, member, at_ms, **_named(kind, what))
        yield from self._drained(design)

    def marked(self, design: str, at_ms: int, style: str, label: str, text: str) -> Iterator[messages.IntervalChanged]:
        """Something is done to m2."""
        self._lanes[design].mark(at_ms, label, style, text, ["m2"])
        yield from self._drained(design)

    def _drained(self, design: str) -> Iterator[messages.IntervalChanged]:
        return (messages.IntervalChanged(design=design, interval=each) for each in self._lanes[design].drained())

    def said(self, design: str, at_ms: int, severity: messages.Severity, text: str, **about: object) -> messages.Said:
        self._ids += 1
        sentence = messages.Sentence(id=self._ids, at_ms=at_ms, severity=severity, text=text, **about)  # type: ignore[arg-type]
        return messages.Said(design=design, sentence=sentence)


def _named(kind: messages.IntervalKind, what: str) -> dict[str, str]:
    on_partition = kind in (messages.IntervalKind.NAMED, messages.IntervalKind.DELIVERING)
    return {"partition" if on_partition else "label": what}


def example() -> Recording:
    """The first snapshot, and every increment."""
    first = messages.Snapshot(
        seq=0,
        at_ms=0,
        status=messages.Status.STARTING,
        run_folder="runs/20261123-160000-playground",
        groups=(
            messages.Group(design="zookeeper", coordinated=False, table=_TABLE, rate=120),
            messages.Group(
                design="eager", coordinated=True, states=_STATES, coordinator=messages.Coordinator(), rate=120
            ),
        ),
    )
    write = _Writer()
    for design in ("zookeeper", "eager"):
        write.at(1000, *(_member(design, name, messages.MemberState.PENDING) for name in _SHARES))
    write.at(3000, messages.StatusChanged(status=messages.Status.RUNNING, run_folder=first.run_folder))
    for design in ("zookeeper", "eager"):
        write.at(4000, *_formed(write, design))
    for design in ("zookeeper", "eager"):
        write.at(12_000, *_cut(write, design))
    write.at(15_000, *_taken_over(write, "zookeeper", two=True))
    write.at(15_300, *_taken_over(write, "eager", two=False))
    for at_ms in range(16_000, 25_000, 1000):
        counted = messages.Counters(
            notifications=9,
            zk_reads=140,
            zk_writes=24,
            two_delivering_partition_s=2 * (at_ms - 15_000) / 1000,
            delivered=at_ms // 8,
        )
        write.at(at_ms, messages.CountersChanged(design="zookeeper", counters=counted))
    write.at(25_000, *_healed(write, "zookeeper"))
    write.at(
        30_000,
        messages.WaitingChanged(
            design="zookeeper",
            waiting=(
                messages.Waiting(
                    member="m3",
                    operation="delete",
                    path="/consumers/lab/owners/orders/4",
                    step="R5",
                    rows=(1,),
                    since_ms=29_900,
                    behind=1,
                ),
            ),
        ),
    )
    write.at(34_000, messages.WaitingChanged(design="zookeeper"))
    write.at(36_000, messages.StatusChanged(status=messages.Status.ANALYSING, reason="stopped on the page"))
    report = f"{first.run_folder}/report.html"
    ended = messages.StatusChanged(
        status=messages.Status.ENDED, reason="stopped on the page", run_folder=first.run_folder, report=report
    )
    write.at(40_000, ended)
    return first, tuple(write.increments)


def _member(
    design: str, name: str, state: messages.MemberState, delivers: Sequence[str] = ()
) -> messages.MemberChanged:
    member = messages.Member(
        name=name, style=style_of(name), process=name, state=state, id=f"lab_{name}-0", delivers=tuple(delivers)
    )
    return messages.MemberChanged(design=design, member=member)


def _partition(design: str, name: str, owner: str, deliverers: Sequence[str]) -> messages.PartitionChanged:
    delivered = 380 if deliverers else 300
    made = messages.Partition(
        name=name, owner=owner, deliverers=tuple(deliverers), end=400, delivered=delivered, committed=300
    )
    return messages.PartitionChanged(design=design, partition=made)


def _formed(write: _Writer, design: str) -> Iterator[messages.AnyChange]:
    nodes = []
    for name, share in _SHARES.items():
        yield _member(design, name, messages.MemberState.RUNNING, share)
        yield from write.opened(design, messages.IntervalKind.PHASE, name, 3500, "claim")
        yield from write.closed(design, messages.IntervalKind.PHASE, name, 3900, "claim")
        nodes.append(
            messages.Znode(path=f"/consumers/lab/ids/lab_{name}-0", data="{}", ephemeral=True, changed_ms=3200)
        )
        for partition in share:
            number = partition.removeprefix("orders-")
            yield _partition(design, partition, name, (name,))
            yield from write.opened(design, messages.IntervalKind.NAMED, name, 3800, partition)
            yield from write.opened(design, messages.IntervalKind.DELIVERING, name, 3900, partition)
            nodes += [
                messages.Znode(path=f"/consumers/lab/{what}/orders/{number}", data=data, ephemeral=own, changed_ms=3800)
                for what, data, own in (("owners", f"lab_{name}-0-0", True), ("offsets", "300", False))
            ]
    yield write.said(design, 3900, messages.Severity.INFO, "m1, m2 and m3 share 6 partitions")
    if design == "zookeeper":
        yield messages.ZnodesChanged(design=design, put=tuple(nodes))
        yield messages.CountersChanged(
            design=design, counters=messages.Counters(notifications=4, zk_reads=90, zk_writes=12, delivered=500)
        )
    else:
        yield messages.CountersChanged(design=design, counters=messages.Counters(group_requests=14, delivered=500))
        stable = messages.Coordinator(
            state="Stable", since_ms=3800, reason="assignment", generation=1, leader="m1", members=tuple(_SHARES)
        )
        yield messages.CoordinatorChanged(design=design, coordinator=stable)


def _cut(write: _Writer, design: str) -> Iterator[messages.AnyChange]:
    yield _member(design, "m2", messages.MemberState.CUT, _SHARES["m2"])
    yield from write.opened(design, messages.IntervalKind.FAULT, "m2", 12_000, "cut")
    yield from write.marked(design, 12_000, "begin", "cut", "m2 is cut off from its authority")
    yield write.said(design, 12_000, messages.Severity.ACT, "m2 is cut off from its authority", members=("m2",))


def _taken_over(write: _Writer, design: str, *, two: bool) -> Iterator[messages.AnyChange]:
    for partition in _SHARES["m2"]:
        if not two:
            yield from write.closed(design, messages.IntervalKind.DELIVERING, "m2", 14_800, partition)
        yield from write.closed(design, messages.IntervalKind.NAMED, "m2", 15_000, partition)
        yield from write.opened(design, messages.IntervalKind.NAMED, "m1", 15_050, partition)
        yield from write.opened(design, messages.IntervalKind.DELIVERING, "m1", 15_100, partition)
        yield _partition(design, partition, "m1", ("m1", "m2") if two else ("m1",))
    text = (
        "m2 is cut off, but still delivers orders-2: two members deliver it"
        if two
        else "orders-2 was unowned for 0.3 s: m2 released it before m1 had it"
    )
    severity = messages.Severity.ALARM if two else messages.Severity.NOTICE
    yield write.said(design, 15_100, severity, text, members=("m1", "m2"), partition="orders-2")


def _healed(write: _Writer, design: str) -> Iterator[messages.AnyChange]:
    yield from write.closed(design, messages.IntervalKind.FAULT, "m2", 25_000, "cut")
    yield from write.marked(design, 25_000, "heal", "heal", "m2 reaches its authority again")
    yield _member(design, "m2", messages.MemberState.RUNNING)
    for partition in _SHARES["m2"]:
        yield from write.closed(design, messages.IntervalKind.DELIVERING, "m2", 25_000, partition)
        yield _partition(design, partition, "m1", ("m1",))


@dataclass
class RecordedGame:
    """Plays a recording as fast as it is read, and accepts every command."""

    recording: Recording
    commands: list[c.AnyCommand] = field(default_factory=list)
    answer: c.Answer = field(default_factory=lambda: c.Answer(accepted=True))
    until: int | None = None  #: the last increment that is played; the iteration then waits for ever
    watching: int = 0  #: subscribers now

    def snapshot(self) -> messages.Snapshot:
        """As of the last increment that is played."""
        now, increments = self.recording
        for increment in increments[: self.until]:
            now = applied(now, increment)
        return now

    async def subscribe(self, after: int | None = None) -> AsyncIterator[messages.Snapshot | messages.Increment]:
        first, increments = self.recording
        self.watching += 1
        try:
            if after is None:
                yield first
            for increment in increments[after or 0 : self.until]:
                yield increment
            if self.until is not None:
                await asyncio.Event().wait()
        finally:
            self.watching -= 1

    def scenarios(self) -> Sequence[messages.SavedScenario]:
        return ()

    async def command(self, command: c.AnyCommand) -> c.Answer:
        self.commands.append(command)
        return self.answer
