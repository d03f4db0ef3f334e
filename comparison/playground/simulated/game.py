"""The simulated game: groups of several designs, each in a world of its own, under one virtual time.

Every world begins from the same seed, and its journal has what was played in it. So going back, and playing the same in
another design, are one thing: worlds begin again, and are given what their journals have.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from comparison.playground import commands, messages
from comparison.playground.messages import TimeState
from comparison.playground.play.lifecycle import LAST_S, PlayedGame, Refused, played_group
from comparison.playground.play.setting_up import begun_of, write_command
from comparison.playground.saving.steps import Act
from comparison.playground.simulated.journal import Journal
from comparison.playground.simulated.pacing import Pacing
from comparison.playground.simulated.worlds import WorldEnded, Worlds
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.feasibility import Case, require_feasible
from comparison.scenarios.plan.played import PARTITIONS_MAX, PLAYGROUND, RATE_MAX
from kernel.clock import NS_PER_MS, NS_PER_S
from kernel.designs import DESIGNS
from kernel.errors import ConfigurationError
from kernel.tasks import cancel_and_wait

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from comparison.playground.play.setting_up import Planned

#: A group has so many members at most.
MEMBERS_MAX = 50
#: How often time goes on.
_TICK_S = 0.1
_LAST_NS = LAST_S * NS_PER_S
#: A group that has not formed by then is played with as it is.
_FORMED_NS = 60 * NS_PER_S


class SimulatedGame(PlayedGame):
    """See the module."""

    def __init__(self, plan: Planned, *, idle_s: float) -> None:
        limits = messages.Limits(members=MEMBERS_MAX, partitions=PARTITIONS_MAX, rate=RATE_MAX)
        groups = tuple(played_group(design, plan.parameters.rate) for design in plan.designs)
        simulation = messages.Simulation(seed=plan.parameters.seed, designs=tuple(DESIGNS))
        super().__init__(
            groups,
            plan.bundle,
            idle_s=idle_s,
            limits=limits,
            parameters=plan.parameters,
            begun=begun_of(plan),
            simulation=simulation,
        )
        self._plan = plan
        self._worlds = Worlds(plan, limits)
        self._turn = asyncio.Lock()  #: who has it turns time, or gives commands
        self._woken = asyncio.Event()  #: there is more to do than to wait
        self._pacing = Pacing()
        self._turned_s = time.monotonic()  #: when time went on last
        self._said_s = 0.0  #: when it was said last how fast it goes
        self._until_ns = 0  #: of a replay
        self._then = TimeState.RUNNING  #: what time does after it
        self._finishing: asyncio.Task[None] | None = None
        self._turners: Mapping[type[commands.Command], Callable[[Any], Coroutine[Any, Any, None]]] = {
            commands.SetPace: self._set_pace,
            commands.NextEvent: self._next_event,
            commands.GoBack: self._go_back,
            commands.PlaySame: self._play_same,
            commands.PlayAnew: self._play_anew,
        }

    # -- its life ------------------------------------------------------------------------------------------------------

    async def _play(self, provenance: Mapping[str, object]) -> str:
        await self._worlds.open(provenance)
        going = asyncio.create_task(self._go_on(), name="virtual time")
        halted = asyncio.create_task(self._halt.wait())
        try:
            await asyncio.wait([going, halted], return_when=asyncio.FIRST_COMPLETED)
            return going.result() if going.done() else "it was interrupted"
        except WorldEnded as error:
            return str(error)
        finally:
            self._halt.set()
            await cancel_and_wait(going, halted, self._finishing)
            await self._worlds.close()

    async def _go_on(self) -> str:
        """Turn time until all runs have ended, or one has failed; why it failed, or ''. Raises `WorldEnded`."""
        async with self._turn:
            await self._worlds.begin({design: Journal() for design in self._plan.designs})
        while True:
            async with self._turn:
                await self._stretch()
                ended = self._worlds.ended
            if ended is not None:
                return ended or ("" if self._why else "all runs have ended by themselves")
            left_s = self._turned_s + _TICK_S - time.monotonic()
            if not self._is_hurried and left_s > 0:
                self._woken.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left_s):
                        await self._woken.wait()

    @property
    def _simulation(self) -> messages.Simulation:
        simulation = self.snapshot().simulation
        assert simulation is not None
        return simulation

    @property
    def _time(self) -> TimeState:
        return self._simulation.time

    @property
    def _is_hurried(self) -> bool:
        """Whether time goes on as fast as it can."""
        return bool(self._why) or self._time in (TimeState.FORMING, TimeState.REPLAYING)

    async def _stretch(self) -> None:
        """Go on by one stretch, if time does not stand still."""
        begun_s, before_ns = time.monotonic(), self._worlds.now_ns
        since_s, self._turned_s = begun_s - self._turned_s, begun_s
        if self._is_hurried:
            length_ns = self._pacing.whole_stretch_ns()
            if self._time is TimeState.REPLAYING and not self._why:
                length_ns = min(length_ns, self._until_ns - before_ns)
        elif self._time is TimeState.RUNNING:
            length_ns = min(self._pacing.stretch_ns(since_s), _LAST_NS - before_ns)
        else:
            return
        await self._worlds.go_on(before_ns + length_ns)
        took_s = time.monotonic() - begun_s
        self._pacing = self._pacing.after(
            self._worlds.now_ns - before_ns, took_s, took_s if self._is_hurried else since_s
        )
        self._publish()
        self._arrive()

    def _arrive(self) -> None:
        """Time has gone on: it may have come to where it stands still, or goes on at its speed."""
        now_ns, now_s = self._worlds.now_ns, time.monotonic()
        if self._time is TimeState.FORMING and (self._worlds.are_formed or now_ns >= _FORMED_NS):
            self._formed_ms = now_ns // NS_PER_MS
            if self.snapshot().status is messages.Status.STARTING:
                self._enter(messages.Status.RUNNING)
            self._let(self._then)
        elif self._time is TimeState.REPLAYING and now_ns >= self._until_ns:
            self._let(self._then)
        elif self._time is TimeState.RUNNING and now_ns >= _LAST_NS:
            self._let(TimeState.PAUSED)
        elif self._time is TimeState.RUNNING and now_s - self._said_s > 1:
            self._said_s = now_s
            if self._pacing.shown != self._simulation.reached:
                self._say(reached=self._pacing.shown)

    def _let(self, state: TimeState) -> None:
        """Have time stand still, or go on at its speed."""
        self._turned_s = time.monotonic()
        self._pacing = self._pacing.at_speed(self._simulation.speed)
        self._say(time=state, reached=0.0, until_ms=0)
        self._woken.set()

    def _stop_groups(self) -> None:
        self._finishing = asyncio.create_task(self._finish())

    async def _finish(self) -> None:
        async with self._turn:
            await self._worlds.finish()
        self._woken.set()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(1)
            if self.snapshot().status is messages.Status.RUNNING:
                self._stop_if_nobody_watches()

    # -- commands ------------------------------------------------------------------------------------------------------

    async def _perform(self, command: commands.AnyCommand) -> commands.Answer:
        async with self._turn:
            if self._why or self._halt.is_set():
                return commands.Answer(accepted=False, reason="the game is over")
            try:
                if type(command) in self._turners:
                    await self._turners[type(command)](command)
                    return commands.Answer(accepted=True)
                return await self._give(command)
            except (Refused, ConfigurationError, WorldEnded) as error:
                return commands.Answer(accepted=False, reason=str(error))
            finally:
                self._woken.set()

    async def _give(self, command: commands.AnyCommand) -> commands.Answer:
        """Give a command to groups, which takes no time but what it needs to be performed."""
        assert isinstance(command, commands.GroupCommand)
        self._require_present()
        outcomes = await self._worlds.give(command.designs or self._designs, replace(command, designs=()))
        self._publish()
        return self._of_all(outcomes)

    def _require_present(self) -> None:
        """Raises `Refused` while the worlds go on to where they are to be."""
        if self._is_hurried:
            where = "the groups have formed" if self._time is TimeState.FORMING else f"{self._until_ns / NS_PER_S:g} s"
            raise Refused(f"the game runs again until {where}: wait for it")

    def _require_more(self) -> None:
        if self._worlds.now_ns >= _LAST_NS:
            raise Refused(f"a game takes {LAST_S / 60:g} minutes at most: go back, or stop it")

    async def _set_pace(self, command: commands.SetPace) -> None:
        if command.speed is not None:
            self._pacing = self._pacing.at_speed(command.speed)
            self._say(speed=command.speed, reached=0.0)
        if command.paused is None:
            return
        state = TimeState.PAUSED if command.paused else TimeState.RUNNING
        if self._is_hurried:
            self._then = state
            return
        if state is TimeState.RUNNING:
            self._require_more()
            self._say(event="")
        self._let(state)

    async def _next_event(self, _: commands.NextEvent) -> None:
        self._require_present()
        self._require_more()
        told = await self._worlds.to_event()
        self._publish()
        self._say(event=told or "no event for ten seconds")
        self._let(TimeState.PAUSED)

    async def _go_back(self, command: commands.GoBack) -> None:
        to_ns = command.to_ms * NS_PER_MS
        if to_ns > max(self._worlds.now_ns, self._until_ns):
            raise Refused(f"{command.to_ms / 1000:g} s has not come yet: time can only go back")
        journals = {design: journal.before(to_ns) for design, journal in self._worlds.journals.items()}
        await self._again(journals, to_ns, TimeState.PAUSED)

    async def _play_same(self, command: commands.PlaySame) -> None:
        self._require_present()
        journals = {design: journal.again() for design, journal in self._worlds.journals.items()}
        if command.design not in journals:
            raise Refused(f"{command.design} is not part of this game")
        if command.other in journals:
            raise Refused(f"{command.other} is shown already")
        self._require_playable(command.other)
        order = list(journals)
        order.insert(order.index(command.design) + 1, command.other)
        journals[command.other] = journals[command.design]
        await self._again({design: journals[design] for design in order}, self._worlds.now_ns, self._time)

    async def _play_anew(self, command: commands.PlayAnew) -> None:
        designs = tuple(dict.fromkeys(command.played or self._designs))
        for design in designs:
            self._require_playable(design)
        await self._again({design: Journal() for design in designs}, None, TimeState.RUNNING)

    def _require_playable(self, design: str) -> None:
        """Raises `Refused` or `ConfigurationError`."""
        if design not in DESIGNS:
            raise Refused(f"there is no design {design}")
        parameters = self._plan.parameters
        require_feasible(Case(PLAYGROUND, design, parameters, configuration(design, parameters)))

    async def _again(self, journals: Mapping[str, Journal], until_ns: int | None, then: TimeState) -> None:
        """Begin again from the seed, up to a moment, or until the groups have formed."""
        self._until_ns, self._then = until_ns or 0, then
        await self._worlds.begin(journals)
        write_command(self._plan, list(journals))
        before, simulation = self.snapshot(), self._simulation
        state = TimeState.FORMING if until_ns is None else TimeState.REPLAYING
        simulation = replace(
            simulation,
            time=state,
            until_ms=self._until_ns // NS_PER_MS,
            event="",
            reached=0.0,
            take=simulation.take + 1,
        )
        groups = tuple(played_group(design, self._plan.parameters.rate) for design in journals)
        self._broadcast.begin_again(replace(before, at_ms=0, groups=groups, simulation=simulation))
        self._publish()

    # -- what the pages get --------------------------------------------------------------------------------------------

    def _say(self, **fields: Any) -> None:
        changed = messages.SimulationChanged(simulation=replace(self._simulation, **fields))
        self._broadcast.publish(self._shown_ms, [changed])

    def _publish(self, *status: messages.StatusChanged) -> None:
        self._broadcast.publish(self._shown_ms, [*status, *self._worlds.changes()])

    @property
    def _acts(self) -> Mapping[str, Sequence[Act]]:
        """What was undone by going back is in no journal."""
        return {
            design: [Act(each.at_ns // NS_PER_MS, each.command) for each in journal.entries if not each.is_refused]
            for design, journal in self._worlds.journals.items()
        }

    def _now_ms(self) -> int:
        return self._worlds.now_ns // NS_PER_MS
