"""A member of the `consumer` design: heartbeats that carry its assignment.

As `coordinator.client.consumer.stream`, with its state machine.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from comparison.simulation.deciding.member import GROUP, IDLE_POLLS_PER_INTERVAL, TOPIC, CountedMember
from coordinator.client.consumer.stream import LOGIC
from coordinator.groups.consumer.requests import ConsumerHeartbeat
from coordinator.groups.partitions import partitions
from coordinator.membership.consumer import effects, events
from coordinator.membership.consumer.member import ConsumerMember
from coordinator.membership.consumer.reactions import HEARTBEAT
from kernel.clock import NS_PER_MS
from kernel.random_ids import fresh_base64_id
from kernel.values import TopicPartition
from kernel.wire.errors import error_name

if TYPE_CHECKING:
    from comparison.simulation.deciding.member import Surroundings
    from coordinator.client.consumer.settings import Kip848ConsumerConfig
    from coordinator.groups.answers import ConsumerHeartbeatAnswer
    from coordinator.membership.effects import Effect

TOPIC_ID = bytes(range(16))


class ReconcilingMember(CountedMember):
    """Of `consumer`."""

    _routine = effects.SendHeartbeat

    def __init__(self, name: str, config: Kip848ConsumerConfig, around: Surroundings) -> None:
        settings = config.member
        member = ConsumerMember(settings=settings, member_id=fresh_base64_id(around.random))
        idle_ns = settings.max_poll_interval_ms * NS_PER_MS // IDLE_POLLS_PER_INTERVAL
        super().__init__(name, member, LOGIC, around, idle_ns)
        self._config = config
        self._due_callbacks: deque[effects.Callback] = deque()  #: those that wait for a poll

    def _started(self) -> None:
        self.feed(events.Subscribed(frozenset({TOPIC})))
        self._wake()

    def _perform_own(self, effect: Effect) -> None:
        match effect:
            case effects.SendHeartbeat():
                self._heartbeat(effect)
            case effects.RevokePartitions() | effects.LosePartitions() if not effect.partitions:
                self._soon(events.CallbackReturned(effect.number))
            case effects.Callback():
                self._due_callbacks.append(effect)
                self._wake()
            case _:
                raise AssertionError(f"unknown effect {effect}")

    def _polled(self) -> None:
        """One callback begins in each poll, and the end of one leads to another poll."""
        if not self._due_callbacks:
            return
        effect = self._due_callbacks.popleft()
        if isinstance(effect, effects.AssignPartitions) and effect.partitions:
            self._count("OffsetFetch")  # the answer changes nothing but what is fetched
        self._soon(events.CallbackReturned(effect.number))

    def _heartbeat(self, effect: effects.SendHeartbeat) -> None:
        sent_ns = self._heap.now_ns
        owned = None
        if effect.owned is not None:
            owned = partitions([(TOPIC_ID, [each.partition for each in effect.owned])])
        topics = None if effect.topics is None else tuple(sorted(effect.topics))
        self._ask(
            HEARTBEAT,
            lambda token: ConsumerHeartbeat(
                token=token,
                group_id=GROUP,
                member_id=effect.member_id,
                epoch=effect.epoch,
                client_id=self._config.client_id,
                client_host="/127.0.0.1",
                fresh_id="",
                instance_id=effect.instance_id,
                rebalance_timeout_ms=effect.rebalance_timeout_ms,
                topics=topics,
                topic_regex=effect.regex,
                assignor=effect.server_assignor,
                owned=owned,
            ),
            lambda answer: self._heard(effect.stamp, sent_ns, answer),
        )

    def _heard(self, stamp: int, sent_ns: int, answer: ConsumerHeartbeatAnswer) -> None:
        if error := error_name(answer.error):
            self._refused(HEARTBEAT, error, stamp=stamp, sent_ns=sent_ns)
            return
        known = None
        if answer.assignment is not None and stamp == self.member.stamp:
            known = frozenset(TopicPartition(TOPIC, number) for number in answer.assignment.get(TOPIC_ID, ()))
        self.feed(events.HeartbeatAnswered(stamp, answer.epoch, answer.heartbeat_interval_ms, known))
