"""The handlers of the `consumer` design (KIP-848): ConsumerGroupHeartbeat and ConsumerGroupDescribe.

A broker that has the protocol turned off announces them all the same, and refuses them (KafkaApis of 4.1.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from coordinator.groups.answers import ConsumerHeartbeatAnswer
from coordinator.groups.consumer.description import ConsumerGroupDescription
from coordinator.groups.consumer.requests import ConsumerHeartbeat
from coordinator.groups.consumer.states import ConsumerGroupState
from coordinator.groups.errors import Error
from coordinator.groups.partitions import partitions
from coordinator.service.member_ids import fresh_base64_id
from coordinator.service.record_codec import TEXT_BYTES_MAX
from coordinator.service.translation import GROUP_OPERATIONS, NOT_ASKED_FOR
from kernel.broker.server.handlers import in_rows
from kernel.broker.settings.group_setting_table import CONSUMER_PROTOCOL
from kernel.clock import milliseconds

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from coordinator.groups.consumer.description import ConsumerMemberDescription, TopicAssignment
    from coordinator.service.coordinator import Coordinator
    from kernel.broker.server.handlers import RequestContext, Response

    Plain = dict[str, Any]

MEMBERS_HAVE_IDS = 1  #: from here on (KIP-1082)
_CONSUMER_MEMBER = 1  #: member_type: uses these requests


class ConsumerHandlers:
    def __init__(self, coordinator: Coordinator) -> None:
        self._partitions = coordinator.partitions
        self._is_on = CONSUMER_PROTOCOL in coordinator.services.config.words("group.coordinator.rebalance.protocols")

    def heartbeat(self, context: RequestContext, body: Any) -> Response | Awaitable[Response]:
        keys = (body.group_id, body.member_id, getattr(body, "subscribed_topic_regex", None) or "")
        at = self._partitions.at(body.group_id) if body.group_id else Error.INVALID_REQUEST
        if any(len(text.encode()) > TEXT_BYTES_MAX for text in keys):
            at = Error.INVALID_REQUEST
        if not self._is_on:
            at = Error.UNSUPPORTED_VERSION
        if isinstance(at, Error):
            return _heartbeat_answer(ConsumerHeartbeatAnswer(at))
        return at.ask(lambda token: _heartbeat(context, body, token), _heartbeat_answer)

    def describe(self, _context: RequestContext, body: Any) -> Response:
        return in_rows({}, "groups", self._described(body))

    def _described(self, body: Any) -> Iterator[Plain]:
        for group_id in body.group_ids:
            at = self._partitions.at(group_id) if group_id else Error.INVALID_GROUP_ID
            if not self._is_on:
                at = Error.UNSUPPORTED_VERSION
            if isinstance(at, Error):
                yield {**_described(ConsumerGroupDescription()), "group_id": group_id, "error_code": int(at)}
                continue
            group = at.machine.consumer.describe(group_id)
            error = Error.GROUP_ID_NOT_FOUND if group.state is ConsumerGroupState.DEAD else Error.NONE
            shows = body.include_authorized_operations and error is Error.NONE
            yield {
                **_described(group),
                "group_id": group_id,
                "error_code": int(error),
                "error_message": f"Group {group_id} not found." if error else None,
                "authorized_operations": GROUP_OPERATIONS if shows else NOT_ASKED_FOR,
            }


def _heartbeat(context: RequestContext, body: Any, token: int) -> ConsumerHeartbeat:
    may_lack_id = context.version < MEMBERS_HAVE_IDS
    return ConsumerHeartbeat(
        token=token,
        group_id=body.group_id,
        member_id=body.member_id,
        epoch=body.member_epoch,
        client_id=context.client_id,
        client_host=f"/{context.host}",
        fresh_id=fresh_base64_id() if may_lack_id and not body.member_id else "",
        may_lack_id=may_lack_id,
        instance_id=body.instance_id,
        rack_id=body.rack_id,
        rebalance_timeout_ms=milliseconds(body.rebalance_timeout),
        topics=body.subscribed_topic_names,
        topic_regex=getattr(body, "subscribed_topic_regex", None),
        assignor=body.server_assignor,
        owned=None
        if body.topic_partitions is None
        else partitions((_bytes(row.topic_id), row.partitions) for row in body.topic_partitions),
        names_owned_topics=bool(body.topic_partitions),
    )


def _bytes(topic_id: UUID | None) -> bytes:
    """Kio reads the zero id as None."""
    return bytes(16) if topic_id is None else topic_id.bytes


def _heartbeat_answer(answer: ConsumerHeartbeatAnswer) -> Plain:
    given = answer.assignment
    rows = [] if given is None else [{"topic_id": UUID(bytes=t), "partitions": sorted(given[t])} for t in sorted(given)]
    return {
        "error_code": int(answer.error),
        "member_id": answer.member_id,
        "member_epoch": answer.epoch,
        "heartbeat_interval": answer.heartbeat_interval_ms,
        "assignment": None if given is None else {"topic_partitions": rows},
    }


def _described(group: ConsumerGroupDescription) -> Plain:
    return {
        "group_state": group.state.value if group.epoch else "",
        "group_epoch": group.epoch,
        "assignment_epoch": group.target_epoch,
        "assignor_name": group.assignor,
        "members": [_described_member(member) for member in group.members],
        "authorized_operations": NOT_ASKED_FOR,
    }


def _described_member(member: ConsumerMemberDescription) -> Plain:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "rack_id": member.rack_id,
        "member_epoch": member.epoch,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "subscribed_topic_names": member.topics,
        "subscribed_topic_regex": member.topic_regex,
        "assignment": _rows(member.assigned),
        "target_assignment": _rows(member.target),
        "member_type": _CONSUMER_MEMBER,
    }


def _rows(given: tuple[TopicAssignment, ...]) -> Plain:
    rows = [{"topic_id": UUID(bytes=topic), "topic_name": name, "partitions": ns} for topic, name, ns in given]
    return {"topic_partitions": rows}
