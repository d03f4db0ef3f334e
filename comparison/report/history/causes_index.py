"""A run's events by what chains of causes ask of them: faults of a process, departures of a member, rebalances."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comparison.ownership.fold import Key

    Event = dict[str, Any]

NS_PER_MS = 1_000_000
#: A group's state changes to one of these when a rebalance begins.
_BEGINS = frozenset({"PreparingRebalance", "Assigning"})
#: Which of the authority's events stands behind a rebalance, by the reason of its group's change of state.
_JOINED, _LEFT = "group_member_joined", "group_member_left"
_MOVES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "member added": (_JOINED,),
        "member joined": (_JOINED,),
        "member left": (_LEFT,),
        "session expired": (_LEFT,),
        "members changed": (_JOINED, _LEFT),
    }
)
#: The target of a fault of every member.
_ALL_MEMBERS = "members"
#: A member joins or leaves within this of the change of state that it causes.
_TOGETHER_NS = 50 * NS_PER_MS
#: What a fault did to its target; of others, their name says it.
_DONE: Mapping[str, str] = MappingProxyType(
    {
        "kill": "was killed",
        "freeze": "was frozen",
        "cut": "was cut off",
        "expire": "had its session ended",
        "slow": "took long over a record",
        "restart": "was restarted",
        "unsubscribe": "unsubscribed",
        "quorum-loss": "lost its quorum",
        "slow-listener": "took long in its rebalance listener",
        "paused-partitions": "paused its partitions",
    }
)
_ENDED: Mapping[str, str] = MappingProxyType({"kill": "was killed", "leave": "left", "stop": "was stopped"})


@dataclass(frozen=True, slots=True)
class FaultTold:
    """A fault of one target."""

    fault: str
    target: str
    from_ns: int
    healed_ns: int | None

    @property
    def words(self) -> str:
        return _DONE.get(self.fault, f"had the fault {self.fault}")


def ends_of(how: str) -> str:
    return _ENDED.get(how, f"ended ({how})")


class CauseIndex:
    """Read once; every question is about moments in the nanoseconds of the events."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._by_kind: defaultdict[str, list[Event]] = defaultdict(list)
        self._processes: dict[str, str] = {}
        for event in events:
            self._by_kind[event["kind"]].append(event)
            if event["kind"] in ("member_started", "rebalance_started", "partitions_assigned") and event["member"]:
                self._processes.setdefault(event["member"], event["process"])
        self._rebalances: defaultdict[str, list[Event]] = defaultdict(list)
        for event in self._by_kind["rebalance_started"]:
            self._rebalances[event["process"]].append(event)
        self._faults = list(self._read_faults())

    def _read_faults(self) -> Iterator[FaultTold]:
        ends = self._by_kind["fault_ended"]
        for event in self._by_kind["fault_started"]:
            place = event["fault"], event["target"]
            healed = (e["ns"] for e in ends if e["ns"] >= event["ns"] and (e["fault"], e["target"]) == place)
            yield FaultTold(event["fault"], event["target"], event["ns"], next(healed, None))

    def member_of(self, owner: str) -> str:
        """The member whom the authority names: by its id, or as a thread of it."""
        return owner if owner in self._processes else owner.rpartition("-")[0]

    def process_of(self, member: str) -> str:
        return self._processes.get(member, "") or self._processes.get(member.rpartition("-")[0], "")

    def faults_of(self, process: str, low: int, high: int) -> list[FaultTold]:
        """Those that the process had at some moment between two: its own, those of its links, and all members'."""
        return [each for each in self._present(low, high) if each.target.partition("->")[0] in (process, _ALL_MEMBERS)]

    def faults_elsewhere(self, low: int, high: int) -> list[FaultTold]:
        """Those of processes that are no members."""
        members = {*self._processes.values(), _ALL_MEMBERS}
        return [each for each in self._present(low, high) if each.target.partition("->")[0] not in members]

    def _present(self, low: int, high: int) -> list[FaultTold]:
        return [each for each in self._faults if each.from_ns < high and (each.healed_ns or 1 << 62) >= low]

    def end_of(self, process: str, low: int, high: int) -> Event | None:
        ended = (e for e in self._by_kind["process_ended"] if e["target"] == process and low <= e["ns"] <= high)
        return next(ended, None)

    def departure(self, member: str, low: int, high: int) -> Event | None:
        """The authority removed this member."""
        left = (e for e in self._by_kind["group_member_left"] if e["id"] == member and low <= e["ns"] <= high)
        return next(left, None)

    def rebalance_of(self, process: str, at_ns: int) -> Event | None:
        """The last rebalance that a process had begun by then."""
        begun = self._rebalances[process]
        place = bisect_right(begun, at_ns, key=lambda event: event["ns"])
        return begun[place - 1] if place else None

    def is_by_heartbeat(self, began: Event) -> bool:
        """A member began a rebalance because the answer to a heartbeat said that the group rebalances."""
        if began["trigger"] != "group-rebalancing":
            return False
        mine = (e for e in self._by_kind["request_answered"] if e["process"] == began["process"])
        told = [e for e in mine if e["error"] == "REBALANCE_IN_PROGRESS" and e["ns"] <= began["ns"]]
        return bool(told) and told[-1]["api"] == "Heartbeat"

    def is_scheduled(self, low: int, high: int) -> bool:
        """A member began a rebalance because a delay of the assignment was over."""
        return any(e["trigger"] == "scheduled" and low < e["ns"] <= high for e in self._by_kind["rebalance_started"])

    def ended_ns(self, began: Event) -> int:
        """When a rebalance ended."""
        ended = (e["ns"] for e in self._by_kind["rebalance_ended"] if e["process"] == began["process"])
        return next((ns for ns in ended if ns >= began["ns"]), 1 << 62)

    def known_ns(self, moved: Event) -> int:
        """When a member joined or left: not after the rebalances that this began. ZooKeeper's log has milliseconds."""
        if not str(moved["cause"]).startswith("zxid:"):
            return int(moved["ns"])
        begun: Iterator[int] = (e["ns"] for e in self._by_kind["rebalance_started"] if e["cause"] == moved["cause"])
        return min([int(moved["ns"]), *begun])

    def rounds_ended(self, low: int, high: int) -> list[int]:
        """When rebalances of a classic group ended with an assignment."""
        return [
            event["ns"]
            for event in self._by_kind["group_changed"]
            if event["reason"] == "assignment stored" and event["state"] == "Stable" and low <= event["ns"] <= high
        ]

    def state_behind(self, began: Event) -> Event | None:
        """The coordinator's word that the group rebalances, behind a member's rebalance."""
        states = [e for e in self._by_kind["group_changed"] if e["state"] in _BEGINS]
        place = bisect_right(states, began["ns"], key=lambda event: event["ns"])
        return states[place - 1] if place else None

    def membership_behind(self, began: Event) -> Event | None:
        """The member that joined or was removed, if that is behind a rebalance."""
        moved = [*self._by_kind[_LEFT], *self._by_kind[_JOINED]]
        if str(began["cause"]).startswith("zxid:"):
            return next((event for event in moved if event["cause"] == began["cause"]), None)
        state = self.state_behind(began)
        if state is None:
            return None
        kinds = _MOVES.get(state["reason"], ())
        near = [e for e in moved if e["kind"] in kinds and abs(e["ns"] - state["ns"]) <= _TOGETHER_NS]
        return min(near, key=lambda event: abs(event["ns"] - state["ns"]), default=None)

    def of_partition(self, kind: str, key: Key, low: int, high: int) -> list[Event]:
        return [
            event
            for event in self._by_kind[kind]
            if low <= event["ns"] <= high and (event["topic"], event["partition"]) == (key.topic, key.partition)
        ]

    def listed(self, kind: str, process: str, key: Key, low: int, high: int) -> list[Event]:
        """Those of a process that list the partition."""
        wanted = {"topic": key.topic, "partition": key.partition}
        return [
            event
            for event in self._by_kind[kind]
            if low <= event["ns"] <= high and event["process"] == process and wanted in event["partitions"]
        ]
