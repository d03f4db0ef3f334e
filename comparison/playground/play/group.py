"""One design's group, and what a command does to it.

It is the player of a run (`comparison.scenarios.run.steps.Player`): the run starts everything before it, and drains,
reads the final offsets and stops everything after it.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from comparison.playground import commands
from comparison.playground.play.faults import Faults, Stepping
from comparison.playground.play.lifecycle import Refused
from comparison.scenarios.processes.gathering import gather_or_cancel
from comparison.scenarios.run.performer import Together
from kernel.designs import DESIGNS, ZOOKEEPER
from kernel.errors import RebalanceLabError
from kernel.tasks import cancel_and_wait
from kernel.waiting import WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from comparison.playground.messages import Limits
    from comparison.scenarios.plan.request import RunRequest
    from comparison.scenarios.run.changes import Changes

#: How often it looks for processes that ended by themselves.
_LOOK_S = 0.2
#: How long a member that was asked to leave may take: its consumer closes its session, or says goodbye.
_LEAVE_S = 20.0
#: How long a start waits for the process before it to end.
_GONE_S = 3.0
#: At the end: how long a group may take to settle beyond its timers, and how many members may come to its help.
_SETTLE_S, _HELPERS_MAX = 6.0, 2


class PlayedGroup:
    """Performs the commands for one group, one after the other."""

    def __init__(self, request: RunRequest, limits: Limits) -> None:
        self.request = request
        self.design = DESIGNS[request.design]
        #: Called before the first member joins, when the game is over, and with each new rate.
        self.on_ready: Callable[[Changes], Awaitable[None]]
        self.on_over: Callable[[], Awaitable[None]]
        self.on_rate: Callable[[int], None] = lambda _: None
        self.on_failed: Callable[[str], None] = lambda _: None  #: before everything is ended, which takes a while
        self.is_ready = False  #: it takes commands
        self._limits = limits
        self._changes: Changes | None = None
        self._begun: Faults | None = None
        self._stopping = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._rounds = 0
        self._is_measured = False
        self._settling: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()
        self._performers: Mapping[type[commands.Command], Callable[[Any], Awaitable[str | None]]] = {
            commands.ActOnMember: self._act,
            commands.AddMembers: self._add_members,
            commands.AddPartitions: self._add_partitions,
            commands.SetRate: self._set_rate,
            commands.Restore: self._restore,
            commands.SetStepping: self._set_stepping,
            commands.LetGo: self._let_go,
        }
        self._actions: Mapping[commands.MemberAction, Callable[[str, commands.ActOnMember], Awaitable[None]]] = {
            commands.MemberAction.START: self._start,
            commands.MemberAction.LEAVE: self._leave,
            commands.MemberAction.RESTART: self._leave_and_return,
            commands.MemberAction.KILL: self._kill,
            commands.MemberAction.FREEZE: self._freeze,
            commands.MemberAction.CONTINUE: self._continue,
            commands.MemberAction.CUT: self._cut,
            commands.MemberAction.HEAL: self._heal,
            commands.MemberAction.SLOW: self._slow_down,
        }

    # -- the run's side ---------------------------------------------------------------------------------------

    async def play(self, changes: Changes) -> None:
        """Let the first members join, then take commands until `stop`. Raises what breaks the group."""
        self._changes, self._begun = changes, Faults(changes)
        try:
            await self.on_ready(changes)
            async with self._one_at_a_time:
                await self._join(self.request.parameters.members)
            self.is_ready = True
            while not self._stopping.is_set():
                async with self._one_at_a_time:  # a process that is being started is not there yet
                    await self._look()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self._stopping.wait()
            async with self._one_at_a_time:
                await self._finish()
        except RebalanceLabError as error:
            self.on_failed(str(error))
            raise
        finally:
            self._stopping.set()
            async with self._one_at_a_time:  # a command under way ends first, and no other one begins
                tasks = [*self._leaving, self._settling]
            await cancel_and_wait(*tasks)
            await self.on_over()

    @property
    def is_formed(self) -> bool:
        """Whether the first members have settled, or somebody plays already."""
        return self._is_measured

    def stop(self) -> None:
        self._stopping.set()

    async def perform(self, command: commands.Command) -> str:
        """Perform a command, but wait for no effect on the group; what was done otherwise. Raises `Refused`."""
        if not self.is_ready:
            raise Refused("the group is still being started")
        async with self._one_at_a_time:
            if self._stopping.is_set():
                raise Refused("the game is over")
            self._measure()
            try:
                return await self._performers[type(command)](command) or ""
            except Refused:
                raise
            except RebalanceLabError as error:
                raise Refused(str(error)) from error

    async def _look(self) -> None:
        """Do without processes that ended by themselves. Raises `RebalanceLabError` for a part that must not end."""
        for place in self._members.places:
            process = self._members.process_at(place)
            if not self._members.is_gone(process) and self._members.child(process).returncode is not None:
                await self._faults.undo(place, ended=True)
                self._members.lose(process)
        self._running.testbed.check()

    async def _finish(self) -> None:
        """Undo everything, so that everything can be delivered.

        If nobody is left, somebody has to come. So too if the group does not settle: a member of zookeeper that has
        given up after its last attempt rebalances only with the next change.
        """
        await self._look()
        for place in self._members.places:
            await self._faults.undo(place)
        if self._members.present == 0:
            await self._come()
        made = self.request.configuration
        patience_s = (made.session_ms + made.delay_ms) / 1000 + _SETTLE_S
        for _ in range(_HELPERS_MAX):
            try:
                await self._members.until_settled(patience_s)
            except WaitTimeout:
                await self._come()
            else:
                return

    async def _come(self) -> None:
        """Have one member more, at a free place if there is one."""
        free = [place for place in self._members.places if self._members.is_gone(self._members.process_at(place))]
        if free:
            await self._restart(free[0])
        else:
            await self._join(1)

    # -- parts ------------------------------------------------------------------------------------------------

    @property
    def _running(self) -> Changes:
        assert self._changes is not None, "not started"
        return self._changes

    @property
    def _members(self) -> Any:
        return self._running.members

    @property
    def _faults(self) -> Faults:
        assert self._begun is not None, "not started"
        return self._begun

    @contextlib.contextmanager
    def _change(self, change: str, members: int, **detail: object) -> Iterator[None]:
        """Trace a change that is made meanwhile, and wait in the background until the group has settled after it."""
        self._rounds += 1
        fields = {"change": change, "round": self._rounds, "members": members}
        self._running.tracer.emit("change_started", **fields, detail=detail)  # type: ignore[arg-type]  # none of them is member or stream
        if self._settling is not None:
            self._settling.cancel()
        yield
        self._settling = asyncio.create_task(self._settle(fields))

    async def _settle(self, fields: Mapping[str, object]) -> None:
        """Trace when the group has settled, unless another change comes before."""
        with contextlib.suppress(RebalanceLabError):
            await self._members.until_settled(self.request.parameters.time_limit_s)
            self._running.tracer.emit("change_settled", **fields)  # type: ignore[arg-type]  # as above
            self._measure()

    def _measure(self) -> None:
        """From now on the run is measured: the group has formed, or somebody plays already."""
        if not self._is_measured:
            self._is_measured = True
            self._running.enter_stage("steady")

    def _occupied(self, member: str) -> str:
        """The process at a place. Raises `Refused` if there is none."""
        if member not in self._members.places:
            raise Refused(f"there is no member {member}")
        process = self._members.process_at(member)
        if self._members.is_gone(process) or self._members.child(process).returncode is not None:
            raise Refused(f"{member} has ended: start it first")
        return str(process)

    def _undisturbed(self, member: str) -> str:
        """The process at a place. Raises `Refused` if it is frozen or cut off, too."""
        process = self._occupied(member)
        if self._faults.has("freeze", member):
            raise Refused(f"{member} is frozen: let it continue first")
        if self._faults.has("cut", member):
            raise Refused(f"{member} is cut off: heal it first")
        return process

    # -- members ----------------------------------------------------------------------------------------------

    async def _act(self, command: commands.ActOnMember) -> None:
        await self._actions[command.action](command.member, command)

    async def _start(self, member: str, _: commands.ActOnMember) -> None:
        if member not in self._members.places:
            raise Refused(f"there is no member {member}: add one")
        if not self._members.is_gone(self._members.process_at(member)):
            raise Refused(f"{member} is running")
        await self._restart(member)

    async def _restart(self, place: str) -> None:
        """Start a process at a free place."""
        await self._until_gone(place)
        with self._change("join", self._members.present + 1, targets=[place]):
            await self._members.come_back(place)

    async def _leave_and_return(self, member: str, _: commands.ActOnMember) -> None:
        await self._leave(member)
        await self._restart(member)

    async def _until_gone(self, place: str) -> None:
        """Wait for a process that is still leaving, within limits."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._members.child(self._members.process_at(place)).gone(), _GONE_S)

    async def _leave(self, member: str, _: commands.ActOnMember | None = None) -> None:
        process = self._undisturbed(member)
        await self._faults.undo(member)
        with self._change("leave", self._members.present - 1, targets=[member]):
            self._members.leave(process)
        task = asyncio.create_task(self._gone(process))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _gone(self, process: str) -> None:
        """Trace the end of a process that was asked to leave; kill it if it does not."""
        child = self._members.child(process)
        how = "leave"
        try:
            code = await asyncio.wait_for(child.gone(), _LEAVE_S)
        except TimeoutError:
            how, code = "kill", await child.kill()
        self._running.tracer.emit("process_ended", target=process, how=how, code=code)

    async def _kill(self, member: str, _: commands.ActOnMember) -> None:
        self._occupied(member)
        await self._faults.undo(member, ended=True)
        with self._change("crash", self._members.present - 1, targets=[member]):
            await self._faults.strike("kill", await self._faults.set_up("kill", member))

    async def _freeze(self, member: str, _: commands.ActOnMember) -> None:
        self._undisturbed(member)
        await self._faults.begin("freeze", member, await self._faults.set_up("freeze", member))

    async def _continue(self, member: str, _: commands.ActOnMember) -> None:
        self._occupied(member)
        if not self._faults.has("freeze", member):
            raise Refused(f"{member} is not frozen")
        await self._faults.end("freeze", member)

    async def _cut(self, member: str, _: commands.ActOnMember) -> None:
        """Fetches go on: another broker leads the topics."""
        process = self._undisturbed(member)
        link = await self._faults.set_up("cut", f"{member}->authority")
        await self._faults.begin("cut", member, Together(self._running, process, [link]))
        self._members.view.leave_out(process)

    async def _heal(self, member: str, _: commands.ActOnMember) -> None:
        self._occupied(member)
        if not self._faults.has("cut", member):
            raise Refused(f"{member} is not cut off")
        await self._faults.end("cut", member)

    async def _slow_down(self, member: str, command: commands.ActOnMember) -> None:
        self._occupied(member)
        if self._faults.has("freeze", member):
            raise Refused(f"{member} is frozen: let it continue first")
        if self._faults.has("slow", member):
            await self._faults.end("slow", member)
        if command.delay_ms:
            slow = await self._faults.set_up("slow-record", member, {"per_record_ms": command.delay_ms})
            await self._faults.begin("slow", member, slow, delay_ms=command.delay_ms)

    # -- the group --------------------------------------------------------------------------------------------

    async def _add_members(self, command: commands.AddMembers) -> str:
        most, before = self._limits.members, len(self._members.places) - len(self._free)
        if before >= most:
            raise Refused(f"the group has {before} members; the maximum is {most}")
        count = min(command.count, most - before)
        await self._join(count)
        return _fewer(count, command.count, most)

    @property
    def _free(self) -> list[str]:
        """Places that were added, and whose member has ended."""
        places = self._members.places[self.request.parameters.members :]
        return [place for place in places if self._members.is_gone(self._members.process_at(place))]

    async def _join(self, count: int) -> None:
        """Have more members, at free places first."""
        first, back = len(self._members.places) + 1, self._free[:count]
        added = [f"m{number}" for number in range(first, first + count - len(back))]
        # One that joins is measured beside the model; the first ones, and several at once, are not.
        change = "form" if first == 1 else "join" if count == 1 else "grow"
        with self._change(change, self._members.present + count, targets=[*back, *added]):
            await asyncio.gather(*(self._until_gone(place) for place in back))
            coming = [self._members.come_back(place) for place in back]
            await gather_or_cancel(*coming, *([self._members.add(len(added))] if added else []))

    async def _restore(self, command: commands.Restore) -> None:
        first = max(self.request.parameters.members, command.members_min)
        await self._look()
        for place in self._members.places:
            await self._faults.undo(place)
        for place in self._members.places[first:]:
            if place in self._members.present_places:
                await self._leave(place)
        for place in self._members.places[:first]:
            if self._members.is_gone(self._members.process_at(place)):
                await self._restart(place)
        if first > len(self._members.places):
            await self._join(first - len(self._members.places))
        await self._set_rate(commands.SetRate(per_second=self.request.parameters.rate))

    async def _add_partitions(self, command: commands.AddPartitions) -> str:
        testbed, most = self._running.testbed, self._limits.partitions
        before = len(testbed.partitions)
        after = min(before + command.count, most)
        if after <= before:
            raise Refused(f"the topic has {before} partitions; the maximum is {most}")
        topic = testbed.request.parameters.topic_names[0]
        with self._change("partition-increase", self._members.present, topic=topic, before=before, after=after):
            self._members.view.grow(await testbed.grow_topic(topic, after))
            self._running.tracer.emit("topic_wanted", topic=topic, wanted=after)
        return _fewer(after - before, command.count, most)

    async def _set_rate(self, command: commands.SetRate) -> None:
        if command.per_second > self._limits.rate:
            raise Refused(f"at most {self._limits.rate} records a second")
        self._running.testbed.load.rate = command.per_second
        self.on_rate(command.per_second)

    # -- step by step -----------------------------------------------------------------------------------------

    async def _set_stepping(self, command: commands.SetStepping) -> None:
        if self.design.name != ZOOKEEPER:
            raise Refused(f"only {ZOOKEEPER} members have a step mode: in {self.design.name} the coordinator decides")
        process = self._undisturbed(command.member)
        if command.on == self._faults.has("step", command.member):
            return
        if command.on:
            await self._faults.begin("step", command.member, Stepping(self._running, process, {}))
        else:
            await self._faults.end("step", command.member)

    async def _let_go(self, command: commands.LetGo) -> None:
        process = self._occupied(command.member)
        if not self._faults.has("step", command.member):
            raise Refused(f"{command.member} is not in step mode: press Step first")
        self._members.let_go(process)


def _fewer(added: int, wanted: int, most: int) -> str:
    """What is said if not all were added."""
    return "" if added == wanted else f"added {added} of {wanted}: the most is {most}"
