"""Draw `diagrams/figures/concept-*.svg`, one small picture for each design, for `concepts.md`.

All have the same form. Above are those who keep the members and the offsets, below three members. Filled is who
decides. A thick line across the members is a barrier, a double one before the offsets a fence, a clock a lease.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.markup import line, path, rect, text
from docs.generators.figure_text import WIDTH, arrow_down, figure, width_of
from docs.generators.pages import FIGURES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from comparison.report.markup import Shape

_EDGE, _BOX, _HEIGHT = 8, 124, 34
_ABOVE, _FENCE, _BARRIER, _BELOW = 10, 56, 97, 120
_LEFT = (_EDGE, (WIDTH - _BOX) / 2, WIDTH - _EDGE - _BOX)
_BOTTOM = 192
COORDINATOR = "coordinator"


class Design(NamedTuple):
    """What its picture says; empty where it has nothing of the kind."""

    name: str
    keeps: str  #: who keeps the list of members
    offsets: str  #: who keeps the offsets
    decides: str  #: each member, one member or the coordinator
    hears: str  #: how members hear that something has changed
    lease: str  #: what ends a member's part, and who heeds it
    barrier: str  #: where all members meet
    rounds: int
    fence: str  #: what a commit must name


_EAGER = Design(
    name="eager",
    keeps=COORDINATOR,
    offsets=COORDINATOR,
    decides="one member",
    hears="heartbeat's answer",
    lease="session: heeded, by a timer of its own",
    barrier="everything stops, and all wait",
    rounds=1,
    fence="generation",
)
_COOPERATIVE = _EAGER._replace(name="cooperative", barrier="what moves is given up, then handed out", rounds=2)
_UNNOTICED = "session: the member need not notice"
DESIGNS = (
    Design("zookeeper", "ZooKeeper", "ZooKeeper", "each member", "watch", _UNNOTICED, "", 0, ""),
    _EAGER._replace(
        name="server",
        keeps="ZooKeeper",
        decides=COORDINATOR,
        hears="command",
        lease="session: heeded, if ZooKeeper is what it cannot reach",
        fence="generation, owner",
    ),
    _EAGER,
    _EAGER._replace(name="static", lease="session: heeded; the place waits as long", fence="generation, name"),
    _COOPERATIVE,
    _COOPERATIVE._replace(name="delayed", lease="session: heeded; what is lost waits longer"),
    _EAGER._replace(
        name="consumer", decides=COORDINATOR, lease=_UNNOTICED, barrier="", rounds=0, fence="member's epoch"
    ),
)


def _box(x: float, y: float, name: str, does: str, *, decides: bool) -> Iterator[Shape]:
    does = ", ".join(each for each in (does, "decides" if decides else "") if each)
    on = "on" if decides else ""
    yield rect(x, y, _BOX, _HEIGHT, rx=4, class_="k0" if decides else "card")
    yield text(name, x + (_BOX - width_of(name, bold=True)) / 2, y + (15 if does else 21), class_=f"b {on}")
    if does:
        yield text(does, x + (_BOX - width_of(does)) / 2, y + 28, class_=on)


def _clock(x: float, y: float) -> Shape:
    return path(f"M{x - 5:.1f} {y:.1f}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0zM{x:.1f} {y - 3:.1f}v3h3", class_="line ink")


def _shapes(design: Design) -> Iterator[Shape]:
    is_apart = design.decides == COORDINATOR != design.keeps
    yield from _box(_EDGE, _ABOVE, design.keeps, "members", decides=design.decides == design.keeps)
    yield from _box(_LEFT[2], _ABOVE, design.offsets, "offsets", decides=False)
    if is_apart:
        yield from _box(_LEFT[1], _ABOVE, COORDINATOR, "", decides=True)
    for number, x in enumerate(_LEFT):
        deciding = design.decides == "each member" or (design.decides == "one member" and number == 0)
        yield from _box(x, _BELOW, f"m{number + 1}", "", decides=deciding)
    teller, foot = _LEFT[1] if is_apart else _EDGE, _BARRIER - 2 if design.barrier else _BELOW
    yield from arrow_down(teller + 18, _ABOVE + _HEIGHT, foot)
    yield text(design.hears, teller + 26, _FENCE + 6)
    if design.barrier:
        for y in (_BARRIER, _BARRIER + 5)[: design.rounds]:
            yield line(_EDGE, y, WIDTH - _EDGE, y, class_="line s-k1", stroke_width=3)
        yield text(design.barrier, _EDGE, _BELOW - 4, class_="faint")
    x, top = _LEFT[2] + _BOX / 2, _ABOVE + _HEIGHT
    yield path(f"M{x} {_BELOW}V{top + 8}", class_="line ink", stroke_dasharray="2 3")
    yield path(f"M{x - 4.5} {top + 8}h9L{x} {top}z", class_="h-ink")
    if design.fence:
        for y in (_FENCE, _FENCE + 4):
            yield line(_LEFT[2] + 30, y, WIDTH - _EDGE - 30, y, class_="line s-k2", stroke_width=2)
    says = f"fence: {design.fence}" if design.fence else "no fence"
    yield text(says, x - 8 - width_of(says), _FENCE + 22, class_="good" if design.fence else "bad")
    yield _clock(_EDGE + 6, _BOTTOM - 18)
    yield text(design.lease, _EDGE + 17, _BOTTOM - 14)


def picture(design: Design) -> str:
    """The file of one design."""
    meets = design.barrier or "no barrier"
    says = f"{design.hears}; {design.lease}; {meets}; {design.fence or 'no fence'}"
    return figure(f"{design.name}: {design.decides} decides", list(_shapes(design)), _BOTTOM, says=says)


def files() -> Mapping[Path, str]:
    return {FIGURES / f"concept-{each.name}.svg": picture(each) for each in DESIGNS}
