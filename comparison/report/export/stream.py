"""One run's events as one stream: all files in the order of time, on the run's clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kernel.errors import UserError
from kernel.trace.run_clock import in_order, reference_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel.trace.reader import Trace

NS_PER_S = 1_000_000_000


class Recorded(NamedTuple):
    """An event, the role of the process that traced it, and its time on the run's clock."""

    t_ns: int
    role: str
    event: Mapping[str, Any]

    @property
    def seconds(self) -> float:
        return self.t_ns / NS_PER_S


class Stream(NamedTuple):
    """One run: what its headers agree on, the processes that traced, and their events in order."""

    run: str
    scenario: str
    design: str
    seed: int
    wall_ns: int  #: since 1970, when the run's clock was 0
    roles: Mapping[str, str]  #: by process
    events: Sequence[Recorded]


def stream_of(traces: Sequence[Trace]) -> Stream:
    """The stream of a run's traces. Raises `UserError` without a usable one, or if they are of several runs."""
    headers = [trace.header for trace in traces if trace.header is not None]
    reference = reference_of(headers)
    if reference is None:
        raise UserError("none of these files is a trace. Give the folder of a run")
    if len(runs := sorted({str(header["run"]) for header in headers})) > 1:
        raise UserError(f"these traces are of several runs ({', '.join(runs)}). Give those of one")
    events = [Recorded(each.t_ns, str(each.header["role"]), each.event) for each in in_order(traces)]
    if not events:
        raise UserError("nothing happens in these traces: they have no usable event")
    return Stream(
        run=str(reference["run"]),
        scenario=str(reference["scenario"]),
        design=next((str(header["design"]) for header in headers if header["design"]), ""),
        seed=int(reference["seed"]),
        wall_ns=int(reference["wall_ns"]),
        roles={str(header["process"]): str(header["role"]) for header in headers},
        events=events,
    )
