"""What every game has in common: its status from the start to the analysis, and what its pages get.

It implements `comparison.playground.messages.Game`. However it ends (by the command to stop, an interrupt, a part that
failed, or because nobody has watched for long), every process that it started has ended when `run` returns.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import msgspec

from comparison.playground import commands, messages
from comparison.playground.live.first import first_group
from comparison.playground.play.broadcast import Broadcast
from comparison.playground.play.table import rebalance_table
from comparison.playground.saving.saved import Played, saved
from comparison.scenarios.plan.played import GAME_S_MAX
from kernel.designs import ZOOKEEPER
from kernel.errors import RebalanceLabError, UserError
from kernel.tasks import cancel_and_wait

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from comparison.playground.saving.steps import Act
    from comparison.scenarios.plan.parameters import Parameters
    from comparison.scenarios.run.runner import RunOutcome

    #: Analyses a command's folder; returns the path of the report.
    Analyse = Callable[[], Awaitable[Path]]

TICK_S = 0.2
#: A game stops by itself so long before its time limit, which would abort it.
_STOP_BEFORE_S = 180
LAST_S = GAME_S_MAX - _STOP_BEFORE_S
#: What was played, as JSON lines: each command with its time and its answer.
PLAYED = "played.jsonl"
STOPPING = "waiting until every record is delivered"


class Refused(UserError):
    """A command that cannot be performed now, and why."""


class PlayedGame(ABC):
    """One game, played once."""

    def __init__(
        self,
        groups: tuple[messages.Group, ...],
        bundle: Path,
        *,
        idle_s: float,
        limits: messages.Limits,
        parameters: Parameters,
        begun: messages.Begun,
        simulation: messages.Simulation | None = None,
    ) -> None:
        self._bundle = bundle
        self._idle_s = idle_s
        self._limits = limits
        self._parameters = parameters
        self._provenance: Mapping[str, object] = {}
        self._formed_ms: int | None = None  #: when all groups had formed
        self._kept: Sequence[messages.SavedScenario] | None = None  #: what was played until the game was stopped
        self._saved: tuple[str, ...] = ()  #: the paths of these
        self._broadcast = Broadcast(
            messages.Snapshot(
                seq=0,
                at_ms=0,
                status=messages.Status.STARTING,
                run_folder=str(bundle),
                limits=limits,
                begun=begun,
                groups=groups,
                simulation=simulation,
            )
        )
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
        unknown = [design for design in command.designs if design not in self._designs]
        if unknown:
            return commands.Answer(accepted=False, reason=f"{unknown[0]} is not part of this game")
        return await self._perform(command)

    @property
    def _designs(self) -> list[str]:
        return [group.design for group in self.snapshot().groups]

    def _of_all(self, outcomes: Mapping[str, commands.Outcome]) -> commands.Answer:
        """The answer to a command that was given to several designs."""
        said = {design: refusal or remark for design, (refusal, remark) in outcomes.items() if refusal or remark}
        if len(said) == len(outcomes) > 1 and len(set(said.values())) == 1:
            said = {"every design": next(iter(said.values()))}
        reasons = [f"{design}: {text}" if len(outcomes) > 1 else text for design, text in said.items()]
        return commands.Answer(accepted=not all(each.refusal for each in outcomes.values()), reason="; ".join(reasons))

    @property
    def is_watched(self) -> bool:
        """Whether a page has not received everything yet."""
        return self._broadcast.unwatched_s == 0

    def stop(self, why: str) -> None:
        """Have all groups finish, and the game analysed."""
        if not self._why:
            self._why = why
            self._save()
            self._enter(messages.Status.ANALYSING, f"{why}: {STOPPING}")
            self._stop_groups()

    def fail(self, why: str) -> None:
        """A part has failed: nothing can be played any more. What has failed while it was being stopped is analysed."""
        if not self._why and self.snapshot().status is not messages.Status.FAILED:
            self._enter(messages.Status.FAILED, why)

    # -- its life ---------------------------------------------------------------------------------------------

    async def run(
        self, provenance: Mapping[str, object], analyse: Analyse, interrupted: asyncio.Event
    ) -> messages.Snapshot:
        """Play until the end; the last snapshot says how it ended. Raises `UserError` if it cannot start."""
        self._provenance = provenance
        ticking = asyncio.create_task(self._tick())
        ticking.add_done_callback(self._halt_on_error)
        interrupting = asyncio.create_task(self._halt_after(interrupted))
        try:
            failed = await self._play(provenance)
            if ticking.done():
                await ticking  # an error of ours, which has halted the game
            if interrupted.is_set():
                self._save()
                self._enter(messages.Status.FAILED, "the game was ended in the terminal (Ctrl-C)")
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
            await cancel_and_wait(ticking, interrupting)
            if self.snapshot().status not in (messages.Status.ENDED, messages.Status.FAILED):
                self._enter(messages.Status.FAILED, "an internal error")
            self._broadcast.end()
        return self.snapshot()

    async def _analyse(self, analyse: Analyse, interrupted: asyncio.Event) -> None:
        analysing = asyncio.ensure_future(analyse())
        stopped = asyncio.create_task(interrupted.wait())
        try:
            await asyncio.wait([analysing, stopped], return_when=asyncio.FIRST_COMPLETED)
            if not analysing.done():
                self._enter(messages.Status.FAILED, "the analysis was ended in the terminal (Ctrl-C)")
                return
            report = analysing.result()
            self._enter(messages.Status.ENDED, self._why, report=str(report))
        except RebalanceLabError as error:
            self._enter(messages.Status.FAILED, f"the analysis failed: {error}")
        finally:
            await cancel_and_wait(analysing, stopped)

    async def _halt_after(self, interrupted: asyncio.Event) -> None:
        await interrupted.wait()
        self._halt.set()

    def _halt_on_error(self, ticking: asyncio.Task[None]) -> None:
        if not ticking.cancelled() and ticking.exception() is not None:
            self._halt.set()

    # -- what each kind of game does in its own way ------------------------------------------------------------

    @abstractmethod
    async def _perform(self, command: commands.AnyCommand) -> commands.Answer:
        """Perform a command other than to stop, in its designs, or in all if it names none."""

    @abstractmethod
    async def _play(self, provenance: Mapping[str, object]) -> str:
        """Perform all runs side by side until each has ended; why one of them failed, or ''."""

    @abstractmethod
    def _stop_groups(self) -> None:
        """Have all groups finish."""

    @abstractmethod
    async def _tick(self) -> None:
        """Keep the pages informed, for ever. An error of it ends the game."""

    @abstractmethod
    def _publish(self, *status: messages.StatusChanged) -> None:
        """Publish what has changed."""

    @abstractmethod
    def _now_ms(self) -> int:
        """Since the game began."""

    @property
    def _shown_ms(self) -> int:
        """The time that pages show: it stands still once the game is being stopped."""
        now = self.snapshot()
        goes_on = now.status in (messages.Status.STARTING, messages.Status.RUNNING)
        return self._now_ms() if goes_on else now.at_ms

    # -- what the pages get -----------------------------------------------------------------------------------

    def _stop_if_nobody_watches(self) -> None:
        if self._broadcast.unwatched_s > self._idle_s:
            self.is_abandoned = True
            self.stop(f"nobody has watched for {self._idle_s / 60:g} minutes")

    def _enter(self, status: messages.Status, reason: str = "", *, report: str = "") -> None:
        folder, scenarios = str(self._bundle), self._saved
        self._publish(
            messages.StatusChanged(status=status, reason=reason, run_folder=folder, report=report, scenarios=scenarios)
        )

    # -- what was played, as scenarios -------------------------------------------------------------------------

    @property
    @abstractmethod
    def _acts(self) -> Mapping[str, Sequence[Act]]:
        """What was accepted in each design, in its order."""

    def scenarios(self) -> Sequence[messages.SavedScenario]:
        return self._kept if self._kept is not None else self._as_scenarios()

    def _as_scenarios(self) -> Sequence[messages.SavedScenario]:
        return saved(
            Played(
                name=self._bundle.name,
                provenance=self._provenance,
                parameters=self._parameters,
                limits=self._limits,
                is_simulated=self.snapshot().simulation is not None,
                begun_ms=self._formed_ms,
                now_ms=self._now_ms(),
                acts=self._acts,
            )
        )

    def _save(self) -> None:
        """Keep what was played, and write it beside the run; as `_note`."""
        self._kept = self._as_scenarios()
        with contextlib.suppress(OSError):
            for each in self._kept:
                path = self._bundle / each.name
                path.write_text(each.text)
                self._saved = (*self._saved, str(path))

    def _note(self, command: commands.AnyCommand, answer: commands.Answer) -> None:
        """Keep what was played. A full disk must not end the game, whose traces would end it anyway."""
        line = {"at_ms": self._now_ms(), "command": command, "answer": answer}
        with contextlib.suppress(OSError), (self._bundle / PLAYED).open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")


def failure_of(outcome: RunOutcome) -> str:
    return "" if outcome.outcome == "complete" else outcome.error or f"the run was {outcome.outcome}"


def played_group(design: str, rate: int) -> messages.Group:
    """A group that nothing is known of yet."""
    return first_group(design, rate, rebalance_table() if design == ZOOKEEPER else ())
