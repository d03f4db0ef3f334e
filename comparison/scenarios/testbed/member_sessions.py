"""Which members stand in the ZooKeeper sessions in which they claimed what they have, from their own events. Pure.

While its connection is broken, a member does not know whether its session has ended. One of `zookeeper` whose session
did end believes in its partitions until it rebalances in a new one: the owner znodes went with the old session. Under a
coordinator, members lose what they have as soon as they know, and say so.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class _Renewal(Enum):
    """How far a member has come whose session has ended."""

    EXPIRED = auto()
    RECONNECTED = auto()  #: in a new session
    REBALANCING = auto()


class MemberSessions:
    """The sessions of the members of all processes."""

    def __init__(self, *, claim: bool) -> None:
        """`claim`: what members have is claimed in their sessions, and gone with them."""
        self.ids: dict[str, dict[str, int]] = {}  #: of the sessions of each process, by member
        self._claim = claim
        self._interrupted: set[tuple[str, str]] = set()  #: (process, session) without a connection
        self._renewals: dict[tuple[str, str], _Renewal] = {}  #: of (process, member)

    def take(self, event: Mapping[str, object]) -> None:
        """Apply a `session_changed`, or what a member says about its rebalances."""
        member = str(event["process"]), str(event.get("member") or "")
        if event["kind"] == "session_changed":
            self._change(*member, str(event.get("session")), str(event["state"]))
        elif event["kind"] == "rebalance_started" and self._renewals.get(member) is _Renewal.RECONNECTED:
            self._renewals[member] = _Renewal.REBALANCING
        elif event["kind"] == "rebalance_ended" and self._renewals.get(member) is _Renewal.REBALANCING:
            del self._renewals[member]

    def _change(self, process: str, member: str, session: str, state: str) -> None:
        if state == "suspended":
            self._interrupted.add((process, session))
            return
        self._interrupted.discard((process, session))
        if state == "connected":
            self.ids.setdefault(process, {})[member] = int(session, 16)
        if state == "lost" and self._claim:
            self._renewals[process, member] = _Renewal.EXPIRED
        elif state == "connected" and (process, member) in self._renewals:
            self._renewals[process, member] = _Renewal.RECONNECTED
        elif state == "closed":
            self._renewals.pop((process, member), None)

    def unsure(self) -> set[str]:
        """The processes whose members may not have what they believe to have."""
        return {process for process, _ in (*self._interrupted, *self._renewals)}
