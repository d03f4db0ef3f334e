"""How far virtual time may go on, by the wall clock and by what the machine manages. Pure.

What the machine does not manage is not made up for: a game that falls behind is slower than asked for, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

NS_PER_S = 1_000_000_000
#: The most that one stretch is to take, in seconds: so long a command may wait.
STRETCH_S = 0.1
#: What the machine manages is guessed at first, and no stretch is more than so many times what the last one was.
_FIRST_RATE, _GROWTH = 5.0, 2.0
#: How much the last stretch counts in what is shown.
_SHARE = 0.2
#: Less than this share of the speed that was asked for is said.
_NOTABLE = 0.8


@dataclass(frozen=True, slots=True)
class Pacing:
    """`speed`: virtual seconds in a second; `rate`: as the machine manages; `reached`: as there were, lately."""

    speed: float = 1.0
    rate: float = _FIRST_RATE
    reached: float = 1.0

    def at_speed(self, speed: float) -> Pacing:
        return replace(self, speed=speed, reached=speed)

    def stretch_ns(self, since_s: float) -> int:
        """How far to go on when the last stretch began so long ago."""
        return int(min(self.speed * since_s, self.rate * STRETCH_S) * NS_PER_S)

    def whole_stretch_ns(self) -> int:
        """How far to go on without regard to the wall clock."""
        return int(self.rate * STRETCH_S * NS_PER_S)

    def after(self, went_ns: int, took_s: float, since_s: float) -> Pacing:
        """After a stretch that took so long, and began so long after the one before."""
        if not went_ns:
            return self
        managed = went_ns / NS_PER_S / max(took_s, 1e-6)
        reached = went_ns / NS_PER_S / max(since_s, took_s, 1e-6)
        return replace(
            self,
            rate=min(managed, self.rate * _GROWTH),
            reached=self.reached + (reached - self.reached) * _SHARE,
        )

    @property
    def shown(self) -> float:
        """What is said to be reached: 0 if it is what was asked for."""
        if self.reached >= self.speed * _NOTABLE:
            return 0.0
        return round(self.reached, 1 if self.reached < 10 else 0)
