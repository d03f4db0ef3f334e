"""The game: groups of several designs side by side, from the first process to the analysis.

It implements `comparison.playground.messages.Game`. However it ends (by the command to stop, an interrupt, a part that
failed, or because nobody has watched for long), every process that it started has ended when `run` returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING

import msgspec

from comparison.playground import commands, messages
from comparison.playground.play.broadcast import Broadcast
from comparison.playground.play.group import PlayedGroup, Refused
from comparison.playground.play.table import rebalance_table
from comparison.playground.play.watching import WatchedGroup
from comparison.scenarios.plan.played import GAME_S_MAX, MEMBERS_MAX, PARTITIONS_MAX, RATE_MAX
from comparison.scenarios.processes.fork_server import ForkServer
from comparison.scenarios.run.runner import perform
from coordinator.groups.classic.states import GroupState
from coordinator.groups.consumer.states import ConsumerGroupState
from kernel.designs import DESIGNS, ZOOKEEPER
from kernel.errors import RebalanceLabError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
    from enum import Enum
    from pathlib import Path

    from comparison.scenarios.plan.request import RunRequest
    from comparison.scenarios.run.runner import RunOutcome

    #: Analyses a command's folder; returns the path of the report.
    Analyse = Callable[[], Awaitable[Path]]

TICK_S = 0.2
#: An increment comes at least so often, though nothing has changed.
_QUIET_MS = 1000
#: A game stops by itself so long before its time limit, which would abort it.
_STOP_BEFORE_S = 180
#: What was played, as JSON lines: each command with its time and its answer.
PLAYED = "played.jsonl"
_STOPPING = "waiting until every record is delivered"


class LabGame:
    """One game, played once."""

    def __init__(self, requests: Sequence[RunRequest], bundle: Path, *, idle_s: float) -> None:
        self._begun_ns = time.monotonic_ns()
        self._bundle = bundle
        self._idle_s = idle_s
        limits = messages.Limits(members=MEMBERS_MAX, partitions=PARTITIONS_MAX, rate=RATE_MAX)
        self._played = {request.design: PlayedGroup(request, limits) for request in requests}
        groups = tuple(_first(request) for request in requests)
        first = messages.Snapshot(
            seq=0, at_ms=0, status=messages.Status.STARTING, run_folder=str(bundle), limits=limits, groups=groups
        )
        self._broadcast = Broadcast(first)
        self._watched = {
            group.design: WatchedGroup(self._played[group.design], group, self._begun_ns) for group in groups
        }
        self._why = ""  #: it is being stopped
        self.is_abandoned = False  #: it stopped because nobody watched
        self._halt = asyncio.Event()

    # -- as the page sees it ----------------------------------------------------------------------------------

    def snapshot(self) -> messages.Snapshot:
        return self._broadcast.snapshot

    def subscribe(self, after: int | None = None) -> AsyncIterator[messages.Snapshot | messages.Increment]:
        return self._broadcast.follow(after)

    async def command(self, command: commands.AnyCommand) -> commands.Answer:
        answer = await self._answer(command)
        self._note(command, answer)
        return answer

    async def _answer(self, command: commands.AnyCommand) -> commands.Answer:
        if self.snapshot().status is not messages.Status.RUNNING:
            return commands.Answer(accepted=False, reason=f"the game is {self.snapshot().status}")
        if isinstance(command, commands.Stop):
            self.stop("stopped on the page")
            return commands.Answer(accepted=True)
        unknown = [design for design in command.designs if design not in self._played]
        if unknown:
            return commands.Answer(accepted=False, reason=f"{unknown[0]} is not part of this game")
        groups = [self._played[design] for design in command.designs or self._played]
        refusals = await asyncio.gather(*(_refusal(group, command) for group in groups))
        reasons = [
            f"{group.design.name}: {reason}" if len(groups) > 1 else reason
            for group, reason in zip(groups, refusals, strict=True)
            if reason
        ]
        return commands.Answer(accepted=len(reasons) < len(groups), reason="; ".join(reasons))

    @property
    def is_watched(self) -> bool:
        """Whether a page has not received everything yet."""
        return self._broadcast.unwatched_s == 0

    def stop(self, why: str) -> None:
        """Have all groups finish, and the game analysed."""
        if not self._why:
            self._why = why
            self._enter(messages.Status.ANALYSING, f"{why}: {_STOPPING}")
            for group in self._played.values():
                group.stop()

    # -- its life ---------------------------------------------------------------------------------------------

    async def run(
        self, provenance: Mapping[str, object], analyse: Analyse, interrupted: asyncio.Event
    ) -> messages.Snapshot:
        """Play until the end; the last snapshot says how it ended. Raises `UserError` if it cannot start."""
        ticking = asyncio.create_task(self._tick())
        ticking.add_done_callback(self._halt_on_error)
        interrupting = asyncio.create_task(self._halt_after(interrupted))
        try:
            failed = await self._play(provenance)
            if ticking.done():
                await ticking  # an error of ours, which has halted the game
            if interrupted.is_set():
                self._enter(messages.Status.FAILED, "interrupted: the traces are kept")
            elif not self._why:
                self._enter(messages.Status.FAILED, failed)
            else:
                # What failed after the game was stopped can be analysed: the verdicts say what is unknown then.
                self._why = f"{self._why}; {failed}" if failed else self._why
                self._enter(messages.Status.ANALYSING, f"{self._why}: analysing the traces")
                await self._analyse(analyse, interrupted)
        except RebalanceLabError as error:
            self._enter(messages.Status.FAILED, str(error))
            raise
        finally:
            for task in (ticking, interrupting):
                task.cancel()
            await asyncio.gather(ticking, interrupting, return_exceptions=True)
            if self.snapshot().status not in (messages.Status.ENDED, messages.Status.FAILED):
                self._enter(messages.Status.FAILED, "an internal error")
            self._broadcast.end()
        return self.snapshot()

    async def _play(self, provenance: Mapping[str, object]) -> str:
        """Perform all runs side by side; why one of them failed, or ''."""
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
                    reason = _failure(await run)
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

    async def _analyse(self, analyse: Analyse, interrupted: asyncio.Event) -> None:
        analysing = asyncio.ensure_future(analyse())
        stopped = asyncio.create_task(interrupted.wait())
        try:
            await asyncio.wait([analysing, stopped], return_when=asyncio.FIRST_COMPLETED)
            if not analysing.done():
                self._enter(messages.Status.FAILED, "interrupted: the game is not analysed")
                return
            report = analysing.result()
            self._enter(messages.Status.ENDED, self._why, report=str(report))
        except RebalanceLabError as error:
            self._enter(messages.Status.FAILED, f"the analysis failed: {error}")
        finally:
            for task in (analysing, stopped):
                task.cancel()
            await asyncio.gather(analysing, stopped, return_exceptions=True)

    async def _halt_after(self, interrupted: asyncio.Event) -> None:
        await interrupted.wait()
        self._halt.set()

    def _halt_on_error(self, ticking: asyncio.Task[None]) -> None:
        if not ticking.cancelled() and ticking.exception() is not None:
            self._halt.set()

    # -- what the pages get -----------------------------------------------------------------------------------

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self._publish()
            if self.snapshot().status is messages.Status.RUNNING:
                if self._broadcast.unwatched_s > self._idle_s:
                    self.is_abandoned = True
                    self.stop(f"nobody has watched for {self._idle_s / 60:g} minutes")
                elif self.snapshot().at_ms > (GAME_S_MAX - _STOP_BEFORE_S) * 1000:
                    self.stop(f"a game takes {(GAME_S_MAX - _STOP_BEFORE_S) / 60:g} minutes at most")
            elif self.snapshot().status is messages.Status.STARTING and all(
                each.is_ready for each in self._played.values()
            ):
                self._enter(messages.Status.RUNNING)

    def _publish(self, *status: messages.StatusChanged) -> None:
        before = self.snapshot()
        at_ms = max(before.at_ms, self._now_ms())
        changes: list[messages.AnyChange] = [*status]
        for group in before.groups:
            changes += self._watched[group.design].drain(at_ms, group)
        if changes or at_ms - before.at_ms >= _QUIET_MS:
            self._broadcast.publish(at_ms, changes)

    def _enter(self, status: messages.Status, reason: str = "", *, report: str = "") -> None:
        changed = messages.StatusChanged(status=status, reason=reason, run_folder=str(self._bundle), report=report)
        self._publish(changed)

    def _now_ms(self) -> int:
        return (time.monotonic_ns() - self._begun_ns) // 1_000_000

    def _note(self, command: commands.AnyCommand, answer: commands.Answer) -> None:
        """Keep what was played. A full disk must not end the game, whose traces would end it anyway."""
        line = {"at_ms": self._now_ms(), "command": command, "answer": answer}
        with contextlib.suppress(OSError), (self._bundle / PLAYED).open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")


async def _refusal(group: PlayedGroup, command: commands.Command) -> str:
    """Why the group refuses a command; '' if it performed it."""
    try:
        await group.perform(command)
    except Refused as error:
        return str(error)
    return ""


def _failure(outcome: RunOutcome) -> str:
    return "" if outcome.outcome == "complete" else outcome.error or f"the run was {outcome.outcome}"


def _states(design: str) -> Iterable[Enum]:
    if not DESIGNS[design].coordinator:
        return ()
    return ConsumerGroupState if DESIGNS[design].reconciles else GroupState


def _first(request: RunRequest) -> messages.Group:
    """A group that nothing is known of yet."""
    coordinated = DESIGNS[request.design].coordinator
    return messages.Group(
        design=request.design,
        coordinated=coordinated,
        states=tuple(state.value for state in _states(request.design)),
        coordinator=messages.Coordinator() if coordinated else None,
        table=rebalance_table() if request.design == ZOOKEEPER else (),
        rate=request.parameters.rate,
    )
