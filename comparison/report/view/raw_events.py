"""Events as they were traced, for the details of a moment: each with its member's short name and its partitions."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from comparison.report.view.model import RawEvent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from comparison.report.history.group_history import Event
    from comparison.report.view.naming import MemberNames

#: Longer texts are cut: an assignment may have thousands of partitions.
TEXT_MAX = 300
#: What is of most use beside a lane comes first; kinds that are not named here are in the middle.
_RANKS: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("partitions_assigned", "partitions_revoked", "partitions_lost", "offset_refused"), 0),
        **dict.fromkeys(("authority_named", "authority_cleared", "group_changed", "session_changed"), 0),
        **dict.fromkeys(("phase_entered", "attempt_started", "zk_op", "request_answered", "offset_written"), 2),
    }
)
_MIDDLE = 1
#: Beside the text, or of no use in it.
_LEFT_OUT = frozenset({"kind", "ns", "seq", "process", "member", "stream"})
#: The znode of a partition's owner, or of its offset.
_OF_PARTITION = re.compile(r"/consumers/[^/]+/(?:owners|offsets)/([^/]+)/([0-9]{1,18})")
_NS_PER_MS = 1e6


def raw_events(events: Iterable[Event], names: MemberNames) -> Iterator[RawEvent]:
    """The events, in their order."""
    for event in events:
        yield RawEvent(
            at_ms=event["ns"] / _NS_PER_MS,
            who=_who(event, names),
            partitions=tuple(_partitions(event)),
            text=_text(event),
            rank=_RANKS.get(event["kind"], _MIDDLE),
        )


def _who(event: Event, names: MemberNames) -> str:
    """The member that it is about, as in the lanes: whoever traced it, unless an authority speaks of another."""
    if event.get("owner"):
        return names.of_authority(event["owner"])
    if about := event.get("by") or event.get("id"):
        return names.of_member(about)
    if event.get("target"):
        return str(event["target"])
    return names.of_member(event["member"], event["process"])


def _partitions(event: Event) -> Iterator[str]:
    each: Mapping[str, Any]
    if event.get("partition") is not None:
        yield f"{event['topic']}-{event['partition']}"
    for each in event.get("partitions") or ():
        yield f"{each['topic']}-{each['partition']}"
    if found := _OF_PARTITION.fullmatch(event.get("path") or ""):
        yield f"{found[1]}-{found[2]}"


def _text(event: Event) -> str:
    """`zk_notified path=/consumers/lab/ids event=children zxid=244`."""
    fields = (f"{name}={_value(value)}" for name, value in event.items() if name not in _LEFT_OUT and value is not None)
    text = " ".join([event["kind"], *(field for field in fields if not field.endswith("="))])
    return text if len(text) <= TEXT_MAX else f"{text[: TEXT_MAX - 1]}…"


def _value(value: object) -> str:
    if isinstance(value, list):
        return ",".join(f"{each['topic']}-{each['partition']}" for each in value)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
