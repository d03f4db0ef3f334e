"""The handler of ConsumerGroupHeartbeat (KIP-848), and its fast path.

A member whose group has settled repeats the same bytes, except for the correlation id, as in `service.heartbeats`: they
are decoded and judged once, and from then on a heartbeat costs a check that nothing has changed, and the session's new
deadline. If something has changed, the normal path handles the request, so both give the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.groups.answers import ConsumerHeartbeatAnswer
from coordinator.groups.classic.session_timers import postpone
from coordinator.groups.consumer.heartbeat import settled_member
from coordinator.groups.consumer.requests import ConsumerHeartbeat
from coordinator.groups.errors import Error
from coordinator.service.consumer_records import encode_partitions
from coordinator.service.consumer_requests import HEARTBEAT_READERS
from coordinator.service.led_partition import LedPartition, next_token
from coordinator.service.record_codec import TEXT_BYTES_MAX
from coordinator.service.topic_regex import problem
from kernel.broker.server.handlers import Encoded, ReadByHand
from kernel.broker.settings.group_setting_table import CONSUMER_PROTOCOL
from kernel.clock import NS_PER_MS
from kernel.random_ids import fresh_base64_id
from kernel.wire.consumer_heartbeats import consumer_heartbeat_tail

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    from coordinator.groups.classic.member import SessionTimer
    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.groups import ConsumerGroups
    from coordinator.groups.consumer.member import ConsumerMember
    from coordinator.groups.consumer.requests import ConsumerSettings
    from coordinator.service.consumer_requests import ConsumerHeartbeatBody
    from coordinator.service.coordinator import Coordinator
    from kernel.broker.cluster.cluster_view import ClusterSnapshot
    from kernel.broker.cluster.leadership import Cluster
    from kernel.broker.server.handlers import CachedResponse, RequestContext, Response

MEMBERS_HAVE_IDS = 1  #: from here on (KIP-1082)


class ConsumerHeartbeatHandler(ReadByHand):
    """`kernel.broker.server.handlers.Repeatable`."""

    def __init__(self, coordinator: Coordinator) -> None:
        super().__init__(self._heartbeat, HEARTBEAT_READERS)
        self._services = coordinator.services
        self._partitions = coordinator.partitions
        self._record_bytes_max = self._services.config.number("message.max.bytes")
        self._is_on = CONSUMER_PROTOCOL in coordinator.services.config.words("group.coordinator.rebalance.protocols")

    def _heartbeat(self, context: RequestContext, body: ConsumerHeartbeatBody) -> Response | Awaitable[Response]:
        at = self._partitions.at(body.group_id) if body.group_id else Error.INVALID_REQUEST
        if body.size > TEXT_BYTES_MAX and _has_long_key(body):
            at = Error.INVALID_REQUEST
        elif body.size > self._record_bytes_max and _text_bytes(body) > self._record_bytes_max:
            at = Error.UNKNOWN_SERVER_ERROR  # Kafka finds out when it writes the member's record, and answers this
        if not self._is_on:
            at = Error.UNSUPPORTED_VERSION
        if isinstance(at, Error):
            return encoded(ConsumerHeartbeatAnswer(at))
        token = next_token()
        return at.put(token, request_of(context, body, token, self._services.runtime.random), encoded)

    def repeat(self, context: RequestContext, body: ConsumerHeartbeatBody) -> CachedResponse | None:
        """The fast path for a member that has its target; None for all others."""
        cluster = self._services.cluster
        snapshot = cluster.snapshot
        at = self._partitions.at(body.group_id) if body.group_id else Error.INVALID_REQUEST
        if not isinstance(at, LedPartition):
            return None
        groups = at.machine.consumer
        group = groups.find(body.group_id)
        if group is None or group.topics_view is not snapshot.topics or not group.is_settled_at(body.epoch):
            return None
        request = request_of(context, body, 0, self._services.runtime.random)
        member, timer = settled_member(group, request), group.sessions.get(request.member_id)
        if member is None or timer is None:
            return None
        settings = groups.settings_of(group.id)
        assignment = member.assigned if request.is_full else None
        return _FastPath(
            cluster=cluster,
            snapshot=snapshot,
            partition=at,
            groups=groups,
            settings=settings,
            group=group,
            epoch=group.epoch,
            member=member,
            timer=timer,
            monotonic_ns=self._services.runtime.clock.monotonic_ns,
            tail=encoded(
                ConsumerHeartbeatAnswer(Error.NONE, member.id, member.epoch, settings.heartbeat_interval_ms, assignment)
            ).tail,
        ).answer


@dataclass(slots=True, kw_only=True)
class _FastPath:
    """What a heartbeat's bytes refer to, valid as long as the checks in `answer` pass.

    Members are values, so the same object is a member to which nothing has happened.
    """

    cluster: Cluster
    snapshot: ClusterSnapshot  #: determines the group's partition and the topics
    partition: LedPartition
    groups: ConsumerGroups
    settings: ConsumerSettings
    group: ConsumerGroup
    epoch: int
    member: ConsumerMember
    timer: SessionTimer
    monotonic_ns: Callable[[], int]
    tail: bytes

    def answer(self) -> bytes | None:
        """`kernel.broker.server.handlers.CachedResponse`."""
        group, member, timer = self.group, self.member, self.timer
        now_ms = self.monotonic_ns() // NS_PER_MS
        if (
            not group.is_settled_at(self.epoch)
            or group.members.get(member.id) is not member
            or group.sessions.get(member.id) is not timer
            or now_ms >= group.topics_due_ms
            or self.partition.closed
            or self.cluster.snapshot is not self.snapshot
            or self.groups.groups.get(group.id) is not group
            or self.groups.settings_of(group.id) is not self.settings
        ):
            return None
        return self.tail if postpone(timer, now_ms + self.settings.session_timeout_ms) else None


def _has_long_key(body: ConsumerHeartbeatBody) -> bool:
    return any(
        len(text.encode()) > TEXT_BYTES_MAX for text in (body.group_id, body.member_id, body.end.topic_regex or "")
    )


def _text_bytes(body: ConsumerHeartbeatBody) -> int:
    """The size of what the member's record would say."""
    end = body.end
    texts = (*(end.topics or ()), end.topic_regex, end.instance_id, end.rack_id)
    return sum(len(text.encode()) for text in texts if text is not None)


def request_of(context: RequestContext, body: ConsumerHeartbeatBody, token: int, random: Random) -> ConsumerHeartbeat:
    may_lack_id = context.version < MEMBERS_HAVE_IDS
    end = body.end
    return ConsumerHeartbeat(
        token=token,
        group_id=body.group_id,
        member_id=body.member_id,
        epoch=body.epoch,
        client_id=context.client_id,
        client_host=f"/{context.host}",
        fresh_id=fresh_base64_id(random) if may_lack_id and not body.member_id else "",
        may_lack_id=may_lack_id,
        instance_id=end.instance_id,
        rack_id=end.rack_id,
        rebalance_timeout_ms=end.rebalance_timeout_ms,
        topics=end.topics,
        topic_regex=end.topic_regex,
        regex_problem=problem(end.topic_regex) if end.topic_regex else None,
        assignor=end.assignor,
        owned=end.owned,
        bare_topics=end.bare_topics,
    )


def encoded(answer: ConsumerHeartbeatAnswer) -> Encoded:
    return Encoded(
        consumer_heartbeat_tail(
            error=int(answer.error),
            message=answer.message,
            member_id=answer.member_id,
            epoch=answer.epoch,
            heartbeat_interval_ms=answer.heartbeat_interval_ms,
            rows=None if answer.assignment is None else encode_partitions(answer.assignment),
        )
    )
