"""The message of a fatal group error."""

from __future__ import annotations

import pytest

from coordinator.client.errors import GroupRefused


@pytest.mark.parametrize(
    ("api", "error", "remedy"),
    [
        ("Heartbeat", "FENCED_INSTANCE_ID", "give every member its own group.instance.id"),
        ("JoinGroup", "INCONSISTENT_GROUP_PROTOCOL", "set the same partition.assignment.strategy, or another group"),
        ("AwaitCommand", "INCONSISTENT_GROUP_PROTOCOL", "members of another design use this group id: set another"),
    ],
)
def test_refusal_says_what_was_wrong_and_what_to_do(api: str, error: str, remedy: str) -> None:
    text = str(GroupRefused(api, error, "orders"))
    assert text.startswith(f"group 'orders' refused {api} with {error}: ")
    assert remedy in text


def test_remedy_names_no_strategy_if_the_coordinator_assigns() -> None:
    assert "partition.assignment.strategy" not in str(GroupRefused("AwaitCommand", "INCONSISTENT_GROUP_PROTOCOL", "g"))


def test_refusal_without_a_known_remedy_names_request_and_error() -> None:
    assert str(GroupRefused("JoinGroup", "UNKNOWN_SERVER_ERROR", "g")) == (
        "group 'g' refused JoinGroup with UNKNOWN_SERVER_ERROR"
    )
