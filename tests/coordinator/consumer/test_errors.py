"""What a member that is refused for good says to whoever started it."""

from __future__ import annotations

import pytest

from coordinator.consumer.errors import GroupRefused


@pytest.mark.parametrize(
    ("api", "error", "remedy"),
    [
        ("Heartbeat", "FENCED_INSTANCE_ID", "give every member a group.instance.id of its own"),
        ("JoinGroup", "INCONSISTENT_GROUP_PROTOCOL", "set partition.assignment.strategy as they do, or another group"),
        ("AwaitCommand", "INCONSISTENT_GROUP_PROTOCOL", "members of another design use this group id: set another"),
    ],
)
def test_refusal_says_what_was_wrong_and_what_to_do(api: str, error: str, remedy: str) -> None:
    text = str(GroupRefused(api, error, "orders"))
    assert text.startswith(f"group 'orders' refused {api} with {error}: ")
    assert remedy in text


def test_strategies_are_no_remedy_where_the_coordinator_assigns() -> None:
    assert "partition.assignment.strategy" not in str(GroupRefused("AwaitCommand", "INCONSISTENT_GROUP_PROTOCOL", "g"))


def test_refusal_without_a_known_remedy_says_what_the_group_said() -> None:
    assert str(GroupRefused("JoinGroup", "UNKNOWN_SERVER_ERROR", "g")) == (
        "group 'g' refused JoinGroup with UNKNOWN_SERVER_ERROR"
    )
