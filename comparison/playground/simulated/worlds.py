"""The worlds of a game, each in a process of its own; between two calls all of them are at the same moment.

What was played is given to them again at its moments, as far as their journals have it.
"""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass, field
from signal import SIGKILL
from typing import TYPE_CHECKING

import msgspec

from comparison.playground.commands import Outcome
from comparison.playground.simulated.exchange import Begin, Finish, Give, GoOn, Reply
from comparison.scenarios.plan.played import PLAYGROUND
from comparison.scenarios.processes.fork_server import PRELOADED, ForkServer
from kernel.clock import NS_PER_MS, NS_PER_S
from kernel.errors import EnvironmentFault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from comparison.playground import messages
    from comparison.playground.commands import GroupCommand
    from comparison.playground.play.setting_up import Planned
    from comparison.playground.simulated.exchange import Asked
    from comparison.playground.simulated.journal import Journal
    from comparison.scenarios.processes.fork_server import ForkedChild

_MODULE = "comparison.playground.simulated.world_process"
#: A command is waited for for so long; what it waits for itself comes as time goes on.
_ANSWER_NS = 50 * NS_PER_MS
#: A step goes on for so long at most.
_STEP_NS = 10 * NS_PER_S


class WorldEnded(EnvironmentFault):
    """The process of a world has ended, which only an error of ours or a lack of memory brings about."""


@dataclass(slots=True)
class _Column:
    """One design's world; `reply` is what it said last, `changes` what the pages have not got yet."""

    design: str
    journal: Journal
    child: ForkedChild
    log: Path
    reply: Reply = field(default_factory=lambda: Reply(at_ns=0))
    changes: list[messages.AnyChange] = field(default_factory=list)

    async def ask(self, asked: Asked) -> None:
        """Raises `WorldEnded`."""
        self.child.write(msgspec.json.encode(asked) + b"\n")
        more = True
        while more:
            line = await anext(self.child.lines, b"")
            if not line:
                raise WorldEnded(f"the process of the simulated world of {self.design} has ended: see {self.log}")
            self.reply = msgspec.json.decode(line, type=Reply)
            self.changes += self.reply.changes
            more = self.reply.more

    async def end(self) -> None:
        self.child.signal(SIGKILL)
        await self.child.ended
        self.child.close()


class Worlds:
    """`open` comes first; `begin` makes the worlds, in the place of those that there are. One call at a time."""

    def __init__(self, plan: Planned, limits: messages.Limits) -> None:
        self._plan = plan
        self._limits = limits
        self._provenance: Mapping[str, object] = {}
        self._fork_server: ForkServer
        self._columns: list[_Column] = []
        self.now_ns = 0  #: since they began

    async def open(self, provenance: Mapping[str, object]) -> None:
        """Start what forks their processes. Raises `EnvironmentFault`."""
        self._provenance = provenance
        self._fork_server = await ForkServer.open(preloaded=(*PRELOADED, _MODULE))

    async def close(self) -> None:
        """End all processes; what they have written stays."""
        await self._end_all()
        await self._fork_server.stop()

    async def begin(self, journals: Mapping[str, Journal]) -> None:
        """Worlds of these designs, in which nothing has happened. What those before have written is removed."""
        await self._end_all()
        await asyncio.to_thread(shutil.rmtree, self._plan.bundle / PLAYGROUND.name, ignore_errors=True)
        self.now_ns = 0
        for design, journal in journals.items():
            log = self._plan.bundle / f"{design}.log"
            self._columns.append(_Column(design, journal, await self._fork_server.spawn(_MODULE, log), log))
        begun = [
            Begin(
                design=column.design,
                parameters=self._plan.parameters.as_json(),
                bundle=str(self._plan.bundle),
                provenance=dict(self._provenance),
                limits=self._limits,
            )
            for column in self._columns
        ]
        await asyncio.gather(*(column.ask(each) for column, each in zip(self._columns, begun, strict=True)))

    async def _end_all(self) -> None:
        columns, self._columns = self._columns, []
        await asyncio.gather(*(column.end() for column in columns))

    # -- how they are --------------------------------------------------------------------------------------------------

    @property
    def journals(self) -> dict[str, Journal]:
        return {column.design: column.journal for column in self._columns}

    @property
    def are_formed(self) -> bool:
        return all(column.reply.is_ready and column.reply.is_formed for column in self._columns)

    @property
    def ended(self) -> str | None:
        """Why one of the runs has failed; '' if all are complete, and None while some go on."""
        ended = [column.reply.ended for column in self._columns]
        failed = next((each for each in ended if each), "")
        return failed if failed or None not in ended else None

    def changes(self) -> list[messages.AnyChange]:
        """What has changed since the last call."""
        found = [change for column in self._columns for change in column.changes]
        for column in self._columns:
            column.changes.clear()
        return found

    # -- what is done with them ----------------------------------------------------------------------------------------

    async def go_on(self, until_ns: int) -> None:
        """Let everything happen that is due by then, with what the journals have for it."""
        while True:
            next_ns = _least(column.journal.next_ns for column in self._columns)
            if next_ns is None or next_ns > until_ns:
                break
            await self._all(GoOn(until_ns=next_ns))
            for column in self._columns:
                while column.journal.next_ns == next_ns:
                    command, column.journal = column.journal.taken()
                    await column.ask(Give(command=command))
                    column.journal = column.journal.answered(is_refused=bool(column.reply.refusal))
        await self._all(GoOn(until_ns=until_ns))

    async def to_event(self) -> str:
        """Go on up to the end of the next millisecond in which one of them has an event; what it says, or ''."""
        last_ns = self.now_ns + _STEP_NS
        told = ""
        while self.now_ns < last_ns and not told and (going := self._going):
            # Alone, a world finds its next event by itself; with others, all go on from one millisecond to the next.
            next_ns = _least(column.reply.next_ns for column in going) if len(going) > 1 else None
            until_ns = last_ns if next_ns is None else min((next_ns // NS_PER_MS + 1) * NS_PER_MS, last_ns)
            await self._all(GoOn(until_ns=until_ns, to_event=True))
            told = "; ".join(f"{column.design}: {event}" for column in going for event in column.reply.events)
        if len(going) > 1:  # one with an event did not go on to the end of the others' time
            await self._all(GoOn(until_ns=self.now_ns))
        return told

    async def give(self, designs: Iterable[str], command: GroupCommand) -> dict[str, Outcome]:
        """Give a command; what it comes to in each of the designs."""
        columns = [column for column in self._columns if column.design in set(designs)]
        for column in columns:
            column.journal = column.journal.added(self.now_ns, command)
        await asyncio.gather(*(column.ask(Give(command=command)) for column in columns))
        last_ns = self.now_ns + _ANSWER_NS
        while self.now_ns < last_ns and not all(column.reply.is_answered for column in columns):
            await self._all(GoOn(until_ns=self.now_ns + NS_PER_MS))
        for column in columns:
            column.journal = column.journal.answered(is_refused=bool(column.reply.refusal))
        return {column.design: Outcome(column.reply.refusal, column.reply.remark) for column in columns}

    async def finish(self) -> None:
        """Have all groups finish, as time goes on."""
        await self._all(Finish())

    @property
    def _going(self) -> list[_Column]:
        return [column for column in self._columns if column.reply.ended is None]

    async def _all(self, asked: Asked) -> None:
        going = self._going
        await asyncio.gather(*(column.ask(asked) for column in going))
        self.now_ns = max((column.reply.at_ns for column in going), default=self.now_ns)


def _least(times: Iterable[int | None]) -> int | None:
    return min((each for each in times if each is not None), default=None)
