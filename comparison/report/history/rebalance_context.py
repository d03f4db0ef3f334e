"""Which events before and after a member's rebalance belong to it: what led to it, and what it led to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Event = dict[str, Any]

#: Requests whose responses may notify a member of a rebalance.
NOTIFYING = frozenset({"Heartbeat", "OffsetCommit", "AwaitCommand", "CommitOwned"})
#: Brings each member its target, where members reconcile one by one, and says what it has of it.
TARGETING = "ConsumerGroupHeartbeat"
_FETCHING = frozenset({"ListOffsets", "Fetch"})
#: Steps before a rebalance that lead to it, and the step after it.
BEFORE = frozenset({"register", "subscribe", "delivery"})
AFTER = "leader-finder"
#: An earlier response than this did not trigger the member.
_NOTIFIED_NS = 50_000_000
#: A rebalance is followed after its end until the fetchers deliver, but not longer than this.
FOLLOWED_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RebalanceContext:
    """Which of the events before and after a rebalance belong to it."""

    #: From the events since the previous rebalance: those that led to this one.
    leading: Callable[[Sequence[Event]], list[Event]]
    #: From the events until the next rebalance, and those inside: those that followed, and how many were examined.
    following: Callable[[Sequence[Event], Sequence[Event]], tuple[list[Event], int]]


def _leading(events: Sequence[Event]) -> list[Event]:
    return [e for e in events if _leads(e)]


def _leading_from_the_answer(events: Sequence[Event]) -> list[Event]:
    """The response that notified the member, and what followed; without one, what it did to join."""
    triggered = next((i for i in range(len(events) - 1, -1, -1) if events[i]["kind"] == "rebalance_triggered"), 0)
    if not triggered:
        return _leading(events)
    first = next((i for i in range(triggered - 1, -1, -1) if _notifies(events[i], events[triggered])), triggered)
    return [e for i, e in enumerate(events) if i >= first and (i == first or _leads(e))]


def _notifies(event: Event, triggered: Event) -> bool:
    if event["kind"] != "request_answered" or event["api"] not in NOTIFYING:
        return False
    says_so = event["api"] == "AwaitCommand" or bool(event["error"])
    return says_so and triggered["ns"] - event["ns"] < _NOTIFIED_NS


def _leads(event: Event) -> bool:
    if event["kind"] == "zk_op":
        return event["step"] in BEFORE
    return event["kind"] in ("zk_notified", "rebalance_triggered", "session_changed", "member_started")


def _following_what_was_given(events: Sequence[Event], inside: Sequence[Event]) -> tuple[list[Event], int]:
    """The fetchers' first requests, until a newly assigned partition is delivered."""
    given = [e["partitions"] for e in inside if e["kind"] == "partitions_assigned"]
    new = {(each["topic"], each["partition"]) for partitions in given for each in partitions}
    followed: list[Event] = []
    for place, event in enumerate(events if new else ()):
        if event["ns"] > events[0]["ns"] + FOLLOWED_NS or event["kind"] in ("rebalance_triggered", "partitions_lost"):
            return followed, place
        if event["kind"] == "records_delivered" and (event["topic"], event["partition"]) in new:
            return [*followed, event], place + 1
        if event["kind"] == "position_reset" or (event["kind"] == "request_answered" and event["api"] in _FETCHING):
            followed.append(event)
    return followed, len(events) if new else 0


def _following(events: Sequence[Event], _: Sequence[Event]) -> tuple[list[Event], int]:
    """The first search for leaders and what followed; how many events were examined."""
    followed: list[Event] = []
    for place, event in enumerate(events):
        late = event["ns"] > events[0]["ns"] + FOLLOWED_NS
        if late or event["kind"] == "zk_notified" or (event["kind"] == "zk_op" and event["step"] in BEFORE):
            return followed, place
        if event["kind"] == "records_delivered":
            return [*followed, event], place + 1
        wanted = event["kind"] in ("position_reset", "position_started", "request_answered")
        if wanted or (event["kind"] == "zk_op" and event["step"] == AFTER):
            followed.append(event)
    return followed, len(events)


def _leading_from_a_heartbeat(events: Sequence[Event]) -> list[Event]:
    """The heartbeat whose answer had the target that is taken over."""
    targets = [i for i, event in enumerate(events) if event["kind"] == "request_answered" and event["api"] == TARGETING]
    return [event for i, event in enumerate(events) if i in targets[-1:] or _leads(event)]


def _following_until_said(events: Sequence[Event], inside: Sequence[Event]) -> tuple[list[Event], int]:
    """What was given, and the next heartbeat: it says so. What comes later may belong to the next rebalance."""
    followed, _ = _following_what_was_given(events, inside)
    said = next((each for each in events if each["kind"] == "request_answered" and each["api"] == TARGETING), None)
    kept = [place for place, event in enumerate(events) if event is said or any(event is each for each in followed)]
    return [events[place] for place in kept], kept[-1] + 1 if kept else 0


WATCHED = RebalanceContext(_leading, _following)
COORDINATED = RebalanceContext(_leading_from_the_answer, _following_what_was_given)
RECONCILED = RebalanceContext(_leading_from_a_heartbeat, _following_until_said)
