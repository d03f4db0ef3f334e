"""One pure member under a manual clock: tests feed events and read effects."""

from __future__ import annotations

from typing import Any

from coordinator.membership.classic import events
from coordinator.membership.classic.member import Member, MemberSettings, MemberState, deadline
from coordinator.membership.classic.reactions import reaction
from coordinator.membership.classic.table import step
from coordinator.membership.effects import Effect, Emit
from kernel.clock import NS_PER_MS
from kernel.values import TopicPartition
from tests.coordinator.membership.talk import MemberTalk

P0, P1, P2 = (TopicPartition("t", n) for n in range(3))
TOPICS = frozenset({"t"})

SETTINGS = MemberSettings(
    group="g",
    session_timeout_ms=3000,
    heartbeat_interval_ms=1000,
    max_poll_interval_ms=10_000,
    retry_backoff_ms=100,
    auto_commit_interval_ms=1000,
)


def partitions_of(emitted: Emit, field: str) -> frozenset[TopicPartition]:
    """The partitions in a field of a trace event."""
    listed = emitted.fields[field]
    assert isinstance(listed, list)
    return frozenset(TopicPartition(tp["topic"], tp["partition"]) for tp in listed)


class Talk(MemberTalk[Member]):
    def __init__(self, settings: MemberSettings = SETTINGS) -> None:
        super().__init__(Member(settings=settings, topics=TOPICS), step, deadline)

    def joined(self, *, member_id: str = "m-1", generation: int = 1, leader: str = "other") -> tuple[Any, ...]:
        return self.say(
            events.Joined(
                stamp=self.member.stamp, member_id=member_id, generation=generation, protocol="range", leader=leader
            )
        )

    def synced(self, *partitions: TopicPartition) -> tuple[Effect, ...]:
        return self.say(events.Synced(self.member.stamp, frozenset(partitions)))

    def refused(self, api: str, error: str, *, stamp: int | None = None, sent_ms_ago: int = 0) -> tuple[Any, ...]:
        sent_ns = self.clock.monotonic_ns() - sent_ms_ago * NS_PER_MS
        event = reaction(api, error, stamp=self.member.stamp if stamp is None else stamp, sent_ns=sent_ns)
        assert event is not None, (api, error)
        return self.say(event)

    def heartbeat_answered(self, *, sent_ms_ago: int = 0) -> tuple[Effect, ...]:
        sent_ns = self.clock.monotonic_ns() - sent_ms_ago * NS_PER_MS
        return self.say(events.HeartbeatAnswered(self.member.stamp, sent_ns))

    def stable(self, *partitions: TopicPartition) -> Talk:
        """Become Stable, as a follower."""
        self.poll()
        self.found()
        self.joined()
        self.synced(*(partitions or (P0, P1)))
        self.poll()
        self.resumed()
        assert self.member.state is MemberState.STABLE
        return self

    @property
    def state(self) -> MemberState:
        return self.member.state
