"""The result of an analysis: the structure of result.json.

Plain values, no Spark. `SCHEMA_VERSION` goes up with every change that a reader could notice. `result.schema.json`
beside this module is generated from these classes (`python -m comparison.results.result`); a test fails if the two
differ.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from comparison.results.outcomes import VerdictOutcome  # noqa: TC001 - msgspec reads the annotations
from comparison.results.run import Bystander, Run  # noqa: TC001 - msgspec reads the annotations
from kernel.platform.json_file import DamagedFile, read_json

if TYPE_CHECKING:
    from collections.abc import Iterable

RESULT = "result.json"
SCHEMA_VERSION = 7
SCHEMA_PATH = Path(__file__).with_name("result.schema.json")


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A figure over the repeats in which it was measured."""

    n: int
    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        """The spread of the known values; None if there are none."""
        known = [value for value in values if value is not None]
        if not known:
            return None
        return cls(n=len(known), median=round(median(known), 3), low=min(known), high=max(known))


class RepeatedChange(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a scenario over the repeats; figures have the names of `Change`'s fields."""

    change: str
    round: int
    figures: dict[str, Spread | None]


class Repeated(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of one scenario under one design with different seeds, so that changes come at different phases."""

    scenario: str
    design: str
    runs: list[int]  #: indexes into `runs`, in order of their seeds
    verdict: VerdictOutcome  #: the worst one
    worst: int  #: the first run with that verdict
    metrics: dict[str, Spread | None]  #: None: measured in no repeat
    changes: list[RepeatedChange]
    bystanders: list[Bystander] = []  #: medians of the repeats' percentiles; how many were answered adds up


class GrowthPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A count of one change at one size of the group, over the repeats, and the model's."""

    members: int  #: after the change
    n: int  #: repeats
    median: float
    low: float
    high: float
    model: float | None  #: None: nothing is predicted


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """How a count of a change grows with the group, over the complete runs of one scenario under one design."""

    scenario: str
    design: str
    runs: list[int]  #: indexes into `runs`
    change: str
    figure: str  #: operations or notifications
    points: list[GrowthPoint]  #: by size
    n: int  #: counts, one a change of a run
    exponent: float | None  #: the count grows as the size to this power; None: cannot be fitted
    low: float | None  #: of its 95% interval; None: too few counts
    high: float | None
    reason: str  #: why there is no exponent; '' if there is one


class NotApplicable(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that is not applicable to a design, and why."""

    scenario: str
    design: str
    reason: str


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one scenario, as indexes into `runs`; a run may belong to two scenarios."""

    scenario: str
    runs: list[int]
    verdict: VerdictOutcome


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A whole analysis; `scenarios` are in display order."""

    schema_version: int
    runs: list[Run]
    scenarios: list[Scenario]
    repeated: list[Repeated]  #: empty without repeats
    not_applicable: list[NotApplicable]
    growths: list[Growth] = []  #: of changes that are repeated at several sizes
    verdict: VerdictOutcome


def schema() -> dict[str, Any]:
    """The JSON Schema of result.json."""
    found = msgspec.json.schema(Result)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "rebalance-lab result", **found}


def read_result(path: Path) -> Result:
    """Read a result.json.

    Raises OSError if it cannot be read, and `DamagedFile` if it is damaged, or of a version that this program does not
    know: another one may lack figures that are shown, or mean something else by them.
    """
    version = read_json(path, _Versioned).schema_version
    if version != SCHEMA_VERSION:
        what = "use the version that wrote it" if version > SCHEMA_VERSION else "this program reads newer results only"
        raise DamagedFile(
            path,
            f"the result has schema version {version}, this program knows {SCHEMA_VERSION}. Analyse the run again, or "
            f"{what}",
        )
    return read_json(path, Result)


class _Versioned(msgspec.Struct):
    """What all versions have."""

    schema_version: int


def formatted(value: object) -> bytes:
    """As a JSON file has it."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


if __name__ == "__main__":
    SCHEMA_PATH.write_bytes(formatted(schema()))
