"""Virtual time: calls in the order of their moments, and those of one moment in the order in which they were made."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class EventHeap:
    """`now_ns` stands still while a call runs."""

    def __init__(self, start_ns: int) -> None:
        self.now_ns = start_ns
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._number = 0

    def at(self, at_ns: int, call: Callable[..., None], *given: Any) -> None:
        """Call it then, or as soon as what is due before has been called."""
        self._number += 1
        heapq.heappush(self._heap, (max(at_ns, self.now_ns), self._number, call, given))

    def run(self, until_ns: int) -> None:
        """Make the calls that are due until this moment."""
        heap = self._heap
        while heap and heap[0][0] <= until_ns:
            self.now_ns, _, call, given = heapq.heappop(heap)
            call(*given)
        self.now_ns = until_ns


class Connection:
    """Two ends with a delay for each message, which arrive in order; once closed, nothing arrives."""

    __slots__ = ("_back_ns", "_delay_ns", "_heap", "_there_ns", "is_open")

    def __init__(self, heap: EventHeap, delay_ns: Callable[[], int]) -> None:
        self.is_open = True
        self._heap = heap
        self._delay_ns = delay_ns
        self._there_ns = self._back_ns = 0

    def send(self, call: Callable[..., None], *given: Any) -> None:
        """To the server, which gets it even if the client closes meanwhile."""
        self._there_ns = max(self._there_ns, self._heap.now_ns + self._delay_ns())
        self._heap.at(self._there_ns, call, *given)

    def answer(self, call: Callable[..., None], *given: Any) -> None:
        """To the client."""
        self._back_ns = max(self._back_ns, self._heap.now_ns + self._delay_ns())
        self._heap.at(self._back_ns, self._arrive, call, given)

    def _arrive(self, call: Callable[..., None], given: tuple[Any, ...]) -> None:
        if self.is_open:
            call(*given)

    def round_trips(self, number: int, then: Callable[[], None]) -> None:
        """Call it when so many requests, one after the other, have been answered without ado."""
        if number:
            self.send(self.answer, self.round_trips, number - 1, then)
        else:
            then()
