"""What all blocks of one run share, and what each of them shows behind its lanes: faults and changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.drawing.layout import Area
from comparison.results.run import MOMENT_MS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comparison.report.drawing.scale import Scale
    from comparison.report.view.model import RunView


class Panel(NamedTuple):
    """What is common to all blocks of one run: its axis, the classes of its members, how many bars may be drawn."""

    view: RunView
    scale: Scale
    styles: Mapping[str, str]
    marks_max: int

    def classes(self, member: str) -> str:
        return self.styles.get(member, "many")


def disturbances(panel: Panel) -> Iterator[Area]:
    """A band for each fault with a line at its begin and one at its heal; a dashed line for each change."""
    view, scale = panel.view, panel.scale
    for fault in view.faults:
        until_ms = view.ended_ms if fault.healed_ms is None else fault.healed_ms
        name, begin = f"{fault.fault} {fault.target}", scale.unit(fault.from_ms)
        if until_ms - fault.from_ms > MOMENT_MS:
            yield Area("band", begin, scale.unit(until_ms), name)
            if fault.healed_ms is not None:
                yield Area("heal", scale.unit(until_ms), scale.unit(until_ms), "healed")
        yield Area("begin", begin, begin, name)
    for change in view.changes:
        yield Area("change", scale.unit(change.at_ms), scale.unit(change.at_ms), change.name)
