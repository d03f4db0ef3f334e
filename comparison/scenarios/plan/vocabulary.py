"""What a scenario's plan is written in: one class for each kind of step, as data.

The first paragraph of each one's text is what `rebalance-lab scenarios --show` says of it.
`comparison.scenarios.run.steps` performs them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Form:
    """Bring the group to so many members (--members where none is named), all new ones at once; wait until settled."""

    members: int | None = None
    change: str = "form"  #: what it is called when it is measured: `mass-start`, or `grow` between others
    more: int | None = None  #: instead of `members`: by how many it grows
    settings: Mapping[str, str] = field(default_factory=dict)  #: over the design's own, for these members

    def size(self, present: int, asked: int) -> int:
        """Of the group afterwards: `present` are there, a user has asked for `asked`."""
        if self.more is not None:
            return present + self.more
        return self.members if self.members is not None else asked


@dataclass(frozen=True, slots=True)
class Steady:
    """Wait until every partition was delivered and committed, then for a random part of the timers' interval.

    The random part (from the seed) matters: how soon a change is noticed depends on the phase of the heartbeats, how
    much is delivered twice on that of the automatic commits.
    """


@dataclass(frozen=True, slots=True)
class JoinOne:
    """One more member joins a quiet group."""

    round: int = 1


@dataclass(frozen=True, slots=True)
class LeaveOne:
    """A member that owns something leaves by itself."""


@dataclass(frozen=True, slots=True)
class RestartEach:
    """Every process in turn leaves in its own order, is away for a while, and is started again; then the next one.

    It is away at least until all others have been through the rebalance that its going causes, if it causes one: if it
    came back in the middle of it, going and coming would be one rebalance or two by chance.

    The next one goes when every partition is owned once, nothing has changed for a moment, and a random part of the
    heartbeat interval is over.
    The new process has the old one's place in the group: its group.instance.id, where the design has one.
    """

    away_ms: int = 1000
    settings: Mapping[str, str] = field(default_factory=dict)  #: over the design's own, from its new life on


@dataclass(frozen=True, slots=True)
class KillOwner:
    """SIGKILL to a member that owns something."""


@dataclass(frozen=True, slots=True)
class FreezeOwner:
    """SIGSTOP to a member that owns something for the session timeout and `over_ms` more, with commits asked for."""

    over_ms: int = 2000


@dataclass(frozen=True, slots=True)
class SlowOwner:
    """A member that owns something polls no more for max.poll.interval.ms and `over_ms` more; meanwhile another joins.

    As when one record takes its application very long: the process is well, and what its client does in the
    background goes on. A group that waits in a rebalance for all of its members waits for this one.
    """

    over_ms: int = 2000


@dataclass(frozen=True, slots=True)
class CutAuthority:
    """The owner loses what decides, not its data, for the session timeout and `over_ms` more.

    zookeeper: its server is a follower that is cut from the other two. server: that, and its connections to the
    coordinating broker. The other designs: only its connections to the coordinating broker. Every partition it
    reads is led by another broker.
    """

    over_ms: int = 7000


@dataclass(frozen=True, slots=True)
class CutEnsemble:
    """A follower is cut from the other two; in the coordinator designs the one that the coordinating broker uses."""

    over_ms: int = 7000


@dataclass(frozen=True, slots=True)
class KillCoordinator:
    """SIGKILL to the broker that coordinates the group; it leads a share of the partitions as well, and stays dead.

    zookeeper has no coordinator: there the same broker is lost, and with it nothing but the partitions it led. The
    step is over when every partition was delivered and committed anew.
    """


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """The topic gets more partitions while the group runs; the producer uses them at once."""

    more: int = 6


@dataclass(frozen=True, slots=True)
class Resubscribe:
    """A member unsubscribes from its topics and subscribes to those named here.

    By the place of its process (m1 is 1). Where a design cannot change a subscription in place (zookeeper), the
    process leaves and is started again with the other topics.
    """

    place: int
    topics: tuple[int, ...]  #: by their numbers
    round: int = 1


Step = (
    Form
    | Steady
    | JoinOne
    | LeaveOne
    | RestartEach
    | KillOwner
    | FreezeOwner
    | SlowOwner
    | CutAuthority
    | CutEnsemble
    | KillCoordinator
    | AddPartitions
    | Resubscribe
)
