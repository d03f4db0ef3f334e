"""Traces what ZooKeeper says of a group that is played by hand: its members, its owners, and who committed what.

The other truth of a run in the `zookeeper` design. As in a run on a ZooKeeper that is not ours, an observer watches in
a session of its own; its operations are in no trace, so they are not counted as the group's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from comparison.cli.hand_run import new_trace, trace_in
from comparison.group_readers.columns import Keeper
from comparison.scenarios.testbed.live_observer import LiveObserver
from comparison.scenarios.testbed.observed_offsets import answered_in, merged, missing
from comparison.scenarios.testbed.observer import write_offsets
from kernel.designs import ZOOKEEPER
from kernel.errors import RebalanceLabError
from kernel.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from comparison.group_readers.columns import GroupSeen
    from kernel.values import TopicPartition


class HandObserver:
    """Observes one group from `open` to `close`, into a run folder."""

    def __init__(self, connect: str, group: str, folder: Path) -> None:
        self._folder = folder
        self._tracer = trace_in(folder, Role.OBSERVER, design=ZOOKEEPER)
        self._observer = LiveObserver(connect, group, (), self._tracer)
        self._followed: set[TopicPartition] = set()

    async def open(self) -> None:
        """Raises `Unavailable`."""
        await self._observer.start()

    def follow(self, seen: Iterable[GroupSeen]) -> None:
        """Observe the partitions of the group, as it is seen now, too."""
        found = {row.partition for each in seen if each.keeper is Keeper.ZOOKEEPER for row in each.partitions}
        if new := sorted(found - self._followed):
            self._observer.watch(new)
            self._followed |= found

    async def close(self) -> None:
        """Add the commits, which are merged with the members' traces: those of members that have ended are whole."""
        try:
            await self._observer.see_offsets()
            self._observer.check()
        except RebalanceLabError as error:
            click.echo(f"warning: the observer's trace may be incomplete: {error}", err=True)
        finally:
            await self._observer.stop()
            self._tracer.close()
        writes = merged(self._observer.seen, answered_in(sorted((self._folder / "trace").glob("m*.jsonl"))))
        if unknown := missing(self._observer.seen, writes):
            commits = "1 commit is" if unknown == 1 else f"{unknown} commits are"
            click.echo(f"warning: {commits} in no trace: do some members run without --trace?", err=True)
        write_offsets(writes, *new_trace(self._folder, Role.OBSERVER, design=ZOOKEEPER), self._observer.group)
