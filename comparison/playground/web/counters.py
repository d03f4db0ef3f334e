"""The counters of the page: figures of the report, by the same names and in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from comparison.playground.messages import Counters
from comparison.results.meanings import Of
from comparison.results.metrics import METRICS
from kernel.designs import DESIGNS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kernel.designs import Design

#: What is a total of the measured stretch begins with it.
_SINCE = {Of.RUN: "since the game began", Of.STRETCH: "since the group had formed"}
_ALARMS = ("two_delivering_partition_s", "moved_back")
#: The designs that some of them are of, and why others have nothing of the kind.
_ONLY: Mapping[str, tuple[Callable[[Design], bool], str]] = {
    **dict.fromkeys(
        ("notifications", "zk_reads", "zk_writes"),
        (lambda design: design.zookeeper_sessions, "its members do not use ZooKeeper; the brokers do"),
    ),
    "group_requests": (lambda design: design.classic, "its members do not join and sync by requests to a coordinator"),
    "heartbeats": (
        lambda design: design.classic or design.reconciles,
        "a session of ZooKeeper says that its members live, not a heartbeat to a broker",
    ),
}
_ANY = (lambda _: True, "")


class Counter(msgspec.Struct):
    """How the page shows one of them."""

    name: str
    label: str
    meaning: str
    unit: str
    is_alarm: bool
    designs: list[str]  #: in others there is nothing of the kind
    only: str  #: why


def counters() -> list[Counter]:
    """All of them, in the report's order."""
    return [
        Counter(
            name=name,
            label=METRICS[name].label,
            meaning=f"{METRICS[name].meaning}, {_SINCE[METRICS[name].of]}",
            unit=METRICS[name].unit,
            is_alarm=name in _ALARMS,
            designs=[each.name for each in DESIGNS.values() if _ONLY.get(name, _ANY)[0](each)],
            only=_ONLY.get(name, _ANY)[1],
        )
        for name in Counters.__struct_fields__
    ]


def script() -> str:
    """A module that has them."""
    return f"export const COUNTERS = {msgspec.json.encode(counters()).decode()};\n"
