"""Folds a group's events into what the page shows. Pure: events and the time in, changes out.

The events are those of the trace, in the order of their times, and three more kinds that no trace has:

- `authority_named`, `authority_cleared`, `group_member_joined` and `group_member_left` of an observer that watches
  ZooKeeper, which the trace gets from ZooKeeper's log only after the game;
- `zk_waiting` of a member that is stepped;
- `rate_set`, the load's rate.

`OF_GROUP` and `OF_MEMBERS` say which kinds are used, and what handles them. Znodes come as whole trees (`see_tree`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from comparison.ownership.cover import Cover
from comparison.ownership.fold import Key
from comparison.playground import messages
from comparison.playground.live.counting import Counting
from comparison.playground.live.feed import Fact, Feed
from comparison.playground.live.lanes import Lanes
from comparison.playground.live.ownership import LiveOwnership, place_of
from comparison.playground.live.roster import Roster
from comparison.playground.live.tree import Tree
from comparison.results.counts import MEMBER
from comparison.screen.counted import counted
from comparison.screen.natural_order import natural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from comparison.playground.live.tree import Seen

    Event = Mapping[str, object]

NS_PER_MS = 1_000_000


class GroupFold:
    """One design's group, from its first state on, which has neither members nor partitions."""

    def __init__(self, first: messages.Group, *, is_told: bool | None = None) -> None:
        """`is_told`: the authority's own word about commits comes among the events, in time; a coordinator's does."""
        self._design = first.design
        self._feed = Feed(coordinated=first.coordinated)
        self._lanes = Lanes()
        self._counting = Counting(self._feed, is_told=first.coordinated if is_told is None else is_told)
        self._cover = Cover()
        self._figures = (0, 0)
        self._ownership = LiveOwnership(self._cover.ownership, self._lanes, self._feed)
        self._roster = Roster(first.table, self._lanes, self._feed, self._ownership, coordinated=first.coordinated)
        self._tree = Tree()
        self._admitted: dict[str, None] = {}  #: ids that the authority lists as members
        self._coordinator = first.coordinator
        self._rate = first.rate
        self._over = False
        self._told: list[messages.Sentence] = []  #: and not drained
        self._handlers: Mapping[str, Callable[[float, Event], None]] = {
            **{kind: getattr(self, name) for kind, name in OF_GROUP.items()},
            **{kind: getattr(self._roster, name) for kind, name in OF_MEMBERS.items()},
        }

    # -- in ---------------------------------------------------------------------------------------------------

    def apply(self, at_ms: float, event: Event) -> None:
        """Fold one event, which happened at this time of the game; unknown kinds are ignored.

        Once everything is being stopped nothing is shown any more: the end of the game is not part of it. Records and
        commits are counted to the end, as the analysis does.
        """
        member = place_of(str(event.get("process", "")))
        is_member = member in self._roster.members
        who = member if is_member else self._roster.place(str(event.get("by", "")))
        self._counting.count(int(at_ms), MEMBER if is_member else "", who, event)
        if self._over:
            return
        self._cover.take(event, round(at_ms * NS_PER_MS))
        if is_member and event.get("member") and str(event["member"]) not in self._roster.places:
            self._roster.places[str(event["member"])] = member
            # The authority may have named it before it said its first word.
            self._ownership.know(self._roster.place)
        if handler := self._handlers.get(str(event["kind"])):
            handler(at_ms, event)

    def see_tree(self, at_ms: float, seen: Mapping[str, Seen]) -> None:
        """All znodes of the group, as just read."""
        if not self._over:
            self._tree.see(int(at_ms), seen)

    # -- out --------------------------------------------------------------------------------------------------

    def tell(self, at_ms: int) -> None:
        """Make sentences of what is known and over by now."""
        if not self._over:
            self._ownership.advance(at_ms)
        self._told += self._feed.due(at_ms)

    def drain(self, at_ms: int, before: messages.Group, *, measured: bool = True) -> list[messages.AnyChange]:
        """What has changed, and was told, since the last call, after which the group was as `before`.

        Not `measured`: the times among the counters, which cost most of it, stay as they were.
        """
        design, roster = self._design, self._roster
        leader = roster.decider if self._coordinator is not None else ""
        known = {each.name: each for each in before.members}
        shown = [roster.shown(name, leads=name == leader) for name in roster.members]
        found: list[messages.AnyChange] = [
            messages.MemberChanged(design=design, member=member) for member in shown if member != known.get(member.name)
        ]
        partitions = map(self._partition, sorted(self._ownership.changed | self._counting.changed, key=natural))
        found += [messages.PartitionChanged(design=design, partition=partition) for partition in partitions]
        self._ownership.changed.clear()
        self._counting.changed.clear()
        if measured:
            self._figures = self._cover.figures(at_ms * NS_PER_MS)
        two_ns, unowned_ns = self._figures
        counters = self._counting.counters(two_ns=two_ns, unowned_ns=unowned_ns)
        if counters != before.counters:
            found.append(messages.CountersChanged(design=design, counters=counters))
        if self._coordinator is not None:
            members = tuple(sorted({roster.place(each) for each in self._admitted}, key=natural))
            self._coordinator = replace(self._coordinator, members=members, leader=leader)
            if self._coordinator != before.coordinator:
                found.append(messages.CoordinatorChanged(design=design, coordinator=self._coordinator))
        put, gone = self._tree.drained()
        if put or gone:
            found.append(messages.ZnodesChanged(design=design, put=put, gone=gone))
        if roster.waiting != before.waiting:
            found.append(messages.WaitingChanged(design=design, waiting=roster.waiting))
        if self._rate != before.rate:
            found.append(messages.RateChanged(design=design, rate=self._rate))
        found += [messages.IntervalChanged(design=design, interval=each) for each in self._lanes.drained()]
        found += [messages.Said(design=design, sentence=each) for each in self._told]
        self._told.clear()
        return found

    def _partition(self, name: str) -> messages.Partition:
        counting = self._counting
        return messages.Partition(
            name=name,
            owner=self._ownership.named.get(name, ""),
            deliverers=self._ownership.deliverers(name),
            frozen=self._ownership.frozen(name),
            end=counting.ends.get(name, 0),
            delivered=counting.delivered.get(name, 0),
            committed=counting.committed.get(name, 0),
        )

    # -- the runner -------------------------------------------------------------------------------------------

    def stage_entered(self, _at_ms: float, event: Event) -> None:
        self._over = event["stage"] == "stop"

    def rate_set(self, at_ms: float, event: Event) -> None:
        rate = event["rate"]
        assert isinstance(rate, int)
        if rate != self._rate:
            text = f"the producer now sends {counted(rate, 'record')}/s"
            self._feed.say(int(at_ms), messages.Severity.ACT, text)
            self._lanes.mark(at_ms, f"{rate}/s", "change", text)
        self._rate = rate

    # -- the authority ----------------------------------------------------------------------------------------

    def named(self, at_ms: float, event: Any) -> None:
        key = Key(event["group"], event["topic"], event["partition"])
        self._ownership.look_named(at_ms, key, self._roster.place)

    def group_member_joined(self, _at_ms: float, event: Event) -> None:
        self._admitted[str(event["id"])] = None

    def group_member_left(self, at_ms: float, event: Event) -> None:
        id_ = str(event["id"])
        self._admitted.pop(id_, None)
        reason = "its id znode is gone" if event["reason"] == "gone" else str(event["reason"])
        self._feed.add(int(at_ms), Fact("left", (self._roster.place(id_),), reason))

    def group_changed(self, at_ms: float, event: Event) -> None:
        if self._coordinator is None:
            return
        state, generation, reason = str(event["state"]), event["generation"], str(event["reason"])
        assert isinstance(generation, int)
        if state in ("PreparingRebalance", "Assigning"):
            self._feed.add(int(at_ms), Fact("begins", (), reason))
        elif state == "Stable":
            members = counted(int(str(event["members"])), "member")
            said = f"generation {generation} is in force, with {members}"
            if self._coordinator.state in ("Assigning", "Reconciling"):
                said = f"epoch {generation}: each of {members} has its target"
            self._feed.say(int(at_ms), messages.Severity.INFO, said)
        known = self._coordinator
        self._coordinator = replace(
            known,
            state=state,
            came_from=known.came_from if state == known.state else known.state,
            since_ms=int(at_ms),
            reason=reason,
            generation=generation,
        )


#: What handles each kind of event that does more than count: a method of `GroupFold` ...
OF_GROUP: Mapping[str, str] = {
    kind: kind
    for kind in (
        "stage_entered",
        "rate_set",
        "group_member_joined",
        "group_member_left",
        "group_changed",
    )
} | dict.fromkeys(("authority_named", "authority_cleared"), "named")
#: ... or of `Roster`.
OF_MEMBERS: Mapping[str, str] = {
    kind: kind
    for kind in (
        "process_started",
        "process_ended",
        "fault_started",
        "fault_ended",
        "change_started",
        "member_started",
        "member_failed",
        "member_refused",
        "rebalance_started",
        "phase_entered",
        "attempt_ended",
        "rebalance_ended",
        "zk_waiting",
    )
} | dict.fromkeys(("partitions_assigned", "partitions_revoked", "partitions_lost", "member_closed"), "claimed")
