"""The handler of ConsumerGroupDescribe (KIP-848); `consumer_heartbeats` has the one of ConsumerGroupHeartbeat.

A broker that has the protocol turned off announces both all the same, and refuses them (KafkaApis of 4.1.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from coordinator.groups.consumer.description import ConsumerGroupDescription
from coordinator.groups.consumer.states import ConsumerGroupState
from coordinator.groups.errors import Error
from coordinator.service.translation import GROUP_OPERATIONS, NOT_ASKED_FOR
from kernel.broker.server.handlers import in_rows
from kernel.broker.settings.group_setting_table import CONSUMER_PROTOCOL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coordinator.groups.consumer.description import ConsumerMemberDescription, TopicAssignment
    from coordinator.service.coordinator import Coordinator
    from kernel.broker.server.handlers import RequestContext, Response

    Plain = dict[str, Any]

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1  #: member_type: the protocol that it uses


class ConsumerHandlers:
    def __init__(self, coordinator: Coordinator) -> None:
        self._partitions = coordinator.partitions
        self._is_on = CONSUMER_PROTOCOL in coordinator.services.config.words("group.coordinator.rebalance.protocols")

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
        "member_type": _CLASSIC_MEMBER if member.is_classic else _CONSUMER_MEMBER,
    }


def _rows(given: tuple[TopicAssignment, ...]) -> Plain:
    rows = [{"topic_id": UUID(bytes=topic), "topic_name": name, "partitions": ns} for topic, name, ns in given]
    return {"topic_partitions": rows}
