"""What a real Kafka 4.1.1 answered to groups with members of both protocols, asked of the pure machine.

Compared are errors, epochs and generations, ids and assignments. Left out are the requests of administrators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from coordinator.groups.answers import ConsumerHeartbeatAnswer, HeartbeatAnswer, JoinAnswer, LeaveAnswer, SyncAnswer
from coordinator.groups.consumer.requests import ConsumerHeartbeat
from coordinator.groups.partitions import Partitions
from coordinator.groups.requests import Heartbeat, Join, Leave, Leaving, Protocol, Sync
from tests.support.conversations.recorded import recording
from tests.support.groups.classic import LIMITS
from tests.support.groups.consumer import SETTINGS, owned_by_name, topic_name
from tests.support.groups.mixed import GROUP, MixedPartition

RECORDED = recording("consumer_mixed")
PLAYED = {
    name: conversation
    for recorded in (recording("consumer"), RECORDED)
    for name, conversation in recorded.conversations.items()
    if recorded is RECORDED or name.startswith("mixed/")
}
BLOBS = {**recording("consumer").blobs, **RECORDED.blobs}
LAB = replace(LIMITS, initial_rebalance_delay_ms=400, session_timeout_ms_min=300)
MEMBERS = ("ConsumerGroupHeartbeat", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")


class Player:
    def __init__(self) -> None:
        self.at = MixedPartition(SETTINGS, LAB)
        self.ids: dict[str, str] = {}  #: as recorded -> as given here
        self.tokens: dict[str, int] = {}
        self.sent: dict[str, Mapping[str, Any]] = {}
        self.fresh = 0

    def play(self, step: Mapping[str, Any]) -> None:
        kind = step["step"]
        if kind == "wait":
            self.at.advance(step["ms"])
        elif kind == "send":
            self.tokens[step["tag"]], self.sent[step["tag"]] = self.ask(step), step
            self.at.advance(30)
        elif kind == "parked":
            answered = self.tokens[step["tag"]] in self.at.answers
            self.at.advance(step["for_ms"])
            assert (not answered and self.tokens[step["tag"]] not in self.at.answers) == step["response"]["parked"]
        elif kind == "recv":
            while self.tokens[step["tag"]] not in self.at.answers:
                self.at.advance(10)
            self.compare(step, self.tokens[step["tag"]], self.sent[step["tag"]]["api"])
        elif step["api"] in MEMBERS:
            self.compare(step, self.ask(step), step["api"])

    def ask(self, step: Mapping[str, Any]) -> int:
        asked = step["request"]
        self.fresh += 1
        instance_id = asked.get("group_instance_id")
        match step["api"]:
            case "ConsumerGroupHeartbeat":
                owned = asked["topic_partitions"]
                topics = asked["subscribed_topic_names"]
                return self.at.send(
                    ConsumerHeartbeat,
                    member_id=self.id(asked["member_id"]),
                    epoch=asked["member_epoch"],
                    client_id=step["conn"],
                    client_host="/h",
                    fresh_id="",
                    instance_id=asked.get("instance_id"),
                    rebalance_timeout_ms=asked["rebalance_timeout"],
                    topics=None if topics is None else tuple(topics),
                    owned=None if owned is None else owned_by_name({r["topic_id"][1:]: r["partitions"] for r in owned}),
                )
            case "JoinGroup":
                return self.at.send(
                    Join,
                    member_id=self.id(asked["member_id"]),
                    client_id=step["conn"],
                    client_host="/h",
                    session_timeout_ms=asked["session_timeout"],
                    rebalance_timeout_ms=asked["rebalance_timeout"],
                    protocol_type=asked["protocol_type"],
                    protocols=tuple(Protocol(p["name"], BLOBS[p["metadata"][1:]]) for p in asked["protocols"]),
                    fresh_id=f"id{self.fresh}",
                    instance_id=instance_id,
                    must_return_with_id=step["version"] >= 4,
                )
            case "SyncGroup":
                given = tuple((self.id(a["member_id"]), BLOBS[a["assignment"][1:]]) for a in asked["assignments"])
                return self.at.send(
                    Sync,
                    member_id=self.id(asked["member_id"]),
                    generation=asked["generation_id"],
                    instance_id=instance_id,
                    protocol_type=asked.get("protocol_type"),
                    protocol_name=asked.get("protocol_name"),
                    protocol_is_mandatory=step["version"] >= 5,
                    assignments=given,
                )
            case "Heartbeat":
                member_id = self.id(asked["member_id"])
                return self.at.send(
                    Heartbeat, member_id=member_id, generation=asked["generation_id"], instance_id=instance_id
                )
            case _:
                named = asked.get("members") or [asked]
                leaving = tuple(Leaving(self.id(m["member_id"]), m.get("group_instance_id")) for m in named)
                return self.at.send(Leave, members=leaving)

    def id(self, recorded: str) -> str:
        return self.ids.get(recorded, recorded)

    def compare(self, step: Mapping[str, Any], token: int, api: str) -> None:
        expected = step["response"]
        answer: Any = self.at.answers[token]
        if isinstance(answer, JoinAnswer | ConsumerHeartbeatAnswer) and (name := step.get("bind")):
            self.ids.setdefault(f"${name}", answer.member_id or "")
        if isinstance(answer, JoinAnswer) and answer.leader:
            self.ids.setdefault(expected["leader"], answer.leader)  # whose answer may come later
        assert self.shown(answer) == self.wanted(expected, api), step

    def shown(self, answer: Any) -> tuple[Any, ...]:
        match answer:
            case ConsumerHeartbeatAnswer():
                return (code(answer.error), answer.member_id, answer.epoch, by_topic(answer.assignment))
            case JoinAnswer():
                members = {profile.member_id: profile.subscription for profile in answer.members}
                return (code(answer.error), answer.generation, answer.leader, answer.protocol_name or "", members)
            case SyncAnswer():
                return (code(answer.error), answer.assignment)
            case LeaveAnswer():
                return (sorted(code(left.error) for left in answer.members),)
            case HeartbeatAnswer():
                return (code(answer.error),)
        raise AssertionError(answer)

    def wanted(self, expected: Mapping[str, Any], api: str) -> tuple[Any, ...]:
        error = expected["error_code"]
        match api:
            case "ConsumerGroupHeartbeat":
                given = expected["assignment"]
                rows = given and {row["topic_id"][1:]: row["partitions"] for row in given["topic_partitions"]}
                return (error, expected["member_id"] and self.id(expected["member_id"]), expected["member_epoch"], rows)
            case "JoinGroup":
                members = {self.id(m["member_id"]): data(m["metadata"]) for m in expected["members"]}
                leader = self.id(expected["leader"])
                return (error, expected["generation_id"], leader, expected["protocol_name"], members)
            case "SyncGroup":
                return (error, data(expected["assignment"]))
            case "LeaveGroup":
                return (sorted(m["error_code"] for m in expected.get("members", [expected])),)
        return (error,)


def code(error: Any) -> str:
    return f"{int(error)} {error.name}"


def data(text: str) -> bytes:
    return bytes.fromhex(text[4:]) if text.startswith("hex:") else BLOBS[text[1:]] if text else b""


def by_topic(given: Partitions | None) -> dict[str, list[int]] | None:
    return None if given is None else {topic_name(topic): sorted(given[topic]) for topic in given}


@pytest.mark.parametrize("name", sorted(PLAYED))
def test_machine_answers_as_kafka(name: str) -> None:
    player = Player()
    for step in PLAYED[name]["steps"]:
        player.play(step)


@pytest.mark.parametrize("name", sorted(PLAYED))
def test_successor_after_each_step_has_the_same_groups(name: str) -> None:
    """Of the `consumer` design: their whole state is in the log."""
    player = Player()
    for step in PLAYED[name]["steps"]:
        player.play(step)
        groups, after = player.at.machine.consumer, player.at.successor().machine.consumer
        assert groups.describe(GROUP) == after.describe(GROUP)
        if (group := groups.find(GROUP)) is not None:
            assert group.members == after.groups[GROUP].members
