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
        self._units = {_unit(row): self._names.of_owner(_owner(row)) for row in rows}
        self._of_process: defaultdict[str, dict[int, str]] = defaultdict(dict)
        for (process, _, stream), name in self._units.items():
            self._of_process[process].setdefault(stream, name)

    def of(self, event: Mapping[str, Any]) -> str:
        """The member that traced an event; '' if its process has none."""
        unit = _unit(event)
        mine = self._of_process.get(event["process"], {})
        # Without an id the member has not joined yet, or the event is about its process: the first member counts.
        return self._units.get(unit, "") or mine.get(unit[2], "") or next(iter(mine.values()), "")

    def of_owner(self, owner: str) -> str:
        """The member that an authority names."""
        return self._names.of_authority(owner)

    def of_id(self, member: str) -> str:
        """The member with an id."""
        return self._names.of_member(member)


def _unit(event: Mapping[str, Any]) -> tuple[str, str | None, int]:
    return event["process"], event["member"], event["stream"] or 0


def _owner(row: Mapping[str, Any]) -> str:
    return f"{row['process']}/{row['member']}/{row['stream'] or 0}"
