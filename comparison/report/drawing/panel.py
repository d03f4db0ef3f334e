"""What all blocks of one run share, and what each of them shows behind its lanes: faults and changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.markup import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comparison.report.drawing.scale import Scale
    from comparison.report.view.model import RunView

#: A fault that is healed sooner is a moment: a kill.
MOMENT_MS = 250


class Panel(NamedTuple):
    """What is common to all blocks of one run: its axis, the classes of its members, how many bars may be drawn."""

    view: RunView
    scale: Scale
    styles: Mapping[str, str]
    marks_max: int

    def classes(self, member: str) -> str:
        return self.styles.get(member, "many")


def disturbances(panel: Panel) -> Iterator[Shape]:
    """A band for each fault with a line at its begin and one at its heal; a dashed line for each change."""
    view, scale = panel.view, panel.scale
    for fault in view.faults:
        until_ms = view.ended_ms if fault.healed_ms is None else fault.healed_ms
        if until_ms - fault.from_ms > MOMENT_MS:
            width = f"{100 * (scale.share(until_ms) - scale.share(fault.from_ms)):.3f}%"
            place = {"x": scale.percent(fault.from_ms), "width": width, "height": "100%"}
            yield Shape("rect", {"class": "band", **place}, hint=f"{fault.fault} {fault.target}")
            if fault.healed_ms is not None:
                yield _upright("heal", scale.percent(until_ms), "healed")
        yield _upright("begin", scale.percent(fault.from_ms), f"{fault.fault} {fault.target}")
    for change in view.changes:
        yield _upright("change", scale.percent(change.at_ms), change.name)


def _upright(name: str, x: str, hint: str) -> Shape:
    return Shape("line", {"class": name, "x1": x, "x2": x, "y2": "100%"}, hint=hint)
