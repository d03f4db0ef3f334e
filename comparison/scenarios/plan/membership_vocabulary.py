"""Steps about who is a member: members that are restarted, come back, or are somebody else; and what all of them do.

As in `comparison.scenarios.plan.vocabulary`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from comparison.scenarios.plan.step import MeasuredFault, Step, Turnover, unknown_design

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comparison.scenarios.plan.step import Sizes


@dataclass(frozen=True, slots=True)
class RestartEach(Step):
    """Shut down each process cleanly, one after the other, and start it again after `away_ms`.

    If leaving causes a rebalance, the process stays away until all others have been through it: if it came back in the
    middle, chance would decide whether there are one or two rebalances.

    The next one is shut down when every partition has one owner, nothing has changed for a moment, and a random part
    of the heartbeat interval has passed. The new process takes the old one's place in the group: its
    group.instance.id, in designs that have one.

    Without `wait` all of that is one change, as of an orchestrator to which a process that runs is a member: whatever
    the group does, the next one is shut down `away_ms` after the one before was started. A process that the group
    refuses ends, so it is started again when all have been through it, every `away_ms` until none is refused.
    """

    away_ms: int = 1000
    wait: bool = True  #: for the group, before the next one
    settings: Mapping[str, str] = field(default_factory=dict)  #: of the restarted process, over the design's own
    design: str = ""  #: of the restarted process, if it is another one than before

    all_leave: ClassVar[bool] = True

    def losses(self, members: int) -> int:
        return members

    def away(self, session_ms: int, delay_ms: int) -> int:
        return self.away_ms

    def sentence(self) -> str:
        if self.wait:
            return f"Shut down each process cleanly, one after the other, and start it again after {self.away_ms} ms."
        return (
            f"Restart each process, one after the other, each {self.away_ms} ms after the one before, without waiting "
            "for the group; start those again that it refuses."
        )

    def design_after(self, before: str, of_run: str) -> str:
        return self.design or before

    def complaints(self, before: Sizes) -> Iterator[str]:
        yield from unknown_design(self.design)


@dataclass(frozen=True, slots=True)
class Resubscribe(Step):
    """Change a member's subscription to other topics.

    `place` is that of its process (1 is m1). In zookeeper a running member cannot change its subscription, so its
    process is shut down and started again with the new topics.
    """

    place: int
    topics: tuple[int, ...]  #: topic numbers
    round: int = 1

    changes_subscriptions: ClassVar[bool] = True
    disturbs: ClassVar[bool] = True

    @property
    def member(self) -> str:
        return f"m{self.place}"

    def complaints(self, before: Sizes) -> Iterator[str]:
        if not 1 <= self.place <= before.places:
            several = f"are places 1 to {before.places}" if before.places > 1 else "is only place 1"
            yield f"place {self.place}: there {several} by then"
        if strange := [number for number in self.topics if not 0 <= number < before.topics]:
            yield f"topic {strange[0]}: there are {before.topics} topics, which count from 0"
        if not self.topics:
            yield "topics is empty. Name at least one"


@dataclass(frozen=True, slots=True)
class CrashAndReturn(MeasuredFault):
    """Kill an owner (SIGKILL); a new process takes its place in time or, with `over_ms`, too late.

    Without `over_ms` it is away for half the session timeout; in delayed, which waits longer, for the session timeout
    and a third of the delay. With `over_ms` it is away for the session timeout, the delay and `over_ms` more: the group
    has gone on without it.
    """

    over_ms: int | None = None

    change: ClassVar[str] = "crash-and-return"
    fault: ClassVar[str] = "kill"
    picks_owner: ClassVar[bool] = True
    loses: ClassVar[int] = 1

    def away(self, session_ms: int, delay_ms: int) -> int:
        if self.over_ms is not None:
            return session_ms + delay_ms + self.over_ms
        return session_ms + delay_ms // 3 if delay_ms else session_ms // 2

    def sentence(self) -> str:
        late = "in time" if self.over_ms is None else f"{self.over_ms} ms too late"
        return f"Kill an owner (SIGKILL); a new process takes its place {late}."


@dataclass(frozen=True, slots=True)
class DuplicateInstance(Step):
    """Start one more process with the name of an owner (group.instance.id or consumer.id), which goes on running.

    The step ends when the application of one of the two has learned that it is one too many, and has closed its
    consumer: the owner's in static, the newer one's in consumer and zookeeper.
    """

    needs_names: ClassVar[bool] = True
    picks_owner: ClassVar[bool] = True
    disturbs: ClassVar[bool] = True
    turns_over: ClassVar[Turnover] = Turnover(added=1, gone=1)


@dataclass(frozen=True, slots=True)
class StartAnew(Step):
    """Shut all members down, and start as many new ones of the run's design after `away_ms`, with other settings.

    Members that join later get these settings as well.
    """

    settings: Mapping[str, str] = field(default_factory=dict)  #: over the design's own
    change: str = "form"  #: the name of the measurement; `form` is not judged
    away_ms: int = 0

    all_leave: ClassVar[bool] = True

    def turnover(self, present: int, asked: int) -> Turnover:
        return Turnover(added=present, gone=present)

    def design_after(self, before: str, of_run: str) -> str:
        return of_run


@dataclass(frozen=True, slots=True)
class JoinAndLeave(Step):
    """Let one more member join, then let the longest-standing member leave.

    `label` begins the names of both measurements.
    """

    label: str

    turns_over: ClassVar[Turnover] = Turnover(added=1, gone=1)


@dataclass(frozen=True, slots=True)
class SlowApplication(Step):
    """From now on every application, also of members that join later, spends `per_record_ms` on each record."""

    per_record_ms: int

    @property
    def record_ms(self) -> int:
        return self.per_record_ms


@dataclass(frozen=True, slots=True)
class CopyWithZombie(Step):
    """Copy the first `records` records of the first partition to a topic of its own, by an application that pauses.

    The application is a process, the only member of a group of its own. It is frozen (SIGSTOP) halfway and removed from
    its group. Another process replaces it, copies all, commits the offset and the transaction. Then the first one wakes
    up: it writes its other half, and commits. A read_committed reader counts the copies.
    """

    transactions: bool = True  #: both incarnations have the same transactional.id
    records: int = 20
