"""The parameters of a run, with the ranges that work on one machine."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # msgspec reads the types of the fields
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, ClassVar, Self

from comparison.scenarios.plan.links import DEFAULT
from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from kernel.values import TopicPartition

SEED_MAX = 2**31 - 1
#: Ranges: (lowest, highest) by parameter.
RANGES: Mapping[str, tuple[float, float]] = {
    "members": (1, 200),
    "partitions": (1, 1000),
    "topics": (1, 20),
    "streams": (1, 16),
    "rate": (1, 20_000),
    "time_limit_s": (1, 3600),
    "seed": (0, SEED_MAX),
    "brokers": (1, 9),
    "session_timeout_ms": (1_000, 60_000),
}
#: The same for large groups of which only the deciding modules run.
LARGE_RANGES: Mapping[str, tuple[float, float]] = {**RANGES, "members": (1, 100_000), "partitions": (1, 1_000_000)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """One run's parameters. Every scenario has its own defaults."""

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = RANGES

    members: int = 4  #: at the start
    partitions: int = 12  #: of each topic
    topics: int = 1
    streams: int = 1  #: of each member, per topic
    rate: int = 200  #: records per second, over all partitions
    brokers: int = 2
    time_limit_s: float = 120.0  #: after which a run is aborted, with unknown verdicts
    seed: int = 0
    preset: str = "equal-timers"
    links: str = DEFAULT  #: delays of a simulated run, in their canonical form; nothing to a live one
    session_timeout_ms: int | None = None  #: in all designs; overrides the preset and the scenario
    settings: Mapping[str, str] = field(default_factory=dict)  #: Kafka settings given with -c

    def __post_init__(self) -> None:
        for name, (low, high) in self.ranges.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                option = name.removesuffix("_s").removesuffix("_ms").replace("_", "-")
                raise ConfigurationError(f"--{option} is {value:.12g}: must be between {low:g} and {high:.12g}")

    @property
    def topic_names(self) -> tuple[str, ...]:
        return tuple(f"orders-{number}" if self.topics > 1 else "orders" for number in range(self.topics))

    @classmethod
    def of(cls, given: Parameters, **others: object) -> Self:
        """The same parameters in this class, overridden by those that are not None."""
        return cls(**{f.name: getattr(given, f.name) for f in fields(given)}).overridden(**others)

    def overridden(self, **given: object) -> Self:
        """These parameters, overridden by those that are not None."""
        known = {f.name for f in fields(self)}
        assert given.keys() <= known, given.keys() - known
        return replace(self, **{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]  # checked by name above, by range in __post_init__

    def as_json(self) -> dict[str, object]:
        """By their names; links only if they are not the usual ones, which a live run has."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "links" or self.links != DEFAULT}
        return {**named, "settings": dict(self.settings)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeParameters(Parameters):
    """Those of a group that is too large to run everything."""

    ranges: ClassVar[Mapping[str, tuple[float, float]]] = LARGE_RANGES


def spread(partitions: list[TopicPartition], index: int) -> TopicPartition:
    """The partition of the index-th record: round-robin, so that all carry the same load."""
    return partitions[index % len(partitions)]
