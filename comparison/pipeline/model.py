"""What a change must cost, in exact counts, by the design; pure arithmetic.

`zookeeper`: the count model of Kafka 0.8.2's high-level consumer, held against running originals (160 of 160
rounds alike). With N members after the change, T topics, P partitions in all, B brokers, every member

    is notified (2 reads), reads (1+B) + 1 + (1+B) + (N+T+3) + its own offsets, and (1+B) to find leaders,
    deletes its old claims, and creates its new ones;

a joiner reads 2+T more to subscribe, registers (1 create) and is not notified; one that gets no partition finds no
leaders. What a leaver or a dead member owned goes with its session, which is no request of a member's. Commits are
not predicted: how much there is to commit is a matter of time.

An attempt that fails by a conflict adds N+T+2B+6 reads, those of its offsets, a create for each of its partitions,
a read for each conflict, and a delete for each claim that it made and gives back. How many attempts failed, what
they read and how many of their claims failed is measured, within the bounds of what it can be: no more offsets an
attempt than a member's share, a conflict at least in each attempt, and no more of them than claims.

For the designs with a coordinator see comparison.pipeline.group_model.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JOIN, LEAVE, CRASH = "join", "leave", "crash"
MODELLED = (JOIN, LEAVE, CRASH)
#: A member leaves, and comes back a little later.
RESTART = "restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the counts depend on; `members` after the change, `partitions` over all topics."""

    members: int
    topics: int
    partitions: int
    brokers: int
    streams: int = 1  #: of every member and topic
    released: int | None = None  #: partitions of the member that went; None: not known
    one_read: bool = False  #: watch.reads=one: a watch is armed by a single read, which saves one a member

    @property
    def idle(self) -> int:
        """Members that own nothing: `range` fills the streams of one member after the other, topic by topic."""
        busy = -(-self.partitions // self.topics // self.streams)
        return max(0, self.members - busy)

    @property
    def share(self) -> int:
        """The most that one member owns."""
        each = self.partitions // self.topics
        return self.topics * min(each, self.streams * -(-each // (self.members * self.streams)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubles:
    """What the trace says where attempts failed: how many by a conflict, all reads of offsets, all failed claims."""

    attempts: int = 0
    offset_reads: int = 0
    conflicts: int = 0

    def claims(self, at: Setting) -> int:
        """Claims of the attempts that failed: as many as offsets were read beyond those of the others."""
        return max(0, min(self.offset_reads - at.partitions, self.attempts * at.share))

    def lost_claims(self, at: Setting) -> int:
        return min(max(self.conflicts, self.attempts), self.claims(at))


@dataclass(frozen=True, slots=True)
class Prediction:
    """A count and how it was come to."""

    count: int
    formula: str


def zookeeper(change: str, at: Setting, troubles: Troubles) -> Mapping[str, Prediction]:
    """Reads, writes and notifications of one change, failed requests included; commits are apart.

    The writes of a leave or a crash are predicted only where it is known what the member that went had owned.
    """
    n, t, p, b = at.members, at.topics, at.partitions, at.brokers
    deliveries = 8 if at.one_read else 9
    reads = n * n + n * (t + 3 * b + deliveries) + p - at.idle * (1 + b)
    formula = f"N^2+N(T+3B+{deliveries})+P"
    if change == JOIN:
        reads += t
        formula += "+T"
    if at.idle:
        formula += "-(N-P)(1+B)"
    released = 0 if change == JOIN else at.released
    writes, written = (2 * p + 1, "2P+1") if change == JOIN else (2 * p - (released or 0), "2P-k")
    if troubles.attempts:
        claims, lost = troubles.claims(at), troubles.lost_claims(at)
        reads += troubles.attempts * (n + t + 2 * b + 6) + claims + lost
        writes += 2 * claims - lost
        formula += " and failed attempts"
        written += " and failed attempts"
    notifications = {JOIN: (n - 1, "N-1"), LEAVE: (n + 1, "N+1"), CRASH: (n, "N")}[change]
    predicted = {"reads": Prediction(reads, formula), "notifications": Prediction(*notifications)}
    return predicted if released is None else {**predicted, "writes": Prediction(writes, written)}


def moved_minimum(owners: Sequence[tuple[str | None, str | None]], members: int) -> int:
    """The least that had to move, of (before, after) for each partition, for a balanced group of that size.

    With every owner that is still there stays as much as a balanced share holds; the larger shares go to those that
    had most.
    """
    staying = {after for _, after in owners}
    had = Counter(before for before, _ in owners if before in staying and before is not None)
    share, larger_shares = divmod(len(owners), max(1, members))
    kept = sum(
        min(count, share + (1 if place < larger_shares else 0)) for place, (_, count) in enumerate(had.most_common())
    )
    owned_before = sum(1 for before, _ in owners if before is not None)
    return max(0, owned_before - kept)
