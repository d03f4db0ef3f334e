"""What no design promises: it is measured and shown, and no verdict rests on it.

From runs of the originals (Kafka 0.8.2.2 and 1.1.1, librdkafka on a broker 4.1.1), in which each of these happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.designs import CLASSIC, DESIGN_NAMES

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass(frozen=True, slots=True)
class Unpromised:
    """What somebody could take for granted, where."""

    what: str
    designs: tuple[str, ...] = DESIGN_NAMES
    key: str = ""  #: by which scenarios name it; '' if it is to be said of all
    compares: bool = False  #: says something only where there are several designs

    def holds(self, design: str, named: Collection[str], *, alone: bool) -> bool:
        """Whether it is to be said of a scenario that names these; `alone`: it runs in this design only."""
        return design in self.designs and (not self.key or self.key in named) and not (self.compares and alone)


UNPROMISED: tuple[Unpromised, ...] = (
    Unpromised("that nothing is delivered twice"),
    Unpromised("that a newer design settles faster than an older one", compares=True),
    Unpromised(
        "how many attempts, requests and rebalances a start of all at once takes",
        key="not promised: attempts of a mass start",
    ),
    # The member's own timer stops it 10 to 30 ms before the takeover, in half of the originals' runs.
    Unpromised(
        "that two members never deliver at once: the old owner may go on for about a heartbeat interval",
        CLASSIC,
        key="not promised: two members never deliver",
    ),
)
