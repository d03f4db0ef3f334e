"""The events that a step stops at, in words: what a group does, not the flow of records through it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    Event = Mapping[str, object]

#: What is said of each kind, by its fields.
WORDS: Mapping[str, str] = {
    "process_started": "{target} is started",
    "process_ended": "{target} has ended ({how})",
    "fault_started": "{fault} begins: {target}",
    "fault_ended": "{fault} ends: {target}",
    "change_started": "a change begins: {change}",
    "change_settled": "the group has settled after: {change}",
    "member_started": "{process} has the id {member}",
    "member_failed": "{process}: {error}",
    "member_refused": "{process} is refused for good: {error}",
    "member_closed": "{process} has closed its consumer",
    "rebalance_started": "{process} rebalances",
    "rebalance_ended": "{process} ends its rebalance: {outcome}",
    "attempt_ended": "{process} ends an attempt: {outcome}",
    "phase_entered": "{process} enters the phase {phase}",
    "partitions_assigned": "{process} gets partitions",
    "partitions_revoked": "{process} gives partitions up",
    "partitions_lost": "{process} has lost its partitions",
    "zk_op": "{process}: {op} {path}",
    "zk_notified": "{process} is notified: {event} {path}",
    "request_answered": "{process}: {api} is answered",
    "commit_answered": "{process}: a commit is {outcome}",
    "group_changed": "the group is {state}: {reason}",
    "group_member_joined": "the authority lists {id}",
    "group_member_left": "the authority no longer lists {id}",
    "authority_named": "the authority names {owner} for {topic}-{partition}",
    "authority_cleared": "the authority no longer names {owner} for {topic}-{partition}",
    "offset_refused": "a commit of {topic}-{partition} by {by} is refused",
    "zk_waiting": "{process} waits before {op} {path}",
}
#: Requests that flow as long as records do.
_FLOW = frozenset({"Fetch", "Produce"})


def told(event: Event) -> str:
    """What an event says; '' if no step stops there."""
    words = WORDS.get(str(event["kind"]))
    if words is None or event.get("api") in _FLOW or (event["kind"] == "zk_waiting" and not event.get("op")):
        return ""
    return words.format_map(_Fields(event))


class _Fields(dict[str, object]):
    """An event's fields; one that it lacks is '?'."""

    def __missing__(self, key: str) -> str:
        return "?"
