"""The count model: the exact number of ZooKeeper requests for membership changes of the 0.8 consumer.

Pure functions of a group's shape: N members after the change, T topics of each, P partitions in all, B brokers; of one
member, k partitions owned before, k' after, u with uncommitted progress. Source: the specification's section 7 with the
corrections measured on the originals (160 of 160 rounds of 0.8.2.2 and 1.1.1 equal). `by_step` gives one attempt's
requests as the trace names them, `reads_of_*` a whole change without conflicts; each failed attempt adds
`failed_attempt`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

#: A notification of children is answered with exists and getChildren, one of data with exists and getData.
DELIVERY = 2
#: The requests of a member that finds no broker: from R1 to the watch on /brokers/ids, without a leader finder.
NO_BROKER_READS = 8
READS = frozenset({"exists", "getData", "getChildren"})


@dataclass(frozen=True, slots=True)
class Shape:
    """A group in which all members subscribe alike."""

    members: int
    partitions: int
    topics: int = 1
    brokers: int = 1
    wildcard: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of one member.

    `outcome`: ok, conflict (someone else owned what was claimed) or stopped (gave up before the claim, after R8).
    `committed` are offsets written in R4, `first_commits` those of them whose node did not exist.
    """

    owned_before: int
    owned_after: int
    outcome: str = "ok"
    conflicts: int = 0
    committed: int = 0
    first_commits: int = 0


def by_step(shape: Shape, attempt: Attempt) -> Counter[str]:
    """Requests of one attempt as `step operation`; parents of a new group's owners and offsets are left out."""
    brokers, listing = shape.brokers, int(shape.wildcard)
    counts = Counter(
        {
            "R1 getChildren": 1,
            "R1 getData": brokers,
            "R2 getData": 1,
            "R2 getChildren": listing,
            "R3 getChildren": 1,
            "R3 getData": brokers,
            "R4 setData": attempt.committed,
            "R4 create": attempt.first_commits,
            "R5 delete": attempt.owned_before,
            "R6 getData": 1 + shape.topics + shape.members,
            # The ids twice; with patterns, the topics once for ourselves and once for each registration.
            "R6 getChildren": 2 + listing * (1 + shape.members),
            "R8 getData": attempt.owned_after,
        }
    )
    if attempt.outcome != "stopped":
        counts["R11 create"] = attempt.owned_after
        counts["R11 getData"] = attempt.conflicts
    if attempt.outcome == "conflict":
        counts["R11 delete"] = attempt.owned_after - attempt.conflicts
    if attempt.outcome == "ok":
        counts["leader-finder getChildren"] = 1
        counts["leader-finder getData"] = brokers
    return +counts


def reads_of(counts: Counter[str]) -> int:
    return sum(number for name, number in counts.items() if name.rsplit(" ", 1)[-1] in READS)


def attempt_reads(shape: Shape) -> int:
    """Reads of a successful attempt, without its offsets: N + T + 3B + 7, with patterns N + 2 more."""
    return reads_of(by_step(shape, Attempt(0, 0)))


def failed_attempt(shape: Shape, offsets_read: int, conflicts: int) -> int:
    """N + T + 2B + 6, its offsets, and one read per conflict."""
    return reads_of(by_step(shape, Attempt(0, offsets_read, "conflict", conflicts)))


def subscribing(topics: int, *, wildcard: bool = False) -> int:
    """Reads for a joining member's listeners: exists and getChildren of the ids, exists of each topic.

    With a pattern six more than for its topics: /brokers/topics is listed before and after the registration; after the
    first rebalance the member checks that it exists, listens to it (exists and getChildren) and lists it again.
    """
    return 2 + topics + (6 if wildcard else 0)


def reads_of_join(shape: Shape, *, release: str = "0.8.2") -> int:
    """N^2 + N(T+3B+9) + P + T; 1.1 reads `/` once before its first claim."""
    others = (shape.members - 1) * DELIVERY
    attempts = shape.members * attempt_reads(shape) + shape.partitions
    return others + subscribing(shape.topics, wildcard=shape.wildcard) + attempts + (release == "1.1")


def reads_of_leave(shape: Shape) -> int:
    """N^2 + N(T+3B+9) + P, for a leave as for a crash."""
    return shape.members * (DELIVERY + attempt_reads(shape)) + shape.partitions


def reads_of_growth(shape: Shape) -> int:
    """One topic has grown; `shape.partitions` is the new number. N(r+2), as for a leave."""
    return reads_of_leave(shape)


def reads_of_new_topic(shape: Shape) -> int:
    """A topic that the patterns match appears; T and P include it. Each member: r + (N+2) + 6 + T."""
    return shape.members * (attempt_reads(shape) + 6 + shape.topics) + shape.partitions


def reads_of_expiry(shape: Shape, owned: int, rebalances: int) -> int:
    """Reads of the member whose session expired, with `rebalances` of at most 2 + T: each listener is notified once.

    3r + 2 + 2T for three rebalances, r with its offsets.
    """
    return rebalances * (attempt_reads(shape) + owned) + DELIVERY * (1 + shape.topics)


def rebalances_of_expiry(topics: int) -> tuple[int, int]:
    """(fewest, most): one in the renewed session and one for all notifications; at most one for each listener."""
    return 2, 2 + topics


def reads_of_mass_start(shape: Shape, *, release: str = "0.8.2") -> tuple[int, int]:
    """(best, worst) of N members that start at once in an empty group, without failed attempts.

    Best: all register before any of them has a watch, one rebalance each. Worst: as if they joined one by one.
    """
    extra = shape.members * (release == "1.1")
    best = shape.members * (attempt_reads(shape) + subscribing(shape.topics)) + shape.partitions
    worst = sum(
        reads_of_join(Shape(n, shape.partitions, shape.topics, shape.brokers)) for n in range(1, shape.members + 1)
    )
    return best + extra, worst + extra


def writes_of_join(shape: Shape, *, commits: int = 0) -> int:
    """Successful writes: 1 + 2P + U; 1.1's three attempts to create the group's parents fail."""
    return 1 + 2 * shape.partitions + commits


def writes_of_leave(shape: Shape, *, owned_by_leaver: int) -> int:
    """The session's end, the releases of the others, and all claims: 1 + (P-k) + P."""
    return 1 + 2 * shape.partitions - owned_by_leaver


def notifications_of_join(members: int) -> int:
    return members - 1


def notifications_of_leave(members: int, *, graceful: bool) -> int:
    """N, and one to the leaving member, whose session's end removes znodes that it watches."""
    return members + int(graceful)


def notifications_of_mass_start(members: int) -> tuple[int, int]:
    """(fewest, most): none when all register first, N(N-1)/2 when none are merged."""
    return 0, members * (members - 1) // 2


@dataclass(frozen=True, slots=True)
class Tally:
    """The measured counts of a change, in the model's terms. `offsets_read` and `conflicts` cover all attempts."""

    reads: int
    writes: int  #: accepted by the server, including the end of a session
    attempts: int
    failed: int
    offsets_read: int
    conflicts: int

    def reads_of_failed(self, shape: Shape) -> int:
        """The cost of the failed attempts, if a successful one read each of the P offsets once."""
        base = self.failed * (failed_attempt(shape, 0, 0))
        return base + max(0, self.offsets_read - shape.partitions) + self.conflicts


def tally(ops: Iterable[tuple[str, str, str, str | None]], group: str) -> Tally:
    """Sum up (connection, operation, path, result); connections are named by member id.

    An attempt reads its own registration three times (R2, twice in R6). An attempt that finds another member's node in
    a claim has failed; attempts that failed for other reasons are not detected.
    """
    counts: Counter[str] = Counter()
    own_reads: Counter[str] = Counter()
    conflicting: set[tuple[str, int]] = set()  #: (connection, number of its attempt)
    for connection, op, path, result in ops:
        counts["reads"] += op in READS
        counts["writes"] += op in ("create", "delete", "setData", "closeSession") and result == "ok"
        own_reads[connection] += op == "getData" and path == f"/consumers/{group}/ids/{connection}"
        counts["offsets"] += op == "getData" and path.startswith(f"/consumers/{group}/offsets/")
        if op == "getData" and path.startswith(f"/consumers/{group}/owners/"):
            counts["conflicts"] += 1
            conflicting.add((connection, own_reads[connection] // 3))
    attempts = sum(reads // 3 for reads in own_reads.values())
    return Tally(counts["reads"], counts["writes"], attempts, len(conflicting), counts["offsets"], counts["conflicts"])
