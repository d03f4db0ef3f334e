"""The coordinator's log lines, as Kafka 3.9.1 printed them."""

from __future__ import annotations

import pytest

from coordinator.groups.effects import TraceEvent
from coordinator.service.log_lines import line_of
from kernel.values import TopicPartition


@pytest.mark.parametrize(
    ("kind", "fields", "line"),
    [
        (
            "group_changed",
            {"state": "PreparingRebalance", "generation": 1, "members": 2, "reason": "member added"},
            "Preparing to rebalance group g in state PreparingRebalance with old generation 1 (__consumer_offsets-3) "
            "(reason: member added)",
        ),
        (
            "group_changed",
            {"state": "CompletingRebalance", "generation": 2, "members": 2, "reason": "join completed"},
            "Stabilized group g generation 2 (__consumer_offsets-3) with 2 members",
        ),
        (
            "group_changed",
            {"state": "Empty", "generation": 4, "members": 0, "reason": "join completed without members"},
            "Group g with generation 4 is now empty (__consumer_offsets-3)",
        ),
        (
            "group_member_left",
            {"id": "m", "reason": "leave"},
            "Member m has left group g through explicit `LeaveGroup`",
        ),
        (
            "group_member_left",
            {"id": "m", "reason": "session"},
            "Member m in group g has failed, removing it from the group",
        ),
        ("group_member_left", {"id": "m", "reason": "fenced"}, "Member m is removed from group g: fenced"),
        ("group_changed", {"state": "Stable", "generation": 2, "members": 2, "reason": "assignment stored"}, None),
        ("group_member_joined", {"id": "m"}, None),
    ],
)
def test_event_is_logged_in_kafkas_words(kind: str, fields: dict[str, object], line: str | None) -> None:
    said = line_of(TraceEvent(kind, {"group": "g", **fields}, ""), 1, TopicPartition("__consumer_offsets", 3))
    assert said == (None if line is None else f"[GroupCoordinator 1]: {line}")
