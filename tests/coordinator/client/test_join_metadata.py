"""What a member sends when it joins, to the byte: Kafka's subscriptions with the user data of each strategy."""

from __future__ import annotations

from coordinator.client.join_metadata import JoinMetadata, instance_of
from coordinator.protocol.consumer_protocol import decode_subscription
from kernel.values import TopicPartition

STRATEGIES = ("sticky", "cooperative-sticky", "range")
#: version 3, one topic "t"; then come user data, no owned partitions, generation, no rack
HEAD = "000300000001000174"
NOTHING_OWNED, NO_RACK = "00000000", "ffff"


def said(join_metadata: JoinMetadata, generation: int) -> dict[str, str]:
    return {name: data.hex() for name, data in join_metadata.protocols(("t",), generation).items()}


def test_first_join_claims_nothing() -> None:
    generation = "ffffffff"
    assert said(JoinMetadata(STRATEGIES), -1) == {
        "sticky": HEAD + "ffffffff" + NOTHING_OWNED + generation + NO_RACK,
        "cooperative-sticky": HEAD + "00000004ffffffff" + NOTHING_OWNED + generation + NO_RACK,
        "range": HEAD + "ffffffff" + NOTHING_OWNED + generation + NO_RACK,
    }


def test_sticky_member_claims_its_partitions_with_their_generation() -> None:
    had = frozenset({TopicPartition("t", 3), TopicPartition("t", 1)})
    join_metadata = JoinMetadata(STRATEGIES).after("sticky", had, 5)
    previous = "0000000100017400000002000000010000000300000005"
    generation = "00000005"
    assert said(join_metadata, 5) == {
        "sticky": HEAD + "00000017" + previous + NOTHING_OWNED + generation + NO_RACK,
        "cooperative-sticky": HEAD + "00000004ffffffff" + NOTHING_OWNED + generation + NO_RACK,
        "range": HEAD + "ffffffff" + NOTHING_OWNED + generation + NO_RACK,
    }


def test_cooperative_member_names_what_it_keeps_in_every_subscription() -> None:
    kept = frozenset({TopicPartition("t", 2), TopicPartition("t", 0)})
    join_metadata = JoinMetadata(STRATEGIES).after("cooperative-sticky", kept, 6)
    metadata = join_metadata.protocols(("t",), 6, kept)
    owned = "00000001" + "000174" + "00000002" + "00000000" + "00000002"
    assert metadata["cooperative-sticky"].hex() == HEAD + "0000000400000006" + owned + "00000006" + NO_RACK
    assert {decode_subscription(data).owned for data in metadata.values()} == {tuple(sorted(kept))}


def test_streams_of_a_static_consumer_differ_by_their_numbers() -> None:
    assert [instance_of("web", stream) for stream in range(3)] == ["web", "web-1", "web-2"]
    assert instance_of(None, 1) is None


def test_each_strategy_remembers_only_its_own_assignment() -> None:
    join_metadata = JoinMetadata(STRATEGIES).after("cooperative-sticky", (), 7).after("range", (), 8)
    metadata = {name: decode_subscription(data) for name, data in join_metadata.protocols(("t",), 8).items()}
    assert {name: subscription.user_data for name, subscription in metadata.items()} == {
        "sticky": None,
        "cooperative-sticky": bytes.fromhex("00000007"),
        "range": None,
    }
    assert {subscription.generation for subscription in metadata.values()} == {8}


def test_claims_outlive_their_generation() -> None:
    """After an expulsion it joins without a generation, and its strategy still claims the old partitions."""
    join_metadata = JoinMetadata(("sticky",)).after("sticky", {TopicPartition("t", 0)}, 4)
    subscription = decode_subscription(join_metadata.protocols(("t",), -1)["sticky"])
    assert subscription.generation is None
    assert subscription.user_data == bytes.fromhex("00000001000174000000010000000000000004")
