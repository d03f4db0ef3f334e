"""Which brokers coordinated a group, and whether a replaced one went on.

The coordinator is the broker that leads the group's partition of the offsets topic. Every takeover of that partition
begins a *term*; the commits and owners that the broker accepts from then on belong to its latest term. A broker that
still accepts after another took over at a higher leader epoch is *late*: the fence on its storage should have stopped
it, except for writes that were durable before and are traced a little later. (Refusals are no fault: members learn of
the move from them.)
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.results.run import Term
from kernel.clock import in_ms
from kernel.java_hash import java_hash, kafka_abs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.pipeline.measured import Acting, Takeover

#: A broker traces its takeover when it has loaded the group, and names the owners while it loads.
LOADING_NS = 1_000_000_000
#: How late a busy broker may trace what was durable before it was replaced. One that is not fenced goes on far longer.
TRACED_LATE_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Held:
    """A takeover, and the intervals in which its broker accepted commits afterwards."""

    process: str
    leader_epoch: int
    t_ns: int
    stretches: tuple[Acting, ...]

    @property
    def began_ns(self) -> int:
        return min([self.t_ns, *(stretch.from_ns for stretch in self.stretches)])

    @property
    def last_ns(self) -> int | None:
        return max((stretch.until_ns for stretch in self.stretches), default=None)


def terms(takeovers: Sequence[Takeover], acting: Sequence[Acting]) -> list[Term]:
    """The terms of one run's coordinators, in order; empty where leadership was not traced."""
    partitions = 1 + max((takeover.partition for takeover in takeovers), default=0)
    found = []
    for group in sorted({stretch.group for stretch in acting}):
        place = kafka_abs(java_hash(group)) % partitions
        took = sorted(
            (takeover for takeover in takeovers if takeover.partition == place), key=lambda each: each.leader_epoch
        )
        held = _held(took, [stretch for stretch in acting if stretch.group == group])
        found += [_term(group, each, held[number + 1 :]) for number, each in enumerate(held)]
    return found


def _held(took: Sequence[Takeover], stretches: Sequence[Acting]) -> list[_Held]:
    """Each interval with its broker's latest takeover before it."""
    whose: dict[int, list[Acting]] = defaultdict(list)
    for stretch in stretches:
        before = [
            number
            for number, term in enumerate(took)
            if term.process == stretch.process and term.t_ns <= stretch.from_ns + LOADING_NS
        ]
        if before:
            whose[before[-1]].append(stretch)
    return [_Held(term.process, term.leader_epoch, term.t_ns, tuple(whose[number])) for number, term in enumerate(took)]


def _term(group: str, term: _Held, later: Sequence[_Held]) -> Term:
    replaced_ns = min((other.began_ns for other in later if other.process != term.process), default=None)
    late = replaced_ns is not None and term.last_ns is not None and term.last_ns > replaced_ns + TRACED_LATE_NS
    return Term(
        group=group,
        broker=term.process,
        leader_epoch=term.leader_epoch,
        from_ms=in_ms(term.t_ns),
        commits=sum(stretch.commits for stretch in term.stretches),
        last_ms=in_ms(term.last_ns) if term.last_ns is not None else None,
        late=late,
    )
