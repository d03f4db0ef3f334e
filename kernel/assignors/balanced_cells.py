"""A group as counts of partitions, with one cell for each subscription of a member to a topic.

Cells are sorted by topic, then by member, so that a topic is a slice. A cell holds only a count: `balanced` moves
counts, and decides at the end which partitions a member gives up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Cells:
    """A group of M members and T topics in S cells. Empty topics and topics without subscribers have no cells."""

    def __init__(self, starts: NDArray[np.int64], subscribed: NDArray[np.bool_]) -> None:
        """`starts` and `subscribed` are those of `balanced.balance`."""
        sizes = np.diff(starts)
        by_topic = np.ascontiguousarray(subscribed.T)  # copies unless it is transposed already
        by_topic = by_topic & (sizes > 0)[:, np.newaxis]
        places = np.flatnonzero(by_topic)
        members = subscribed.shape[0]
        widths = np.count_nonzero(by_topic, axis=1)
        self.sizes: NDArray[np.int64] = sizes[
            widths > 0
        ]  #: partitions of each topic that has cells; places below are places in it
        self.first = np.concatenate(([0], np.cumsum(widths[widths > 0])))  #: first cell of each topic; last entry S
        self.member = places % max(1, members)  #: int64[S]
        self.kept = np.zeros(len(places), np.int64)  #: [S]: partitions that the member had and may keep
        self.held = np.zeros(len(places), np.int64)  #: [S]: partitions that it has now
        self.loads = np.zeros(members, np.int64)  #: [M]: all partitions that it has now
        self._place = np.cumsum(widths > 0) - 1
        self._number = np.full(by_topic.size + 1, -1, np.int32)  # index -1 refers to the last entry
        self._number[places] = np.arange(len(places), dtype=np.int32)

    @property
    def widths(self) -> NDArray[np.int64]:
        """The number of subscribers of each topic."""
        return np.diff(self.first)

    def claim(self, topic: NDArray[np.int64], owner: NDArray[np.int32]) -> NDArray[np.int32]:
        """Enter the former owners. Returns the cell of each partition; -1 if its owner may not keep it.

        Both arguments are indexed by partition; an owner of -1 means none.
        """
        cell: NDArray[np.int32] = self._number[np.where(owner < 0, -1, topic * len(self.loads) + owner)]
        self.kept = np.bincount(cell[cell >= 0], minlength=len(self.member))
        self.held = self.kept.copy()
        np.add.at(self.loads, self.member, self.held)
        return cell

    def free(self) -> NDArray[np.int64]:
        """The number of partitions of each topic without an owner."""
        if not len(self.sizes):
            return self.sizes
        had: NDArray[np.int64] = np.add.reduceat(self.held, self.first[:-1])
        return self.sizes - had

    def has_cells(self, topic: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether these topics have any subscribers."""
        return np.diff(self._place, prepend=-1)[topic] > 0

    def of_topic(self, place: int) -> slice:
        """The cells of a topic."""
        return slice(int(self.first[place]), int(self.first[place + 1]))

    def of_member(self, member: int) -> NDArray[np.int64]:
        """The cells of a member, one for each topic."""
        column = self._number[member : -1 : len(self.loads)]
        return column[column >= 0].astype(np.int64)

    def topics_of(self, cells: NDArray[np.int64]) -> list[slice]:
        """The cells of the topics of these cells."""
        return [self.of_topic(place) for place in np.searchsorted(self.first, cells, side="right") - 1]

    def move(self, at: slice, change: NDArray[np.int64]) -> None:
        """Change the counts of a topic's subscribers. The changes sum to 0 unless free partitions are assigned."""
        self.held[at] += change
        self.loads[self.member[at]] += change
