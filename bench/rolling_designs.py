"""What `rolling` measures: the designs with their known costs, and the sizes for which these hold."""

from __future__ import annotations

from dataclasses import dataclass, field

ROLLING, JOIN, LEAVE = "rolling restart", "one joins", "one leaves"

#: Brokers of both makes let members of KIP-848 heartbeat no more often than this by default.
_LEAST_HEARTBEAT_MS = 5_000
_LONGEST_SESSION_MS = 60_000


@dataclass(frozen=True)
class Plan:
    """Sizes and times; the known costs hold for the defaults of the first four."""

    members: int = 5
    partitions: int = 12
    heartbeat_ms: int = 1000
    down_s: float = 1.0
    session_ms: int = 10_000
    quiet_s: float = 1.5  #: more than a heartbeat, so that every member is up to date

    @property
    def broker_settings(self) -> dict[str, str]:
        """In KIP-848 sessions and heartbeats are settings of the broker."""
        return {
            "group.consumer.min.heartbeat.interval.ms": str(min(self.heartbeat_ms, _LEAST_HEARTBEAT_MS)),
            "group.consumer.heartbeat.interval.ms": str(self.heartbeat_ms),
            "group.consumer.min.session.timeout.ms": str(self.session_ms),
            "group.consumer.session.timeout.ms": str(self.session_ms),
            "group.consumer.max.session.timeout.ms": str(max(self.session_ms, _LONGEST_SESSION_MS)),
        }


@dataclass(frozen=True)
class Counts:
    """Cost of one change; except for the seconds, independent of the machine."""

    generations: int  #: or epochs of the group
    stopped: int
    moved: int


@dataclass(frozen=True)
class Known:
    """The known cost of one change: an exact count, or a range of what chance allows."""

    generations: int
    stopped: int | range
    moved: int | range

    def allows(self, counts: Counts) -> bool:
        return (
            counts.generations == self.generations
            and _is_within(counts.stopped, self.stopped)
            and _is_within(counts.moved, self.moved)
        )

    def __str__(self) -> str:
        return f"{self.generations} / {_shown(self.stopped)} / {_shown(self.moved)}"


def _is_within(count: int, known: int | range) -> bool:
    return count == known if isinstance(known, int) else count in known


def _shown(known: int | range) -> str:
    return str(known) if isinstance(known, int) else f"{known.start} to {known.stop - 1}"


@dataclass(frozen=True)
class Design:
    """Settings of the members, and the known costs of librdkafka's on Kafka 4.1.1 (5 members, 12 partitions)."""

    label: str
    strategy: str  #: of the members, or in KIP-848 the broker's assignor
    static: bool
    known: dict[str, Known]
    known_unowned_s: float  #: of the rolling restart, median; heartbeats of 1 s, down for 1 s
    forming: int = 1  #: generations, or epochs, until the first five members have settled
    reconciles: bool = False  #: KIP-848
    #: Where ours may cost something else. Kafka's own client assignor sorts by hashes of the member ids, so its result
    #: varies with them, and so does ours; librdkafka's does not. KIP-848's assignors run on the broker, for both alike.
    of_ours: dict[str, Known] = field(default_factory=dict)

    def allowed(self, kind: str, change: str) -> Known:
        """The costs that are allowed for members of this kind, at the sizes of the known costs."""
        ours = self.of_ours.get(change) if kind == "ours" else None
        return ours or self.known[change]

    def expects(self, kind: str, change: str, counts: Counts) -> bool:
        return self.allowed(kind, change).allows(counts)


EAGER_JOIN, EAGER_LEAVE = Known(1, 12, 9), Known(1, 10, 9)
COOPERATIVE_JOIN = Known(2, 2, 2)
UNIFORM_JOIN = Known(1, 2, 2)
UNDISTURBED = Known(0, 0, 0)
DESIGNS = (
    Design("eager range", "range", False, {ROLLING: Known(10, 108, 46), JOIN: EAGER_JOIN, LEAVE: EAGER_LEAVE}, 13.9),
    Design(
        "eager roundrobin",
        "roundrobin",
        False,
        {ROLLING: Known(10, 108, 100), JOIN: Known(1, 12, 7), LEAVE: Known(1, 10, 7)},
        7.7,
    ),
    Design(
        "cooperative-sticky",
        "cooperative-sticky",
        False,
        {ROLLING: Known(15, 10, 23), JOIN: COOPERATIVE_JOIN, LEAVE: Known(1, 0, 2)},
        17.6,
        of_ours={ROLLING: Known(15, 10, range(21, 26))},
    ),
    Design("static range", "range", True, {ROLLING: UNDISTURBED, JOIN: EAGER_JOIN}, 13.0),
    Design("static cooperative", "cooperative-sticky", True, {ROLLING: UNDISTURBED, JOIN: COOPERATIVE_JOIN}, 13.0),
    Design(
        "KIP-848 uniform",
        "uniform",
        False,
        {ROLLING: Known(10, 10, range(20, 26)), JOIN: UNIFORM_JOIN, LEAVE: Known(1, 0, 2)},
        11.3,
        forming=5,
        reconciles=True,
    ),
    # RangeAssignor sorts by member ids, so the cost depends on the place that a newcomer's id takes. Whatever the ids
    # are, at most 57 stop and 69 move (tests/coordinator/designs/test_rolling_restart.py), and as a rule at least 21
    # and 33; fewer if a member comes back before all of the others have taken over what it had.
    Design(
        "KIP-848 range",
        "range",
        False,
        {
            ROLLING: Known(10, range(17, 58), range(24, 70)),
            JOIN: Known(1, range(2, 10), range(2, 10)),
            LEAVE: Known(1, range(8), range(2, 10)),
        },
        22.6,
        forming=5,
        reconciles=True,
    ),
    Design(
        "static KIP-848", "uniform", True, {ROLLING: UNDISTURBED, JOIN: UNIFORM_JOIN}, 13.0, forming=5, reconciles=True
    ),
)
CLASSIC = tuple(design for design in DESIGNS if not design.reconciles)
RECONCILING = tuple(design for design in DESIGNS if design.reconciles)
