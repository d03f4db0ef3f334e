"""A member of a classic group, and its session timer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coordinator.groups.records import Profile
from coordinator.groups.requests import size_of

if TYPE_CHECKING:
    from coordinator.groups.requests import Join, Protocol


@dataclass(slots=True)
class SessionTimer:
    """A lazy timer: each heartbeat moves the deadline; the timer itself moves only when it fires before the deadline.

    A heartbeat costs one assignment and no effect; the timer fires at most once per session timeout.
    """

    deadline_ms: int = 0
    armed_ms: int | None = None  #: when the timer will fire; None if it is not set


@dataclass(slots=True, kw_only=True)
class Member:
    """One member. `parked_join` and `parked_sync` are the tokens of its waiting requests."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    parked_join: int | None = None
    parked_sync: int | None = None
    #: Its first JoinGroup is not answered yet, so it cannot heartbeat, and a longer timeout applies.
    is_new: bool = False
    session_timer: SessionTimer = field(default_factory=SessionTimer)
    _profile: tuple[str | None, Profile] | None = None  #: the latest, after its protocol
    _size: int = 0  #: computed on first use

    @classmethod
    def joining(cls, request: Join, member_id: str) -> Member:
        return cls(
            id=member_id,
            instance_id=request.instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=request.protocols,
            is_new=True,
        )

    @property
    def size(self) -> int:
        """The bytes that the member's JoinGroup asks the coordinator to keep, as `Join.size`."""
        if not self._size:
            self._size = size_of(self.client_id, self.client_host, self.instance_id, self.protocols)
        return self._size

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    def metadata(self, protocol_name: str | None) -> bytes:
        """The subscription under `protocol_name`, b"" if this member does not support it."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        return b""

    def set_terms(self, rebalance_timeout_ms: int, session_timeout_ms: int, protocols: tuple[Protocol, ...]) -> None:
        """Set what a JoinGroup may change."""
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self._profile = None
        self._size = 0

    def profile(self, protocol_name: str | None) -> Profile:
        """The member's profile in a generation with this protocol: the same object until something changes."""
        known = self._profile
        if known is not None and known[0] == protocol_name:
            return known[1]
        profile = Profile(
            self.id,
            self.instance_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_ms,
            self.session_timeout_ms,
            self.metadata(protocol_name),
        )
        self._profile = (protocol_name, profile)
        return profile

    def known_as(self, protocol_name: str | None, profile: Profile) -> None:
        """Cache the profile that this member was created from."""
        self._profile = (protocol_name, profile)
