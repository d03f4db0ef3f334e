"""Which of several nodes takes its turn, and how slowly one works.

Plain chance gives each node the same share of the turns, so what needs one to be late again and again hardly ever
comes. Probabilistic concurrency testing (Burckhardt and others, ASPLOS 2010) draws priorities, and few moments at which
the running node gets the lowest: a fault that needs d such moments is found with a known probability. Under virtual
time nodes are seldom ready at once, so the demoted node is late as well: it takes a while for each of its next turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.scenarios.plan.links import Kind
from kernel.clock import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from comparison.simulation.node import Node

#: Moments are drawn among so many turns: a fuzzed schedule has some thousands.
TURNS = 8_000
#: For so many turns a demoted node is late: not for so long that a group could not settle in time.
LATE_TURNS = 30
#: How long each of them takes.
LAGS_NS = tuple(ms * NS_PER_MS for ms in (1, 5, 20, 60))


#: Scramble a moment and a node: a multiplication, and the rest by a prime.
_ODD, _PRIME, _MODULUS = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, (1 << 61) - 1


class Chance:
    """Any of the nodes that are ready, each with the same probability, in an order that holds until time passes.

    How many turns a node takes in a moment depends on the Python: each has its own asyncio. So no turn draws anything.
    """

    #: Whether each turn counts, also of a node that is ready alone, and may take a while (`lag_ns`).
    counts_turns = False

    def __init__(self, random: Random) -> None:
        self._salt = random.getrandbits(64)

    def place(self, runnable: Sequence[Node], now_ns: int) -> int:
        """Whose turn it is."""
        if len(runnable) == 1:
            return 0
        salt = self._salt ^ now_ns
        scrambled = [((salt ^ node.number * _ODD) * _PRIME) % _MODULUS for node in runnable]
        return scrambled.index(max(scrambled))

    def lag_ns(self, node: Node) -> int:
        """How long a turn of the node takes, besides what its callbacks cost."""
        return 0


class Priorities(Chance):
    """The one with the highest priority; see the module. The runner, which works at the experiment, is never late."""

    counts_turns = True

    def __init__(self, random: Random, changes: int) -> None:
        """`changes`: how many nodes are demoted."""
        self._random = random
        self._priorities: dict[Node, float] = {}
        self._due = sorted((random.randrange(TURNS) for _ in range(changes)), reverse=True)
        self._turns = 0
        self._lowest = 0.0
        self._late: Node | None = None
        self._late_turns = 0
        self._lag_ns = 0

    def place(self, runnable: Sequence[Node], now_ns: int) -> int:
        self._turns += 1
        place = max(range(len(runnable)), key=lambda at: self._priority(runnable[at])) if len(runnable) > 1 else 0
        if self._due and self._turns >= self._due[-1] and runnable[place].kind is not Kind.RUNNER:
            self._due.pop()
            self._late, self._lag_ns = runnable[place], self._random.choice(LAGS_NS)
            self._late_turns = LATE_TURNS
            self._lowest -= 1
            self._priorities[self._late] = self._lowest
        return place

    def lag_ns(self, node: Node) -> int:
        if node is not self._late or not self._late_turns:
            return 0
        self._late_turns -= 1
        return self._lag_ns

    def _priority(self, node: Node) -> float:
        if node not in self._priorities:
            self._priorities[node] = self._random.random()
        return self._priorities[node]
