"""What a sweep found: the structure of sweep.json."""

from __future__ import annotations

import msgspec

from comparison.results.meanings import Meaning  # noqa: TC001 - msgspec reads the annotations
from comparison.results.result import Spread  # noqa: TC001 - msgspec reads the annotations

SWEEP_SCHEMA_VERSION = 1
#: The file in a sweep's folder.
SWEEP_DATA = "sweep.json"
#: The axis of cells that are parts of others, by the size of the group.
GROUP_SIZE = "group-size"
#: How a cell was computed of which everything ran in a simulated world.
FULL_STACK = "full stack"


def is_of_runs(by: str) -> bool:
    """Whether a cell that was computed so comes from runs of everything, live or simulated, which have traces."""
    return by in ("", FULL_STACK)


class AxisData(msgspec.Struct, frozen=True, kw_only=True):
    """One axis, with its values in order."""

    name: str
    values: list[int | float | str]
    numeric: bool


class CellData(msgspec.Struct, frozen=True, kw_only=True):
    """One cell. Figures are of its complete runs: median and range over seeds and repeats. `failed_runs` is a count."""

    cell: str  #: its folder
    scenario: str
    design: str
    by: str = ""  #: how a simulated one was computed: full stack, deciding modules or formula
    at: dict[str, int | float | str | None]  #: by axis, without scenario and design; None: the axis has no effect here
    runs: int  #: complete ones
    failed: int
    verdicts: dict[str, int]
    broken: dict[str, int] = {}  #: in how many of the runs a promise was broken, by its name
    figures: dict[str, Spread]  #: those that were measured


class CountedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of which only figures are known: there is no trace to analyse."""

    outcome: str
    figures: dict[str, float]


class Exponent(msgspec.Struct, frozen=True, kw_only=True):
    """How a figure grows along one numeric axis, with the other axes at one combination of their values."""

    scenario: str
    design: str
    metric: str
    axis: str
    at: dict[str, int | float | str | None]  #: the other axes
    n: int  #: figures, one a run
    exponent: float | None  #: None: cannot be fitted
    low: float | None  #: of its 95% interval; None: too few figures
    high: float | None
    through_x: float | None  #: the figure is about through_y * (axis / through_x) ** exponent
    through_y: float | None
    reason: str  #: why there is no exponent; '' if there is one

    def fitted(self, x: float) -> float | None:
        """The figure at a value of the axis by the fit; None without one."""
        if self.exponent is None or self.through_x is None or self.through_y is None:
            return None
        return float(self.through_y * (x / self.through_x) ** self.exponent)


class LeftOutData(msgspec.Struct, frozen=True, kw_only=True):
    """A combination that was not run, or a run that failed, and why."""

    what: str
    reason: str


class SweepData(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a sweep found."""

    schema_version: int
    name: str
    command: list[str]
    simulated: bool = False  #: in virtual time, on a modelled network and a modelled ZooKeeper
    seeds: list[int]
    repeats: int
    rate: int | None = None  #: records a second in all runs; None: it differs between them
    planned: int  #: runs of the plan
    complete: int
    axes: list[AxisData]
    metrics: dict[str, Meaning]  #: of all figures that occur, in their order
    shown: list[str]  #: metrics to show first
    cells: list[CellData]
    exponents: list[Exponent]
    left_out: list[LeftOutData]
    failures: list[LeftOutData]
