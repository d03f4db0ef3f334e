"""What a server keeps on its disk: the log of transactions, the tree of those that it has applied, and its epochs."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comparison.simulation.zookeeper.model.tree import DataTree

if TYPE_CHECKING:
    from comparison.simulation.zookeeper.model.tree import Transaction

#: A zxid is an epoch and a counter.
COUNTER_BITS = 32


@dataclass(slots=True)
class History:
    """The whole log is kept, so every follower can be brought up to date by what it lacks, without a snapshot."""

    tree: DataTree = field(default_factory=DataTree)
    accepted_epoch: int = 0  #: promised to a leader of
    current_epoch: int = 0  #: of the last leader that it followed
    log: list[Transaction] = field(default_factory=list)

    @property
    def last_zxid(self) -> int:
        return self.log[-1].zxid if self.log else 0

    def append(self, txn: Transaction) -> None:
        assert txn.zxid > self.last_zxid
        self.log.append(txn)

    def after(self, zxid: int) -> tuple[Transaction, ...]:
        """The transactions behind that one, which it may lack."""
        return tuple(self.log[self._behind(zxid) :])

    def shared_with(self, zxid: int) -> int:
        """The last zxid of this log that another log, which ends with `zxid`, can have, too."""
        place = self._behind(zxid)
        return self.log[place - 1].zxid if place else 0

    def truncate(self, zxid: int) -> None:
        """Forget what is behind that transaction. It was not committed, so it was not applied."""
        assert self.tree.applied <= zxid
        del self.log[self._behind(zxid) :]

    def _behind(self, zxid: int) -> int:
        return bisect_right(self.log, zxid, key=lambda txn: txn.zxid)
