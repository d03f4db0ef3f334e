"""The live game: groups of several designs side by side, in processes of their own, with a real ZooKeeper each."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from comparison.playground import commands, messages
from comparison.playground.play.group import PlayedGroup
from comparison.playground.play.lifecycle import LAST_S, TICK_S, PlayedGame, Refused, failure_of, played_group
from comparison.playground.play.watching import WatchedGroup
from comparison.playground.saving.steps import Act
from comparison.scenarios.plan.played import MEMBERS_MAX, PARTITIONS_MAX, RATE_MAX
from comparison.scenarios.processes.fork_server import ForkServer
from comparison.scenarios.run.runner import perform
from kernel.errors import RebalanceLabError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from comparison.scenarios.plan.request import RunRequest

#: An increment comes at least so often, though nothing has changed.
_QUIET_MS = 1000


class LabGame(PlayedGame):
    """See the module."""

    def __init__(self, requests: Sequence[RunRequest], bundle: Path, *, begun: messages.Begun, idle_s: float) -> None:
        self._begun_ns = time.monotonic_ns()
        limits = messages.Limits(members=MEMBERS_MAX, partitions=PARTITIONS_MAX, rate=RATE_MAX)
        groups = tuple(played_group(request.design, request.parameters.rate) for request in requests)
        parameters = requests[0].parameters
        super().__init__(groups, bundle, idle_s=idle_s, limits=limits, parameters=parameters, begun=begun)
        self._accepted: dict[str, list[Act]] = {request.design: [] for request in requests}
        self._played = {request.design: PlayedGroup(request, limits) for request in requests}
        for group in self._played.values():
            group.on_failed = self.fail
        self._watched = {
            group.design: WatchedGroup(self._played[group.design], group, self._begun_ns)
            for group in self.snapshot().groups
        }

    async def _perform(self, command: commands.AnyCommand) -> commands.Answer:
        if isinstance(command, commands.SimulatedCommand):
            return commands.Answer(accepted=False, reason="time can be turned in a simulated game alone: --simulated")
        designs = command.designs or self._designs
        at_ms = self._now_ms()
        outcomes = await asyncio.gather(*(_outcome(self._played[design], command) for design in designs))
        for design, outcome in zip(designs, outcomes, strict=True):
            if not outcome.refusal:
                assert isinstance(command, commands.GroupCommand)
                self._accepted[design].append(Act(at_ms, replace(command, designs=())))
        return self._of_all(dict(zip(designs, outcomes, strict=True)))

    def _stop_groups(self) -> None:
        for group in self._played.values():
            group.stop()

    async def _play(self, provenance: Mapping[str, object]) -> str:
        fork_server = await ForkServer.open()
        try:
            runs = [
                asyncio.create_task(
                    perform(group.request, provenance, fork_server, self._halt, play=group.play), name=design
                )
                for design, group in self._played.items()
            ]
            failed = ""
            for run in asyncio.as_completed(runs):
                try:
                    reason = failure_of(await run)
                except RebalanceLabError as error:
                    reason = str(error)
                failed = failed or reason
                if reason and not self._why:
                    self._halt.set()  # the others end as after an interrupt
            return failed
        finally:
            self._halt.set()
            await asyncio.gather(*runs, return_exceptions=True)
            await fork_server.stop()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._publish()
            if self.snapshot().status is messages.Status.RUNNING:
                self._stop_if_nobody_watches()
                if self.snapshot().at_ms > LAST_S * 1000:
                    self.stop(f"a game takes {LAST_S / 60:g} minutes at most")
            elif self.snapshot().status is messages.Status.STARTING and all(
                each.is_ready for each in self._played.values()
            ):
                self._enter(messages.Status.RUNNING)

            if self._formed_ms is None and all(each.is_formed for each in self._played.values()):
                self._formed_ms = self._now_ms()

    @property
    def _acts(self) -> Mapping[str, Sequence[Act]]:
        return self._accepted

    def _publish(self, *status: messages.StatusChanged) -> None:
        before = self.snapshot()
        now_ms, at_ms = self._now_ms(), max(before.at_ms, self._shown_ms)
        changes: list[messages.AnyChange] = [*status]
        for group in before.groups:
            watched = self._watched[group.design]
            watched.take()
            watched.tell(now_ms)
            changes += watched.drain(now_ms, group)
        if changes or at_ms - before.at_ms >= _QUIET_MS:
            self._broadcast.publish(at_ms, changes)

    def _now_ms(self) -> int:
        return (time.monotonic_ns() - self._begun_ns) // 1_000_000


async def _outcome(group: PlayedGroup, command: commands.Command) -> commands.Outcome:
    try:
        return commands.Outcome(remark=await group.perform(command))
    except Refused as error:
        return commands.Outcome(refusal=str(error))
