"""The znodes of a group as its run's trace has them. Pure.

What ZooKeeper held is in the observer's events, which come from ZooKeeper's own transaction log after the run: who was
registered, who owned what, which offsets were written. What a registration said is not among them, and a ZooKeeper
that is not ours leaves no log: an observer then saw some of it, or none.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from comparison.playground.live.tree import Seen
from kernel.zookeeper import paths

if TYPE_CHECKING:
    from collections.abc import Mapping

    Event = Mapping[str, object]

#: What stands for data that the trace does not keep.
UNKNOWN_DATA = "(not in the trace)"
#: What each kind of event tells of, for `missing`.
_TELLS = {
    "group_member_joined": "registrations",
    "authority_named": "owners",
    "offset_written": "offsets",
}


class Znodes:
    """What is there so far, from the observer's events in the order of time."""

    def __init__(self, *, coordinated: bool) -> None:
        self._coordinated = coordinated
        self.seen: dict[str, Seen] = {}
        self._kinds: Counter[str] = Counter()
        self._number = 0

    def take(self, event: Event) -> bool:
        """Whether the event changed a znode."""
        kind = str(event["kind"])
        self._kinds[kind] += 1
        match kind:
            case "group_member_joined":
                self._put(paths.member_id(str(event["group"]), str(event["id"])), UNKNOWN_DATA, ephemeral=True)
            case "group_member_left":
                self.seen.pop(paths.member_id(str(event["group"]), str(event["id"])), None)
            case "authority_named":
                self._put(_of_partition(paths.owner, event), str(event["owner"]), ephemeral=True)
            case "authority_cleared":
                self.seen.pop(_of_partition(paths.owner, event), None)
            case "offset_written":
                self._put(_of_partition(paths.offset, event), str(event["offset"]), ephemeral=False)
            case _:
                return False
        return True

    @property
    def missing(self) -> str:
        """What the page has to say about the events that the trace does not have."""
        if not any(self._kinds[kind] for kind in _TELLS):
            return "The trace does not say what ZooKeeper held: its transaction log was out of reach."
        said = "From ZooKeeper's own log, after the run; what a registration said is not in the trace."
        if self._coordinated:
            return f"{said} Owners and offsets are in the coordinator's keeping."
        lacking = [what for kind, what in _TELLS.items() if not self._kinds[kind]]
        return f"{said} The trace has no {' and no '.join(lacking)}." if lacking else said

    def _put(self, path: str, data: str, *, ephemeral: bool) -> None:
        self._number += 1
        known = self.seen.get(path)
        created = known.created if known else self._number
        self.seen[path] = Seen(data, known.version + 1 if known else 0, ephemeral, created, self._number)


def _of_partition(path: object, event: Event) -> str:
    assert callable(path)
    number = event["partition"]
    return str(path(str(event["group"]), str(event["topic"]), number))
