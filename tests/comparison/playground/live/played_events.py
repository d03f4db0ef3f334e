"""Events of a group as the playground folds them, in short: `scene("eager").member("m1").at(100).owns("m1", 0, 1)`."""

from __future__ import annotations

from typing import Any, Self

from comparison.playground import messages
from comparison.playground.applying import changed
from comparison.playground.live.fold import GroupFold

LIMITS = messages.Limits()


class Scene:
    """A fold, the group that a page has, and a clock in milliseconds."""

    def __init__(self, design: str, **group: Any) -> None:
        coordinated = design != "zookeeper"
        coordinator = messages.Coordinator() if coordinated else None
        self.group = messages.Group(design=design, coordinated=coordinated, coordinator=coordinator, **group)
        self.fold = GroupFold(self.group)
        self.now_ms = 0
        self.changes: list[messages.AnyChange] = []
        self._owned: dict[str, set[int]] = {}

    def at(self, now_ms: int) -> Self:
        self.now_ms = now_ms
        return self

    def event(self, kind: str, process: str = "runner", **fields: Any) -> Self:
        self.fold.apply(self.now_ms, {"kind": kind, "process": process, **fields})
        return self

    def drain(self) -> list[messages.AnyChange]:
        """What a page gets now; it applies it."""
        self.fold.tell(self.now_ms)
        self.changes = self.fold.drain(self.now_ms, self.group)
        self.group = changed(self.group, self.changes, self.now_ms, LIMITS)
        return self.changes

    def later(self, by_ms: int = 2000) -> Self:
        """Let all sentences come."""
        self.now_ms += by_ms
        self.drain()
        return self

    # -- what happens -----------------------------------------------------------------------------------------

    def member(self, process: str) -> Self:
        """A process starts and joins; its member id is `<process>-id`."""
        self.event("process_started", target=process, child_pid=1)
        return self.event("member_started", process, member=f"{process}-id", group="lab")

    def owns(self, process: str, *numbers: int, kind: str = "partitions_assigned") -> Self:
        """From now on it owns these, and no others."""
        before = self._owned.get(process, set())
        self._owned[process] = set(numbers)
        given = {*numbers} - before if kind == "partitions_assigned" else before - {*numbers}
        rows, all_ = ([{"topic": "orders", "partition": n} for n in sorted(each)] for each in (given, {*numbers}))
        return self.event(kind, process, member=f"{process}-id", stream=0, partitions=rows, all=all_)

    def fault(self, fault: str, process: str, **detail: Any) -> Self:
        return self.event("fault_started", fault=fault, target=process, detail=detail)

    def healed(self, fault: str, process: str) -> Self:
        return self.event("fault_ended", fault=fault, target=process)

    def ended(self, process: str, how: str) -> Self:
        return self.event("process_ended", target=process, how=how, code=0)

    def delivered(self, process: str, number: int, first: int, last: int) -> Self:
        where = {"topic": "orders", "partition": number, "first": first, "last": last}
        return self.event("records_delivered", process, member=f"{process}-id", stream=0, **where)

    def committed(self, process: str, number: int, offset: int, outcome: str = "accepted", error: str = "") -> Self:
        where = {"topic": "orders", "partition": number, "offset": offset}
        return self.event("commit_answered", process, member=f"{process}-id", **where, outcome=outcome, error=error)

    def named(self, owner: str, number: int) -> Self:
        kind = "authority_named" if owner else "authority_cleared"
        where = {"group": "lab", "topic": "orders", "partition": number}
        return self.event(kind, "observer", **where, owner=owner, epoch=1, reason="")

    # -- what is seen -----------------------------------------------------------------------------------------

    @property
    def told(self) -> list[str]:
        return [sentence.text for sentence in self.group.feed]

    def shown(self, name: str) -> messages.Member:
        return next(member for member in self.group.members if member.name == name)

    def partition(self, number: int) -> messages.Partition:
        return next(each for each in self.group.partitions if each.name == f"orders-{number}")

    def lanes(self, kind: messages.IntervalKind) -> list[tuple[str, str, int, int | None]]:
        """(member, partition or label, from, to) of each interval."""
        return [
            (each.member, each.partition or each.label, each.from_ms, each.to_ms)
            for each in self.group.intervals
            if each.kind is kind
        ]
