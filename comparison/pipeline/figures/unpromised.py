"""What no design promises: it is measured and shown, and no verdict rests on it.

From runs of the originals (Kafka 0.8.2.2 and 1.1.1, librdkafka on a broker 4.1.1), in which each of these happened.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel.designs import CLASSIC, DESIGN_NAMES

#: A member is replaced that goes on running.
_REPLACED = ("pause", "zombie-commit", "split-brain", "split-brain-ensemble", "asymmetric-cut", "slow-link")
_ALL = ("*",)


@dataclass(frozen=True, slots=True)
class Unpromised:
    """What somebody could take for granted, where."""

    what: str
    designs: tuple[str, ...] = DESIGN_NAMES
    scenarios: tuple[str, ...] = _ALL
    compares: bool = False  #: says something only where there are several designs

    def holds(self, design: str, scenario: str, *, alone: bool) -> bool:
        """Whether it is to be said of a scenario; `alone`: it runs in this design only."""
        among = self.scenarios == _ALL or scenario in self.scenarios
        return design in self.designs and among and not (self.compares and alone)


UNPROMISED: tuple[Unpromised, ...] = (
    Unpromised("that nothing is delivered twice"),
    Unpromised("that a newer design settles faster than an older one", compares=True),
    Unpromised("how many attempts, requests and rebalances a start of all at once takes", scenarios=("mass-start",)),
    # The member's own timer stops it 10 to 30 ms before the takeover, in half of the originals' runs.
    Unpromised(
        "that two members never deliver at once: the old owner may go on for about a heartbeat interval",
        CLASSIC,
        _REPLACED,
    ),
)
