"""What the page consists of: files of this package and of the report's drawings, kept in memory by their names."""

from __future__ import annotations

from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from comparison.playground.web.counters import script
from comparison.report.drawing.palette import PALETTE
from comparison.report.drawing.svg import painter
from comparison.report.markup import render
from coordinator.groups.classic import states as classic
from coordinator.groups.consumer.states import ConsumerGroupState as Epochs
from coordinator.groups.server import states as server
from kernel.designs import DESIGNS, SERVER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import Enum

TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".json": "application/json"}
#: The name of the page itself is empty: it is what the address ends with.
PAGE = "page.html"


#: The moves of a KIP-848 group, as traced: its state follows from its epochs and members, so that no table has them.
EPOCH_MOVES: Mapping[tuple[Epochs, Epochs], str] = MappingProxyType(
    {
        (Epochs.EMPTY, Epochs.ASSIGNING): "a member joins",
        (Epochs.ASSIGNING, Epochs.RECONCILING): "a heartbeat computes the target",
        (Epochs.ASSIGNING, Epochs.STABLE): "a heartbeat computes the target of a member that is alone",
        (Epochs.ASSIGNING, Epochs.EMPTY): "the last member is gone",
        (Epochs.RECONCILING, Epochs.STABLE): "every member has its target",
        (Epochs.RECONCILING, Epochs.ASSIGNING): "the epoch rises again",
        (Epochs.RECONCILING, Epochs.EMPTY): "the last member is gone",
        (Epochs.STABLE, Epochs.ASSIGNING): "the epoch rises: who is a member, a subscription or a topic has changed",
        (Epochs.STABLE, Epochs.RECONCILING): "a static member is away",
        (Epochs.STABLE, Epochs.EMPTY): "the last member is gone",
        (Epochs.EMPTY, Epochs.DEAD): "deleted",
    }
)


class PageFile(NamedTuple):
    """The content of a file, and its type."""

    content: bytes
    type: str


def page_files() -> Mapping[str, PageFile]:
    """All of them, by the name in the address."""
    drawings, own = files("comparison.report.drawing"), files(__package__)
    texts = {each.name: each.read_text() for each in own.iterdir() if _suffix(each.name) in TYPES}
    styles = [(drawings / name).read_text() for name in ("theme.css", "lanes.css")]
    texts["lanes.css"] = "".join([*styles, render("drawing/palette.css.j2", **PALETTE)])
    texts["painter.js"] = painter()
    texts["counters.js"] = script()
    texts["machines.json"] = msgspec.json.encode(machines()).decode()
    texts[PAGE] = texts[PAGE].replace("<!-- patterns -->", render("drawing/patterns.svg.j2", **PALETTE))
    return {"" if name == PAGE else name: PageFile(text.encode(), TYPES[_suffix(name)]) for name, text in texts.items()}


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]


def machines() -> Mapping[str, list[tuple[str, str, list[str]]]]:
    """The moves of each coordinated design's state machine, from its table: from, to, and the reasons for it."""
    return {name: _of_design(name) for name, design in DESIGNS.items() if design.coordinator}


def _of_design(name: str) -> list[tuple[str, str, list[str]]]:
    if DESIGNS[name].reconciles:
        return [(from_.value, to.value, [reason]) for (from_, to), reason in EPOCH_MOVES.items()]
    return _moves(server.TRANSITIONS if name == SERVER else classic.TRANSITIONS)


def _moves(table: Mapping[Enum, Mapping[Enum, Enum]] | Mapping) -> list[tuple[str, str, list[str]]]:  # type: ignore[type-arg]  # of either machine
    moves: dict[tuple[str, str], list[str]] = {}
    for state, row in table.items():
        for trigger, target in row.items():
            moves.setdefault((state.value, target.value), []).append(trigger.value)
    return [(from_, to, reasons) for (from_, to), reasons in moves.items()]
