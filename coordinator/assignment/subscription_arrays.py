"""Read the subscriptions of a whole group from bytes into arrays, as `decode_subscription` does for one member.

Malformed bytes are treated as for single members (`consumer_protocol.subscription_of`, and `decode_sticky` for user
data): a malformed subscription has no topics, malformed user data claim nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from coordinator.assignment.claimed_partitions import NOWHERE, Bytes, walk
from coordinator.assignment.topic_names import UNKNOWN, TopicNames
from coordinator.protocol.consumer_protocol import MalformedMetadata, Reader
from kernel.assignors.group_arrays import ClaimArrays, Grid, Roster
from kernel.assignors.sticky_data import NO_GENERATION

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from coordinator.assignment.claimed_partitions import Pieces


@cache
def _no_topics() -> NDArray[np.int64]:
    return np.empty(0, np.int64)


class Claims(NamedTuple):
    """Pieces with known topics; the last two fields say where their partition numbers are."""

    members: NDArray[np.int64]
    topics: NDArray[np.int64]
    numbers_at: NDArray[np.int64]
    counts: NDArray[np.int64]

    def of(self, chosen: NDArray[np.bool_]) -> Claims:
        return Claims(*(column[chosen] for column in self))


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The members' subscriptions. M members, in the order of `roster`; V topics, in the order of `names`."""

    roster: Roster
    names: tuple[str, ...]  #: topics; some may come only from malformed subscriptions
    subscribed: tuple[NDArray[np.int64], ...]  #: M: topics by number; members with equal bytes share one array
    data: Bytes
    claims: Claims
    generations: NDArray[np.int64]  #: M, as in `ClaimArrays`
    in_subscriptions: NDArray[np.int64]  #: M, as in `ClaimArrays`

    @property
    def topics(self) -> frozenset[str]:
        """All topics with a subscriber."""
        subscribed = np.zeros(len(self.names), np.bool_)
        for codes in self._distinct():
            subscribed[codes] = True
        return frozenset(self.names[code] for code in np.flatnonzero(subscribed).tolist())

    @property
    def alike(self) -> bool:
        """Whether all members subscribe to the same topics."""
        distinct = self._distinct()
        if len(distinct) <= 1:
            return True
        first, *others = distinct
        wanted = np.unique(first)
        return all(np.array_equal(np.unique(codes), wanted) for codes in others)

    def _distinct(self) -> Collection[NDArray[np.int64]]:
        return {id(codes): codes for codes in self.subscribed}.values()

    def grid(self, sizes: Mapping[str, int]) -> Grid:
        """Return the grid of the topics that have subscribers and exist."""
        return Grid.of({topic: sizes.get(topic, 0) for topic in self.topics})

    def claims_on(self, grid: Grid) -> ClaimArrays:
        """Return the members' claims on the grid's partitions."""
        codes = self._codes_of(grid)
        starts, sizes = np.zeros((2, len(self.names)), np.int64)
        starts[codes], sizes[codes] = grid.starts[:-1], grid.sizes
        counts = self.claims.counts
        firsts = np.cumsum(counts) - counts
        places = np.repeat(self.claims.numbers_at - 4 * firsts, counts) + 4 * np.arange(counts.sum())
        numbers = self.data.int32[places].astype(np.int64)
        topics = np.repeat(self.claims.topics, counts)
        exists = (numbers >= 0) & (numbers < sizes[topics])
        claimants = np.repeat(self.claims.members.astype(np.int32), counts)
        ids = starts[topics] + numbers
        return ClaimArrays(ids[exists], claimants[exists], self.generations, self.in_subscriptions)

    def mask(self, grid: Grid) -> NDArray[np.bool_]:
        """Return bool[M, T]: which member subscribes to which of the grid's topics, ignoring all others."""
        columns = np.full(len(self.names), len(grid.topics))
        columns[self._codes_of(grid)] = np.arange(len(grid.topics))
        rows = np.zeros((len(self.subscribed), len(grid.topics) + 1), np.bool_)
        for row, codes in zip(rows, self.subscribed, strict=True):
            row[columns[codes]] = True
        return rows[:, :-1]

    def _codes_of(self, grid: Grid) -> NDArray[np.int64]:
        codes = {name: code for code, name in enumerate(self.names)}
        return np.array([codes[topic] for topic in grid.topics], np.int64)


def read_sticky(members: Mapping[str, bytes]) -> Subscriptions:
    """Read claims from the user data, or without any from the owned partitions, as in `claims.sticky_claim`."""
    group = _gather(members)
    with_data = np.flatnonzero(group.user_data_at != NOWHERE)
    data_ends = group.user_data_ends[with_data]
    pieces, ends = walk(group.data, group.user_data_at[with_data], data_ends, null_is_empty=False)
    generations = group.generations.copy()
    generations[with_data] = NO_GENERATION
    named = (ends != NOWHERE) & (data_ends - ends >= 4)
    generations[with_data[named]] = group.data.int32[ends[named]]
    in_user_data = _claims(with_data, pieces, group.names.recognise_as_java(group.data, pieces))
    owned = group.owned.of(group.user_data_at[group.owned.members] == NOWHERE)
    claims = Claims(*(np.concatenate(columns) for columns in zip(owned, in_user_data, strict=True)))
    return group.subscriptions(claims, generations)


def read_cooperative(members: Mapping[str, bytes]) -> Subscriptions:
    """Read claims from the owned partitions; clients before 3.4 have the generation in the user data (`claims`)."""
    group = _gather(members)
    older = (group.user_data_at != NOWHERE) & (group.generations == NO_GENERATION)
    older &= group.user_data_ends - group.user_data_at >= 4
    generations = group.generations.copy()
    generations[older] = group.data.int32[group.user_data_at[older]]
    return group.subscriptions(group.owned, generations)


@dataclass(frozen=True, slots=True)
class _Group:
    """What both strategies read the same way. Arrays are M long, in hash order; positions are offsets into `data`."""

    roster: Roster
    names: TopicNames
    subscribed: tuple[NDArray[np.int64], ...]
    data: Bytes
    user_data_at: NDArray[np.int64]  #: NOWHERE for none
    user_data_ends: NDArray[np.int64]
    owned: Claims
    generations: NDArray[np.int64]

    def subscriptions(self, claims: Claims, generations: NDArray[np.int64]) -> Subscriptions:
        names = tuple(self.names.texts)
        return Subscriptions(self.roster, names, self.subscribed, self.data, claims, generations, self.generations)


def _gather(members: Mapping[str, bytes]) -> _Group:
    roster = Roster.of(members)
    parts = [members[member] for member in roster.members]
    data, names = Bytes(parts), TopicNames()
    heads = _Heads(names)
    topics = [heads.read(part) for part in parts]
    versions, user_data_at, user_data_ends, owned_at = np.array(heads.read_so_far, np.int64).reshape(-1, 4).T

    owning = np.flatnonzero(versions >= 1)
    pieces, ends = walk(data, (data.begins + owned_at)[owning], data.ends[owning], null_is_empty=True)
    codes, odd = names.recognise(data, pieces)
    versioned = versions[owning] >= 2
    readable = (ends != NOWHERE) & (~versioned | (ends + 4 <= data.ends[owning]))
    broken = versions < 0
    broken[owning[~readable]] = True
    broken[owning[pieces.members[odd]]] = True

    generations = np.full(len(parts), NO_GENERATION, np.int64)
    named = readable & versioned
    generations[owning[named]] = np.maximum(data.int32[ends[named]], NO_GENERATION)
    generations[broken] = NO_GENERATION
    owned = _claims(owning, pieces, codes)
    return _Group(
        roster,
        names,
        tuple([_no_topics() if out else read for read, out in zip(topics, broken, strict=True)]),
        data,
        np.where(broken | (user_data_at == NOWHERE), NOWHERE, data.begins + user_data_at),
        data.begins + user_data_ends,
        owned.of(~broken[owned.members]),
        generations,
    )


def _claims(walkers: NDArray[np.int64], pieces: Pieces, codes: NDArray[np.int64]) -> Claims:
    """Return the claims on known topics."""
    claims = Claims(walkers[pieces.members], codes, pieces.numbers_at, pieces.counts)
    return claims.of(codes != UNKNOWN)


class _Heads:
    """Reads subscriptions up to their owned partitions; fast for members with the same topics in the same bytes."""

    def __init__(self, names: TopicNames) -> None:
        self._names = names
        self._last = b"\0\0\0\0"  #: the last array of topics, as bytes ...
        self._last_codes = _no_topics()  #: ... and as numbers
        #: For each subscription: its version, or -1 if malformed; begin and end of the user data, or NOWHERE; begin of
        #: the owned partitions. Positions count from the subscription's first byte.
        self.read_so_far: list[tuple[int, int, int, int]] = []

    def read(self, data: bytes) -> NDArray[np.int64]:
        """Read one subscription; return its topics by number."""
        reader = Reader(data)
        try:
            version = reader.version()
            topics = self._topics(reader, data)
            user_data = reader.bytes_or_null()
        except MalformedMetadata:
            self.read_so_far.append((-1, NOWHERE, NOWHERE, NOWHERE))
            return _no_topics()
        at = reader.position
        self.read_so_far.append((version, NOWHERE if user_data is None else at - len(user_data), at, at))
        return topics

    def _topics(self, reader: Reader, data: bytes) -> NDArray[np.int64]:
        begin = reader.position
        if data.startswith(self._last, begin):
            reader.skip_to(begin + len(self._last))
            return self._last_codes
        count = reader.count(2)
        codes, at = [], reader.position
        for _ in range(count):
            name_at = at + 2
            at = name_at + int.from_bytes(data[at:name_at], signed=True)
            name = data[name_at:at]
            if len(name) != at - name_at or at > len(data):
                raise MalformedMetadata(f"a topic name of {at - name_at} bytes")
            code = self._names.codes.get(name)
            codes.append(self._names.learn(name) if code is None else code)
        reader.skip_to(at)
        self._last, self._last_codes = data[begin:at], np.array(codes, np.int64)
        return self._last_codes
