"""An ensemble of three ZooKeeper servers that runs use one after the other, each in a chroot of its own.

Starting three servers takes longer than many a run. What breaks servers, or cuts the links between them, needs an
ensemble of its own: the next run would meet what is left of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.scenarios.plan.presets import ZOOKEEPER_SESSION_MS, ZOOKEEPER_TICK_MS
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.servers import NUMBERS, Limits

if TYPE_CHECKING:
    from pathlib import Path
    from threading import Event


class LentEnsemble(EmbeddedZooKeeper):
    """With the limits of a run's own; starting and stopping it blocks."""

    def __init__(self, folder: Path, given_up: Event | None = None) -> None:
        shortest, longest = ZOOKEEPER_SESSION_MS
        limits = Limits(tick_ms=ZOOKEEPER_TICK_MS, min_session_ms=shortest, max_session_ms=longest)
        super().__init__(folder, servers=len(NUMBERS), limits=limits, given_up=given_up)
        self.runs = 0  #: that have used it
