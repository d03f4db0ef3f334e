"""The exact counts that a change must cost in the `zookeeper` design; pure arithmetic.

The count model of Kafka 0.8.2's high-level consumer, checked against running originals (160 of 160 rounds
equal). With N members after the change, T topics, P partitions in all and B brokers, every member

    is notified (2 reads), reads (1+B) + 1 + (1+B) + (N+T+3) + its own offsets, and (1+B) to find leaders,
    deletes its old claims, and creates its new ones;

a joiner reads 2+T more to subscribe, registers (1 create) and is not notified; one that gets no partition finds no
leaders. The claims of a leaver or a dead member go with its session, without a member's request. Commits are not
predicted: how much there is to commit depends on time.

An attempt that fails by a conflict adds N+T+2B+6 reads, those of its offsets, a create for each of its partitions,
a read for each conflict, and a delete for each claim that it made and gives back. The number of failed attempts, their
reads and failed claims are measured, and bounded: no more offsets per attempt than a member's share, at least one
conflict per attempt, and no more conflicts than claims.

For the designs with a coordinator see comparison.pipeline.figures.group_model.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JOIN, LEAVE, CRASH = "join", "leave", "crash"
MODELLED = (JOIN, LEAVE, CRASH)
#: A member leaves and returns a little later; a member is killed and returns.
RESTART, RETURN = "restart", "crash-and-return"
#: A topic grows.
GROWTH = "partition-increase"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the counts depend on; `members` after the change, `partitions` over all topics."""

    members: int
    topics: int
    partitions: int
    brokers: int
    streams: int = 1  #: of every member and topic
    released: int | None = None  #: partitions of the member that went; None: not known
    release_1_1: bool = False  #: kafka.release=1.1: a joiner reads `/` once, and creates the group's parents in vain
    one_read: bool = False  #: watch.reads=one: a single read sets a watch, which saves one read per member

    @property
    def idle(self) -> int:
        """Members without partitions: `range` fills the streams of one member after another, topic by topic."""
        busy = -(-self.partitions // self.topics // self.streams)
        return max(0, self.members - busy)

    @property
    def share(self) -> int:
        """The most partitions that one member owns."""
        each = self.partitions // self.topics
        return self.topics * min(each, self.streams * -(-each // (self.members * self.streams)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Troubles:
    """What the trace shows of failed attempts: how many a conflict failed, all offset reads, all failed claims."""

    attempts: int = 0
    offset_reads: int = 0
    conflicts: int = 0

    def claims(self, at: Setting) -> int:
        """Claims of the failed attempts: as many as the offset reads beyond those of the others."""
        return max(0, min(self.offset_reads - at.partitions, self.attempts * at.share))

    def lost_claims(self, at: Setting) -> int:
        return min(max(self.conflicts, self.attempts), self.claims(at))


@dataclass(frozen=True, slots=True)
class Prediction:
    """A predicted count and its formula."""

    count: int
    formula: str


def zookeeper(change: str, at: Setting, troubles: Troubles) -> Mapping[str, Prediction]:
    """Reads, writes and notifications of one change, failed requests included, without commits.

    The writes of a leave or a crash are predicted only if it is known what the departed member owned.
    """
    n, t, p, b = at.members, at.topics, at.partitions, at.brokers
    deliveries = 8 if at.one_read else 9
    reads = n * n + n * (t + 3 * b + deliveries) + p - at.idle * (1 + b)
    formula = f"N^2+N(T+3B+{deliveries})+P"
    as_1_1 = at.release_1_1 and change == JOIN
    if change == JOIN:
        reads += t
        formula += "+T"
    if as_1_1 and not at.idle:
        reads += 1
        formula += "+1"
    if at.idle:
        formula += "-(N-P)(1+B)"
    released = 0 if change == JOIN else at.released
    writes, written = (2 * p + 1, "2P+1") if change == JOIN else (2 * p - (released or 0), "2P-k")
    if as_1_1:
        writes, written = writes + 3, "2P+4"
    if troubles.attempts:
        claims, lost = troubles.claims(at), troubles.lost_claims(at)
        reads += troubles.attempts * (n + t + 2 * b + 6) + claims + lost
        writes += 2 * claims - lost
        formula += " and failed attempts"
        written += " and failed attempts"
    notifications = {JOIN: (n - 1, "N-1"), LEAVE: (n + 1, "N+1"), CRASH: (n, "N")}[change]
    predicted = {"reads": Prediction(reads, formula), "notifications": Prediction(*notifications)}
    return predicted if released is None else {**predicted, "writes": Prediction(writes, written)}


def zookeeper_growth(members: int, before: int, after: int, troubles: Troubles) -> Mapping[str, Prediction]:
    """Writes and notifications when partitions are added: every member releases all, and claims its new share.

    Reads are not predicted: leader finders read on until each new partition has a leader.
    """
    predicted = {"notifications": Prediction(members, "N")}
    return predicted if troubles.attempts else {**predicted, "writes": Prediction(before + after, "P+P'")}


def moved_minimum(owners: Sequence[tuple[str | None, str | None]], members: int) -> int:
    """The fewest partitions that had to move for a balanced group of that size, from (before, after) of each partition.

    Every remaining owner keeps up to a balanced number; the larger numbers go to those that had most.
    """
    staying = {after for _, after in owners}
    had = Counter(before for before, _ in owners if before in staying and before is not None)
    share, larger_shares = divmod(len(owners), max(1, members))
    kept = sum(
        min(count, share + (1 if place < larger_shares else 0)) for place, (_, count) in enumerate(had.most_common())
    )
    owned_before = sum(1 for before, _ in owners if before is not None)
    return max(0, owned_before - kept)
