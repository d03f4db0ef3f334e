"""Which member an event is about, under the short names of the report: `m1`, or `m1-0` for one of several."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from comparison.report.view.naming import MemberNames

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from comparison.report.export.stream import Recorded

_NAMING = frozenset({"member_started", "rebalance_started", "partitions_assigned"})


class Members:
    """The members of one run."""

    def __init__(self, events: Iterable[Recorded]) -> None:
        rows = [each.event for each in events if each.event["kind"] in _NAMING and each.event["member"] is not None]
        self._names = MemberNames((), rows)
        self._of_process: defaultdict[str, dict[int, str]] = defaultdict(dict)
        for row in rows:
            name = self._names.of_owner(_owner(row))
            self._of_process[row["process"]].setdefault(row["stream"] or 0, name)
        self._known = {(row["process"], row["member"]) for row in rows}

    def of(self, event: Mapping[str, Any]) -> str:
        """The member that traced an event; '' if its process has none."""
        mine = self._of_process.get(event["process"], {})
        if event["member"] is None or (event["process"], event["member"]) not in self._known:
            # Its member has no id yet, or the event is about the process: the first one's, or the only one's.
            return mine.get(event["stream"] or 0, "") or next(iter(mine.values()), "")
        return self._names.of_member(event["member"]) if event["stream"] is None else mine[event["stream"]]

    def of_owner(self, owner: str) -> str:
        """The member that an authority names."""
        return self._names.of_authority(owner)

    def of_id(self, member: str) -> str:
        """The member with an id."""
        return self._names.of_member(member)


def _owner(row: Mapping[str, Any]) -> str:
    return f"{row['process']}/{row['member']}/{row['stream'] or 0}"
