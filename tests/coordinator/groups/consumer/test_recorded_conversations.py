"""What a real Kafka 4.1.1 answered to heartbeats, descriptions, commits and fetches, asked of the pure groups.

Left out of the kit's conversations: those with classic members, and ListGroups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from coordinator.groups.consumer.fencing import commit_refusal, fetch_refusal
from coordinator.groups.consumer.requests import ConsumerSettings
from coordinator.groups.errors import Error
from tests.support.consumer_groups import World, owned_by_name, topic_id, topic_name
from tests.support.conversations import recording

if TYPE_CHECKING:
    from coordinator.groups.consumer.description import TopicAssignment

RECORDED = recording("consumer")
ASKED = ("ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "OffsetCommit", "OffsetFetch")
CONVERSATIONS = {
    name: [step for step in conversation["steps"] if step["step"] == "wait" or step.get("api") in ASKED]
    for name, conversation in RECORDED.conversations.items()
    if not name.startswith(("mixed/", "admin/"))
}


SETTINGS = ConsumerSettings(session_timeout_ms=3_000, heartbeat_interval_ms=500, members_max=4)


def code(error: Error) -> str:
    return f"{int(error)} {error.name}"


def listed(assignment: tuple[TopicAssignment, ...]) -> dict[str, Any]:
    rows = [{"topic_id": f"#{name}", "topic_name": name, "partitions": list(ns)} for _, name, ns in assignment]
    return {"topic_partitions": sorted(rows, key=lambda row: row["topic_name"])}


class Player:
    def __init__(self) -> None:
        self.world = World(dict(RECORDED.topics), SETTINGS)

    def play(self, step: dict[str, Any]) -> Any:
        if step["step"] == "wait":
            self.world.search()
            self.world.advance(step["ms"])
            return None
        return getattr(self, step["api"])(step)

    def ConsumerGroupHeartbeat(self, step: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        asked = step["request"]
        owned = asked["topic_partitions"]
        answer = self.world.ask(
            asked["member_id"],
            asked["member_epoch"],
            group=asked["group_id"],
            client_id=step["conn"],
            instance_id=asked.get("instance_id"),
            rack_id=asked.get("rack_id"),
            rebalance_timeout_ms=asked["rebalance_timeout"],
            topics=None if asked["subscribed_topic_names"] is None else tuple(asked["subscribed_topic_names"]),
            topic_regex=asked.get("subscribed_topic_regex"),
            assignor=asked.get("server_assignor"),
            owned=None if owned is None else owned_by_name({row["topic_id"][1:]: row["partitions"] for row in owned}),
        )
        given = answer.assignment
        return {
            "error_code": code(answer.error),
            "member_id": answer.member_id,
            "member_epoch": answer.epoch,
            "heartbeat_interval": answer.heartbeat_interval_ms,
            "assignment": None
            if given is None
            else {
                "topic_partitions": [
                    {"topic_id": f"#{topic_name(topic)}", "partitions": sorted(given[topic])} for topic in sorted(given)
                ]
            },
        }

    def ConsumerGroupDescribe(self, step: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        groups = []
        for group_id in step["request"]["group_ids"]:
            shown = self.world.groups.describe(group_id)
            members = [
                {
                    "member_id": member.member_id,
                    "instance_id": member.instance_id,
                    "rack_id": member.rack_id,
                    "member_epoch": member.epoch,
                    "client_id": member.client_id,
                    "subscribed_topic_names": list(member.topics),
                    "subscribed_topic_regex": member.topic_regex,
                    "assignment": listed(member.assigned),
                    "target_assignment": listed(member.target),
                    "member_type": 1,
                }
                for member in sorted(shown.members, key=lambda member: member.member_id)
            ]
            groups.append(
                {
                    "error_code": code(Error.NONE),
                    "group_id": group_id,
                    "group_state": shown.state.value,
                    "group_epoch": shown.epoch,
                    "assignment_epoch": shown.target_epoch,
                    "assignor_name": shown.assignor,
                    "members": members,
                    "authorized_operations": -2147483648,
                }
            )
        return {"groups": groups}

    def OffsetCommit(self, step: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        asked = step["request"]
        epoch = asked["generation_id_or_member_epoch"]
        group = self.world.groups.groups[asked["group_id"]]
        error = commit_refusal(group, asked["member_id"], epoch, step["version"]) or Error.NONE
        return {"error_code": code(error)}

    def OffsetFetch(self, step: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        asked = step["request"].get("groups", [step["request"]])[0]
        group = self.world.groups.groups[asked["group_id"]]
        error = fetch_refusal(group, asked.get("member_id"), asked.get("member_epoch", -1)) or Error.NONE
        return {"error_code": code(error)}


def expected(step: dict[str, Any]) -> Any:
    """Of offsets, only whether they are refused."""
    response = step.get("response")
    if response is None:
        return None
    if step["api"] == "OffsetCommit":
        return {"error_code": response["topics"][0]["partitions"][0]["error_code"]}
    if step["api"] == "OffsetFetch":
        return {"error_code": response.get("groups", [response])[0]["error_code"]}
    return without_messages(response)


def without_messages(given: Any) -> Any:
    if isinstance(given, dict):
        return {k: without_messages(v) for k, v in given.items() if not k.startswith("~") and k != "member_id_form"}
    return [without_messages(item) for item in given] if isinstance(given, list) else given


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_group_answers_as_kafka(name: str) -> None:
    player = Player()
    for step in CONVERSATIONS[name]:
        assert player.play(step) == expected(step), step


def test_conversations_are_all_here() -> None:
    assert len(CONVERSATIONS) == 19
    assert topic_name(topic_id("foo")) == "foo"
