"""How long packets take between two nodes, by what runs on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comparison.simulation.node import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from comparison.simulation.node import Node

_NS_PER_US = 1_000


@dataclass(frozen=True, slots=True)
class Latency:
    """A one-way delay, uniform between `us - spread_us` and `us + spread_us`."""

    us: int
    spread_us: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The delays between kinds of nodes, `usual` where none is given, and how long a callback keeps its node busy."""

    usual: Latency
    between: Mapping[frozenset[Kind], Latency] = field(default_factory=dict)
    cost_ns: int = 0

    def delays(self, random: Random) -> Callable[[Node, Node], int]:
        """Draws the delay of each packet, in nanoseconds."""
        drawn = {
            (one, other): (
                (latency.us - latency.spread_us) * _NS_PER_US,
                2 * latency.spread_us * _NS_PER_US + 1,
            )
            for one in Kind
            for other in Kind
            for latency in [self.between.get(frozenset({one, other}), self.usual)]
        }
        draw = random.random

        def delay_ns(sender: Node, receiver: Node) -> int:
            least, width = drawn[sender.kind, receiver.kind]
            return least + int(draw() * width)

        return delay_ns


#: Between processes of one machine.
LOOPBACK = Links(usual=Latency(60, 40))
