"""The input of the assignor bench: shapes, kinds of subscriptions, and the three steps of a group's life.

Members and partitions are numbered: members 0 to M - 1 are there from the beginning, M is the newcomer, and partition
p of topic t has the number t * P + p. Ownership is one array over partitions.

A group reaches an assignor as the bytes of JoinGroup. A member's former partitions come in the two forms that clients
write: in user data (eager), or in the subscription (cooperative, and here KIP-848, for its target assignment).
"""

from __future__ import annotations

import random
import struct
import uuid
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

NOBODY = -1
SEED = 1

UNIFORM = "uniform"
#: Name on the command line -> title in tables.
KINDS: Mapping[str, str] = {
    UNIFORM: "all subscribe to all topics",
    "one": "one member has one topic, the others all",
    "fifth": "each lacks a fifth of the topics",
    "half": "each has a random half of the topics",
    "ten": "each has ten random topics",
    "nested": "nested prefixes: the first k topics, k from 1 to all",
}
FRESH, LEAVE, JOIN = "fresh", "leave", "join"
STEPS = (FRESH, LEAVE, JOIN)


@dataclass(frozen=True)
class Shape:
    """Sizes of a group; all topics have the same number of partitions."""

    topics: int
    partitions_each: int
    members: int

    @property
    def partitions(self) -> int:
        return self.topics * self.partitions_each

    def __str__(self) -> str:
        return f"{self.topics} topics x {self.partitions_each} partitions, {self.members} members"


SHAPES: Mapping[str, Shape] = {
    "10k": Shape(500, 20, 2000),
    "100k": Shape(500, 200, 2000),
    "1M": Shape(500, 2000, 2000),
    "smoke": Shape(20, 10, 30),
    "warm": Shape(100, 20, 100),
}


@dataclass(frozen=True)
class Case:
    """One kind of group at one size, drawn from `SEED`."""

    size: str
    kind: str

    @property
    def shape(self) -> Shape:
        return SHAPES[self.size]

    @property
    def is_equal(self) -> bool:
        return self.kind == UNIFORM

    @cached_property
    def topics(self) -> list[str]:
        """Topic names of equal length, in Java's order."""
        return [f"topic-{number:04d}" for number in range(self.shape.topics)]

    @cached_property
    def members(self) -> list[str]:
        """M + 1 member ids like those of a coordinator."""
        drawn = random.Random(SEED)
        return [f"consumer-{n:04d}-{uuid.UUID(int=drawn.getrandbits(128))}" for n in range(self.shape.members + 1)]

    @cached_property
    def subscribed(self) -> NDArray[np.bool_]:
        """Who subscribes to what: [M + 1, T]."""
        members, topics = self.shape.members + 1, self.shape.topics
        drawn = np.random.default_rng(SEED)
        made = np.ones((members, topics), np.bool_)
        match self.kind:
            case "one":
                made[members // 3, 1:] = False
            case "fifth":
                made = _drawn(drawn, members, topics, topics - topics // 5)
            case "half":
                made = _drawn(drawn, members, topics, topics // 2)
            case "ten":
                made = _drawn(drawn, members, topics, min(10, topics))
            case "nested":
                lengths = np.arange(members) * topics // members + 1
                lengths[-1] = topics // 2
                made = np.arange(topics) < lengths[:, None]
        return made

    def present(self, step: str) -> NDArray[np.int64]:
        """The members of a step. The one that leaves is from the middle."""
        everybody = np.arange(self.shape.members + (step == JOIN))
        return np.delete(everybody, self.shape.members // 2) if step == LEAVE else everybody

    def before(self, step: str, fresh: NDArray[np.int32] | None) -> NDArray[np.int32]:
        """Former owners among the present members; `fresh` is the result of the first step."""
        if step == FRESH:
            return np.full(self.shape.partitions, NOBODY, np.int32)
        assert fresh is not None
        return np.where(np.isin(fresh, self.present(step)), fresh, NOBODY).astype(np.int32)

    def write(self, path: Path, step: str, before: NDArray[np.int32], *, in_user_data: bool) -> None:
        """Write the group for `assign_child` and the Java host: sizes, then ids and subscription bytes."""
        each = self.shape.partitions_each
        generation = -1 if step == FRESH else 1
        claims = encoded_partitions(self, before)
        present = self.present(step)
        names = [_text(topic) for topic in self.topics]
        with path.open("wb") as to:
            to.write(struct.pack(">i", len(names)))
            for name in names:
                to.write(name + struct.pack(">i", each))
            to.write(struct.pack(">i", len(present)))
            for member in present.tolist():
                of_member = [names[t] for t in np.flatnonzero(self.subscribed[member])]
                head = struct.pack(">hi", 3, len(of_member)) + b"".join(of_member)
                encoded_generation = struct.pack(">i", generation)
                if in_user_data:
                    data = None if step == FRESH else claims[member] + encoded_generation
                    body = _bytes(data) + struct.pack(">i", 0) + encoded_generation
                else:
                    body = _bytes(encoded_generation) + claims[member] + encoded_generation
                subscription = head + body + struct.pack(">h", -1)
                to.write(_text(self.members[member]) + struct.pack(">i", len(subscription)) + subscription)


def _drawn(drawn: np.random.Generator, members: int, topics: int, each: int) -> NDArray[np.bool_]:
    """The given number of random topics each."""
    order = np.argsort(drawn.random((members, topics)), axis=1)
    made = np.zeros((members, topics), np.bool_)
    np.put_along_axis(made, order[:, :each], values=True, axis=1)
    return made


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode("ascii")


def _bytes(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


# -- [topic, [partition]] of all members at once ---------------------------------------------------------------------


def encoded_partitions(case: Case, owner: NDArray[np.int32]) -> list[bytes]:
    """[topic, [partition i32]] for each of M + 1 members, in ascending order."""
    each = case.shape.partitions_each
    owned = np.flatnonzero(owner >= 0)
    owned = owned[np.argsort(owner[owned], kind="stable")]
    member, topic, number = owner[owned].astype(np.int64), owned // each, owned % each
    heads = np.frombuffer(b"".join(map(_text, case.topics)), np.uint8).reshape(len(case.topics), -1)
    # A member's first entry is preceded by 4 bytes of its own, a topic's first entry by the name and a count.
    new_topic = np.ones(len(owned), np.bool_)
    new_topic[1:] = (np.diff(member) != 0) | (np.diff(topic) != 0)
    before = np.cumsum(new_topic) * (heads.shape[1] + 4) + 4 * (member + 1)
    at = before + 4 * np.arange(len(owned))
    members = len(case.members)
    firsts = np.flatnonzero(new_topic)
    topics_of = np.bincount(member[firsts], minlength=members)
    sizes = 4 + topics_of * (heads.shape[1] + 4) + 4 * np.bincount(member, minlength=members)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    made = np.zeros(starts[-1], np.uint8)
    _put(made, at, number)
    _put(made, at[firsts] - 4, np.diff(firsts, append=len(owned)))
    made[(at[firsts] - 4 - heads.shape[1])[:, None] + np.arange(heads.shape[1])] = heads[topic[firsts]]
    _put(made, starts[:-1], topics_of)
    whole = made.tobytes()
    return [whole[begin:end] for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]


def _put(into: NDArray[np.uint8], at: NDArray[np.int64], values: NDArray[np.int64]) -> None:
    into[at[:, None] + np.arange(4)] = values.astype(">i4").view(np.uint8).reshape(-1, 4)


# -- answers -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """An assignor's answer: partition `ids`, member by member, and `takers`, the member of each."""

    ids: NDArray[np.int64]
    takers: NDArray[np.int64]
    faults: tuple[str, ...] = ()


def read_answer(case: Case, path: Path) -> Answer:
    """Read the assignment bytes of every member as a member would; malformed ones are faults."""
    data = path.read_bytes()
    index = {member: n for n, member in enumerate(case.members)}
    (count,) = struct.unpack_from(">i", data)
    at = 4
    topic_of = {topic.encode("ascii"): n for n, topic in enumerate(case.topics)}
    width = len(case.topics[0])
    entry = struct.Struct(f">h{width}si")
    where: list[tuple[int, int, int, int]] = []  # member, topic, count, first byte
    faults = []
    for _ in range(count):
        (length,) = struct.unpack_from(">h", data, at)
        member = data[at + 2 : at + 2 + length].decode("ascii")
        version_at = at + 2 + length + 4
        (size,) = struct.unpack_from(">i", data, version_at - 4)
        at = version_at + size
        version, topics = struct.unpack_from(">hi", data, version_at)
        if version not in range(4) or member not in index:
            faults.append(f"version {version} for {member}")
            continue
        who, reading = index[member], version_at + 6
        for _ in range(topics):
            _, name, numbers = entry.unpack_from(data, reading)
            where.append((who, topic_of[name], numbers, reading + entry.size))
            reading += entry.size + 4 * numbers
        if reading + 4 != at:  # null user data
            faults.append(f"{member}: {at - reading} bytes after the partitions")
    return _gathered(case, data, np.array(where, np.int64).reshape(-1, 4), tuple(faults))


def _gathered(case: Case, data: bytes, where: NDArray[np.int64], faults: tuple[str, ...]) -> Answer:
    who, topic, numbers, begin = where.T
    ends = np.cumsum(numbers)
    inside = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - numbers, numbers)
    at = np.repeat(begin, numbers) + 4 * inside
    found = np.frombuffer(data, np.uint8)[at[:, None] + np.arange(4)].view(">i4").reshape(-1).astype(np.int64)
    each = case.shape.partitions_each
    if ((found < 0) | (found >= each)).any():
        faults = (*faults, "a partition that does not exist")
    return Answer(np.repeat(topic, numbers) * each + found, np.repeat(who, numbers), faults)


def read_group(path: Path) -> tuple[dict[str, int], dict[str, bytes]]:
    """Read a file of `Case.write`: {topic: size}, {member: subscription bytes}."""
    data = path.read_bytes()
    at = 4
    sizes = {}
    for _ in range(struct.unpack_from(">i", data)[0]):
        (length,) = struct.unpack_from(">h", data, at)
        (sizes[data[at + 2 : at + 2 + length].decode("ascii")],) = struct.unpack_from(">i", data, at + 2 + length)
        at += 6 + length
    (count,) = struct.unpack_from(">i", data, at)
    at += 4
    members = {}
    for _ in range(count):
        (length,) = struct.unpack_from(">h", data, at)
        member = data[at + 2 : at + 2 + length].decode("ascii")
        begin = at + 6 + length
        (size,) = struct.unpack_from(">i", data, begin - 4)
        members[member] = data[begin : begin + size]
        at = begin + size
    return sizes, members


def write_answer(path: Path, answer: Mapping[str, bytes]) -> None:
    """Write an answer as the Java host does."""
    parts = [struct.pack(">i", len(answer))]
    for member, data in answer.items():
        parts += [_text(member), struct.pack(">i", len(data)), data]
    path.write_bytes(b"".join(parts))
