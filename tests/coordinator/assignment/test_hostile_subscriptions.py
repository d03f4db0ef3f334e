"""What an oversized subscription costs a leader is proportional to its size, not to its size times the members."""

from __future__ import annotations

import struct
import sys
import tracemalloc
from collections.abc import Mapping, Sequence

import pytest

from coordinator.assignment import topic_names
from coordinator.assignment.sticky import READERS, decide
from coordinator.protocol.consumer_protocol import encode_subscription
from kernel.assignors.subscription import MemberSubscription

ORDINARY = encode_subscription(MemberSubscription(topics=("t",), generation=1))
NO_CLAIMS = struct.pack(">i", 0)


def subscription(topics: Sequence[bytes], claims: bytes = NO_CLAIMS) -> bytes:
    """Of version 1; `claims` are owned partitions as on the wire."""
    names = b"".join(struct.pack(">h", len(name)) + name for name in topics)
    return struct.pack(">hi", 1, len(topics)) + names + struct.pack(">i", -1) + claims


def claiming(*pieces: tuple[bytes, Sequence[int]]) -> bytes:
    written = [
        struct.pack(">h", len(name)) + name + struct.pack(f">{1 + len(numbers)}i", len(numbers), *numbers)
        for name, numbers in pieces
    ]
    return struct.pack(">i", len(pieces)) + b"".join(written)


def assigned(members: Mapping[str, bytes]) -> dict[str, bytes]:
    read = READERS["cooperative-sticky"](members)
    assert "t" in read.topics
    return decide("cooperative-sticky", {"t": 10_000}, members, read, exact_up_to=0).assignments


def test_topics_that_do_not_exist_cost_nothing_for_the_other_members() -> None:
    """There used to be a flag for each member and each name: 1 GB for 2,000 members and half a million names."""
    members = {f"m{n}": ORDINARY for n in range(1_000)}
    members["x"] = subscription([b"%05d" % n for n in range(50_000)])
    tracemalloc.start()
    try:
        answer = assigned(members)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 40_000_000
    assert answer.keys() == members.keys()


def test_one_long_name_costs_nothing_for_the_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """All names used to be cut into as many words as the longest one has."""
    read_names = 0
    words = topic_names._words

    def counted(data, begins, lengths, offset):  # type: ignore[no-untyped-def]
        nonlocal read_names
        read_names += len(begins)
        return words(data, begins, lengths, offset)

    monkeypatch.setattr(topic_names, "_words", counted)
    long, short = b"y" * 32_000, [b"%04d" % n for n in range(5_000)]
    assigned(
        {
            "a": subscription([b"t", *short, long]),
            "b": subscription([b"t"], claiming(*((name, [0]) for name in short), (long, [0]))),
        }
    )
    assert read_names < 10 * (len(short) + len(long) // 8)


def test_partition_claimed_many_times_by_one_member_costs_no_more_than_claimed_twice() -> None:
    """Each further claim used to take another round."""

    def calls(times: int) -> tuple[int, dict[str, bytes]]:
        count = 0

        def counted(frame: object, event: str, arg: object) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        members = {"a": subscription([b"t"], claiming((b"t", [3] * times))), "b": ORDINARY}
        sys.setprofile(counted)
        try:
            answer = assigned(members)
        finally:
            sys.setprofile(None)
        return count, answer

    (twice, expected), (often, answer) = calls(2), calls(20_000)
    assert answer == expected
    assert often < 2 * twice
