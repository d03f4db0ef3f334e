"""What is counted, and who owns what: figures of the present stage, with the meanings that the pipeline gives them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from comparison.ownership.fold import CLAIMS
from kernel.clock import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comparison.simulation.deciding.heap import EventHeap
    from coordinator.membership.effects import Emit


class Ledger:
    """Of one group with so many partitions, in the view of its members (`believed`)."""

    def __init__(self, heap: EventHeap, partitions: int) -> None:
        self.requests: Counter[str] = Counter()  #: of members, by API
        self.znode_operations: Counter[str] = Counter()  #: reads and writes of members, and what they were notified of
        self.detected_ns: int | None = None  #: when the authority noticed the loss of a member
        self._heap = heap
        self.moved = 0  #: how often a partition got another owner than its last one
        self._owners: dict[tuple[str, int], int] = {}
        self._last: dict[tuple[str, int], str] = {}  #: who owned each partition last
        self._wanted = partitions
        self._owned = 0  #: partitions with any owner
        self._owned_once = 0
        self._began_ns = self._changed_ns = self._settled_ns = heap.now_ns
        self._unowned_ns = 0

    def begin(self) -> None:
        """A stage begins: everything is counted from here."""
        self._account()
        self.requests.clear()
        self.znode_operations.clear()
        self.detected_ns = None
        self.moved = 0
        self._began_ns, self._unowned_ns = self._heap.now_ns, 0
        self._settled_ns = self._heap.now_ns

    def take(self, event: Emit, member: str) -> None:
        """What a member says of its partitions."""
        if event.kind in CLAIMS:
            listed = event.fields["partitions"]
            assert isinstance(listed, list)
            partitions = [(each["topic"], each["partition"]) for each in listed]
            by = 1 if event.kind == "partitions_assigned" else -1
            if by > 0:
                self.moved += sum(self._last.get(key, member) != member for key in partitions)
                self._last |= dict.fromkeys(partitions, member)
            self._claim(partitions, by)

    def gone(self, partitions: Iterable[tuple[str, int]]) -> None:
        """The process that believed to own them has ended."""
        self._claim(partitions, by=-1)

    def _claim(self, partitions: Iterable[tuple[str, int]], by: int) -> None:
        self._account()
        owners, was_settled = self._owners, self.is_settled
        for key in partitions:
            before = owners.get(key, 0)
            after = owners[key] = before + by
            self._owned += (after > 0) - (before > 0)
            self._owned_once += (after == 1) - (before == 1)
        if not was_settled and self.is_settled:
            self._settled_ns = self._heap.now_ns

    def _account(self) -> None:
        self._unowned_ns += (self._wanted - self._owned) * (self._heap.now_ns - self._changed_ns)
        self._changed_ns = self._heap.now_ns

    @property
    def is_settled(self) -> bool:
        """Whether every partition has one owner."""
        return self._owned_once == self._wanted

    @property
    def settled_for_ns(self) -> int:
        """For how long that has been so; 0 if it is not."""
        return self._heap.now_ns - self._settled_ns if self.is_settled else 0

    @property
    def converge_ms(self) -> float | None:
        """From the beginning of the stage until every partition had one owner for good; None: not yet."""
        return (self._settled_ns - self._began_ns) / NS_PER_MS if self.is_settled else None

    @property
    def detect_ms(self) -> float | None:
        """From the beginning of the stage until the authority noticed a loss; None: it had nothing to notice."""
        return None if self.detected_ns is None else (self.detected_ns - self._began_ns) / NS_PER_MS

    @property
    def lasted_s(self) -> float:
        """The stage so far."""
        return (self._heap.now_ns - self._began_ns) / NS_PER_S

    @property
    def unowned_partition_s(self) -> float:
        """Over all partitions."""
        self._account()
        return self._unowned_ns / NS_PER_S
