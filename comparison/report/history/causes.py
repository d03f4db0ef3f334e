"""Why nobody, or two members, had a partition for a while: the chain of events that the trace has of it. Pure.

A chain names only what was traced, in the order of time: what was done to the owner, what its authority did thereupon,
why the members rebalanced, and who was assigned the partition. Where none of it says how it began, the chain is `known`
to be without a cause.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, Protocol

from comparison.designs.profile import DELAY
from comparison.ownership.fold import Ownership
from comparison.ownership.groups import Memberships
from comparison.report.history.causes_index import NS_PER_MS, CauseIndex, ends_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from comparison.ownership.fold import Interval, Key
    from comparison.report.history.causes_index import Event

#: What is closer to a stretch than this belongs to it: the last poll came some time before what stopped the polls.
NEAR_NS = 1_000 * NS_PER_MS
#: The place of the partition in what a link says, and the roles of processes.
IT, OWNER, NEW_OWNER, LEADER = "{it}", "owner", "new owner", "new leader"
ROLES = (OWNER, NEW_OWNER, LEADER)
BEGAN = "began a rebalance"
#: Began one, too, after the coordinator's word.
HEARD = "heard of the rebalance with the next heartbeat"
#: Triggers that tell a member of a rebalance of the group; by others it began one itself.
NOTIFIED = frozenset({"group-rebalancing", "target-changed", "stop-command", "members"})
JOINING = frozenset({"subscribe", "start"})
#: A link of the chain that follows the one before it sooner is left out, if it only says that one followed the other.
AT_ONCE_NS = 100 * NS_PER_MS


class Names(Protocol):
    """The short names of a run's members."""

    def of_owner(self, owner: str, /) -> str:
        """Of `process/member/stream`."""

    def of_whole(self, member: str | None, process: str = "", /) -> str:
        """Of a member with all its streams."""


class Waited(NamedTuple):
    """A rebalance waited for a member of a process for so long that others stood still."""

    from_ns: int
    until_ns: int
    who: str
    process: str


class Link(NamedTuple):
    """Something that happened: who did it, or to whom it was done."""

    at_ns: int
    who: str
    what: str  #: with IT in the place of the partition
    is_cause: bool = True  #: else it only says what followed
    is_timed: bool = True  #: else it was so all the time
    role: str = ""  #: OWNER or NEW_OWNER, where it is no matter which member that is


class Causes:
    """The chains of one run."""

    def __init__(self, events: Sequence[Event], authority: str, names: Names, waits: Sequence[Waited] = ()) -> None:
        """The events in the order of time."""
        self._seen, self._authority, self._names, self._waits = CauseIndex(events), authority, names, waits
        claims = Ownership(Memberships.of_events(events).group)
        for event in events:
            claims.take(event, event["ns"])
        self._believed: defaultdict[Key, list[Interval]] = defaultdict(list)
        self._named: defaultdict[Key, list[Interval]] = defaultdict(list)
        for each in claims.intervals:
            (self._believed if each.unit else self._named)[each.key].append(each)

    def standstill(self, key: Key, low: int, high: int) -> list[Link]:
        """Nothing was delivered from a partition between two moments."""
        before = next(
            (each for each in reversed(self._believed[key]) if each.from_ns <= low <= _end(each) + NEAR_NS), None
        )
        after = next((each for each in self._believed[key] if low < each.from_ns <= high < _end(each)), None)
        found = list(self._of_owner(before, low, high)) if before is not None else []
        if before is None and after is not None:
            found.append(Link(low, "", f"nobody had been assigned {IT} before", is_timed=False))
        if after is not None:
            found += self._of_new_owner(before, after, low, high)
        if before is not None and _end(before) >= high and not any(link.is_cause for link in found):
            found += self._while_owned(before, low, high)
        if not any(link.is_cause for link in found):
            found += self._elsewhere(low - NEAR_NS, high)
        return _in_order(found)

    def overlap(self, key: Key, low: int, high: int) -> list[Link]:
        """Two members delivered a partition between two moments."""
        owners = [each for each in self._believed[key] if each.from_ns < high and _end(each) > low]
        if not owners:
            return []
        old, found = owners[0], []
        assert old.unit is not None, "a unit believes"
        who, process = self._owner(old), old.unit.process
        for fault in self._seen.faults_of(process, low - NEAR_NS, high):
            found.append(Link(fault.from_ns, who, fault.words))
            if fault.fault == "freeze" and fault.healed_ns is not None and fault.healed_ns <= high:
                found.append(Link(fault.healed_ns, who, "woke up, and went on with what it had", is_cause=False))
        found += self._departure(old, old.from_ns, high)
        found += [Link(each.from_ns, self._owner(each), f"was assigned {IT}", is_cause=False) for each in owners[1:]]
        if not any(link.is_cause for link in found) and (new := owners[-1].unit) is not None:
            found += self._why_rebalanced(new.process, owners[-1].from_ns)
        if low <= _end(old) <= high + NEAR_NS:
            found.append(Link(_end(old), who, _ENDS.get(old.closed_by, "ended"), is_cause=False))
        return _in_order(found)

    def unnamed(self, key: Key, low: int, high: int) -> list[Link]:
        """The authority named nobody as the owner of a partition between two moments."""
        before = next((each for each in self._named[key] if _end(each) == low), None)
        after = next((each for each in self._named[key] if each.from_ns == high), None)
        found = []
        if before is not None:
            who, process = (
                self._names.of_whole(self._seen.member_of(before.owner), ""),
                self._seen.process_of(before.owner),
            )
            found += [Link(each.from_ns, who, each.words) for each in self._seen.faults_of(process, low - NEAR_NS, low)]
            found.append(Link(low, who, f"was its owner no longer ({before.closed_by})"))
            found += self._why_rebalanced(process, high) if process else []
        if after is not None:
            found.append(
                Link(high, self._names.of_whole(self._seen.member_of(after.owner), ""), "was named", is_cause=False)
            )
        return _in_order(found)

    # -- parts of a chain --------------------------------------------------------------------------------------------

    def _owner(self, owned: Interval) -> str:
        assert owned.unit is not None, "a unit believes"
        return self._names.of_owner(str(owned.unit))

    def _of_owner(self, owned: Interval, low: int, high: int) -> Iterator[Link]:
        """What was done to the owner, and how it ceased to be it."""
        assert owned.unit is not None, "a unit believes"
        who, process = self._owner(owned), owned.unit.process
        befell = [Link(each.from_ns, who, each.words) for each in self._seen.faults_of(process, low - NEAR_NS, high)]
        if not befell and (end := self._seen.end_of(process, low - NEAR_NS, high)) is not None:
            befell.append(Link(end["ns"], who, ends_of(end["how"])))
        yield from befell
        yield from self._departure(owned, min([low, *(each.at_ns for each in befell)]), high)
        if owned.closed_by in ("revoked", "lost", "reassigned") and low - NEAR_NS <= _end(owned) <= high:
            if not befell:
                yield from self._why_rebalanced(process, _end(owned))
            if owned.closed_by != "reassigned":
                is_cause = owned.closed_by == "lost"
                yield Link(_end(owned), who, _ENDS[owned.closed_by], is_cause=is_cause, role="" if is_cause else OWNER)

    def _departure(self, owned: Interval, since: int, until: int) -> Iterator[Link]:
        """The authority removed the owner's member."""
        assert owned.unit is not None, "a unit believes"
        left = self._seen.departure(owned.unit.member, since - AT_ONCE_NS, until)
        if left is not None and left["reason"] != "leave":
            yield Link(
                self._seen.known_ns(left),
                self._authority,
                f"{_removed(left['reason'])} {self._owner(owned)}{_why(left['reason'])}",
            )

    def _of_new_owner(self, before: Interval | None, after: Interval, low: int, high: int) -> Iterator[Link]:
        """How somebody came to own it."""
        assert after.unit is not None, "a unit believes"
        who, process = self._owner(after), after.unit.process
        began = self._seen.rebalance_of(process, after.from_ns)
        if began is not None and began["ns"] > low:
            what = HEARD if self._seen.is_by_heartbeat(began) else BEGAN
            yield Link(began["ns"], who, what, is_cause=False, role=NEW_OWNER)
            if before is None or before.unit is None or before.unit.process == process:
                yield from self._why_rebalanced(process, after.from_ns)
        yield from self._given_to_nobody(after, low)
        yield from self._waited_for(after, low)
        yield Link(after.from_ns, who, f"was assigned {IT}", is_cause=False, role=NEW_OWNER)
        if high - after.from_ns >= AT_ONCE_NS:
            befell = self._seen.faults_of(process, after.from_ns, high)
            yield from (Link(each.from_ns, who, each.words) for each in befell)
            if not befell:
                yield from self._hindered(after, after.from_ns - NEAR_NS, high)
            yield Link(high, who, f"delivered from {IT}", is_cause=False, role=NEW_OWNER)

    def _waited_for(self, after: Interval, low: int) -> Iterator[Link]:
        """The members for which the rebalance waited that gave it to somebody, and what had been done to them."""
        for wait in self._waits:
            if (
                abs(after.from_ns - wait.until_ns) < AT_ONCE_NS
                and wait.until_ns - max(low, wait.from_ns) >= 2 * AT_ONCE_NS
            ):
                befell = self._seen.faults_of(wait.process, wait.from_ns, wait.until_ns)
                yield from (Link(each.from_ns, wait.who, each.words) for each in befell)
                yield Link(wait.from_ns, "", f"the rebalance began to wait for {wait.who}")

    def _given_to_nobody(self, after: Interval, low: int) -> Iterator[Link]:
        """A rebalance of the whole group after which the authority named nobody."""
        for ended_ns in self._seen.rounds_ended(low, after.from_ns - AT_ONCE_NS):
            soon_ns = ended_ns + AT_ONCE_NS // 2
            if not any(each.from_ns <= soon_ns < _end(each) for each in self._named[after.key]):
                is_kept = self._seen.is_scheduled(ended_ns, after.from_ns)
                why = f" ({DELAY} keeps {IT} for whoever had {IT})" if is_kept else ""
                yield Link(ended_ns, "", f"a rebalance ended that gave {IT} to nobody{why}")
                return

    def _why_rebalanced(self, process: str, at_ns: int) -> Iterator[Link]:
        """What made a process begin the rebalance that it was in; what made it begin an earlier one did not."""
        began, earlier_ns = self._seen.rebalance_of(process, at_ns), 0
        if began is None:
            return
        if (earlier := self._seen.rebalance_of(process, began["ns"] - 1)) is not None:
            earlier_ns = earlier["ns"]
        if began["trigger"] == "target-changed":  # a target is taken over in several of them
            earlier_ns = 0
        moved, state = self._seen.membership_behind(began), self._seen.state_behind(began)
        is_told, joins = began["trigger"] in NOTIFIED, began["trigger"] in JOINING
        if moved is not None and moved["ns"] > earlier_ns and (is_told or (joins and self._is_of(moved, process))):
            yield from self._of_membership(moved)
        elif state is not None and state["ns"] > earlier_ns and is_told:
            yield Link(state["ns"], "", f"the group rebalanced ({state['reason']})")
        else:
            yield Link(began["ns"], self._names.of_whole(began["member"], process), f"{BEGAN} ({began['trigger']})")

    def _is_of(self, moved: Event, process: str) -> bool:
        return self._seen.process_of(moved["id"]) == process

    def _of_membership(self, moved: Event) -> Iterator[Link]:
        process = self._seen.process_of(moved["id"])
        who = self._names.of_whole(moved["id"], process)
        if moved["kind"] == "group_member_joined":
            yield Link(self._seen.known_ns(moved), who, "joined the group")
            return
        befell = [*self._seen.faults_of(process, moved["ns"] - 60 * NEAR_NS, moved["ns"] + 1)][-1:]
        yield from (Link(each.from_ns, who, each.words) for each in befell)
        ended = self._seen.end_of(process, moved["ns"] - 60 * NEAR_NS, moved["ns"] + AT_ONCE_NS)
        if not befell and ended is not None:
            yield Link(min(ended["ns"], self._seen.known_ns(moved)), who, ends_of(ended["how"]))
        elif moved["reason"] == "leave":
            yield Link(self._seen.known_ns(moved), who, "left the group")
        else:
            yield Link(
                self._seen.known_ns(moved), self._authority, f"{_removed(moved['reason'])} {who}{_why(moved['reason'])}"
            )

    def _while_owned(self, owned: Interval, low: int, high: int) -> Iterator[Link]:
        """What kept an owner that remained from delivering."""
        assert owned.unit is not None, "a unit believes"
        who, process = self._owner(owned), owned.unit.process
        began = self._seen.rebalance_of(process, high)
        if began is not None and self._seen.ended_ns(began) > low:
            yield from self._why_rebalanced(process, high)
            yield Link(began["ns"], who, BEGAN, is_cause=False)
        yield from self._hindered(owned, low - NEAR_NS, high)

    def _hindered(self, owned: Interval, low: int, high: int) -> Iterator[Link]:
        """What kept an owner from fetching: its broker, or its application."""
        assert owned.unit is not None, "a unit believes"
        who, process, key = self._owner(owned), owned.unit.process, owned.key
        refused = [e for e in self._seen.of_partition("fetch_refused", key, low, high) if e["process"] == process]
        led = self._seen.of_partition("leader_changed", key, low, high)
        if refused or led:
            yield from self._elsewhere(low, high)
        for event in refused[:1]:
            yield Link(event["ns"], who, f"could not fetch {IT} ({event['error']})", role=OWNER)
        for event in led[-1:]:
            said = f"took {IT} over" if event["leader"] >= 0 else f"stopped leading {IT}"
            yield Link(event["ns"], event["process"], said, role=LEADER)
        for event in self._seen.listed("partitions_paused", process, key, low, high)[:1]:
            yield Link(event["ns"], who, f"had {IT} paused by its application", role=OWNER)

    def _elsewhere(self, low: int, high: int) -> Iterator[Link]:
        """What was done to a broker or a server at that time, or else shortly before."""
        faults = self._seen.faults_elsewhere(low + NEAR_NS - AT_ONCE_NS, high) or self._seen.faults_elsewhere(low, high)
        yield from (Link(fault.from_ns, fault.target, fault.words) for fault in faults)


#: How a claim ends that its stream closed itself, or its process.
_ENDS = {
    "revoked": f"gave {IT} up",
    "lost": f"noticed that it had lost {IT}",
    "member": "left the group",
    "process": "ended",
}


def _removed(reason: str) -> str:
    return "ended the session of" if reason == "session" else "removed"


def _why(reason: str) -> str:
    return {"session": "", "id gone": ", whose id was gone from ZooKeeper,"}.get(reason, f" ({reason})")


def _end(each: Interval) -> int:
    return 1 << 62 if each.until_ns is None else each.until_ns


def _in_order(links: Iterable[Link]) -> list[Link]:
    """Each once, in the order of time; what followed at once and only says so is left out, but for the last one."""
    ordered = sorted(dict.fromkeys(links), key=lambda link: link.at_ns)
    kept: list[Link] = []
    for place, link in enumerate(ordered):
        is_last = place == len(ordered) - 1
        says_little = link.what in (BEGAN, HEARD) and kept and link.at_ns - kept[-1].at_ns < AT_ONCE_NS
        is_said = any(link.at_ns == other.at_ns and other.what.startswith(f"{BEGAN} (") for other in ordered)
        if is_last or not (says_little or (is_said and link.what in (BEGAN, HEARD))):
            kept.append(link)
    return kept
