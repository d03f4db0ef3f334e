"""The server design's machine under a manual clock; ZooKeeper and the log are dicts.

`ask("a")` sends the AwaitCommand of member a, which has obeyed its commands so far: a `Player` remembers what it runs.
The machine sees changes in ZooKeeper at once, unless `blind` is set.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from coordinator.groups.answers import CommitAnswer
from coordinator.groups.effects import (
    Decide,
    Effects,
    ForgetIds,
    Moment,
    ReadAgain,
    SetTimer,
    TimerKey,
    TraceEvent,
    WatchIds,
    Write,
)
from coordinator.groups.errors import Error
from coordinator.groups.limits import Limits
from coordinator.groups.machine import Machine
from coordinator.groups.records import OffsetRecord, ServerKey, ServerRecord
from coordinator.groups.requests import Request
from coordinator.groups.server.group import AssignmentSettings
from coordinator.groups.server.requests import Await, OwnedCommit
from coordinator.groups.server.rounds import next_generation
from coordinator.protocol.server.commands import AwaitCommand, Command, CommandAnswer, CommitOwned, OwnedOffset
from coordinator.service.record_codec import decode_all, encode
from kernel.assignors.registry import ASSIGNORS
from kernel.assignors.subscription import Assignor
from kernel.errors import RebalanceLabError

GROUP = "g"
WALL_MS = 1_700_000_000_000
REBALANCE_TIMEOUT_MS = 1_000


@dataclass
class Question:
    """A pending request; `answer` is None until it is answered."""

    answer: Any = None

    @property
    def received(self) -> tuple[str, int, tuple[str, ...]]:
        """(command, generation, partitions as t-0) of an AwaitCommand, or its error's name."""
        answer: CommandAnswer = self.answer
        assert answer is not None, "the request is still parked"
        partitions = tuple(f"{topic}-{number}" for topic, number, _ in answer.partitions)
        return (answer.error.name if answer.error else answer.command.name, answer.generation, partitions)


@dataclass
class Player:
    """A member that obeys: it runs the partitions of a START until a STOP."""

    generation: int = -1
    stopped: int = -1
    owned: tuple[tuple[str, int], ...] = ()
    question: Question | None = None

    @property
    def runs(self) -> bool:
        return self.generation not in (-1, self.stopped)

    def obey(self) -> Command | None:
        """Carry out the command in the answer, if any, and return it."""
        if self.question is None or self.question.answer is None:
            return None
        answer: CommandAnswer = self.question.answer
        self.question = None
        if answer.command is Command.START:
            self.generation, self.stopped = answer.generation, -1
            self.owned = tuple((part.topic, part.partition) for part in answer.partitions)
        elif answer.command is Command.STOP:
            self.stopped, self.owned = self.generation, ()
        elif answer.error.name == "ILLEGAL_GENERATION":
            self.generation, self.stopped, self.owned = -1, -1, ()
        return answer.command


@dataclass
class Served:
    """One machine with one group, and all effects so far; `reload` replaces it by a successor."""

    sizes: dict[str, int] = field(default_factory=lambda: {"t": 4})
    strategy: str = "range"
    assign: Assignor | None = None
    now_ms: int = 0
    ids: dict[str, tuple[str, ...]] = field(default_factory=dict)
    players: dict[str, Player] = field(default_factory=dict)
    log: dict[bytes, bytes] = field(default_factory=dict)
    events: list[TraceEvent] = field(default_factory=list)
    watches: list[Any] = field(default_factory=list)
    blind: bool = False
    holding: bool = False
    thinking: bool = False  #: the strategy returns only when `decide` is called

    def __post_init__(self) -> None:
        self._tokens = itertools.count(1)
        self._start()

    def _start(self) -> None:
        self.settings = AssignmentSettings(
            self.strategy, self.assign or ASSIGNORS[self.strategy], frozenset(ASSIGNORS), REBALANCE_TIMEOUT_MS
        )
        self.machine = Machine(
            Limits(offset_metadata_bytes_max=8), self.settings, lambda topic: self.sizes.get(topic, 0)
        )
        self.questions: dict[int, Question] = {}
        self.writes: deque[Write] = deque()
        self.deciding: deque[Decide] = deque()
        self.timers: dict[TimerKey, int] = {}
        self.watched: set[str] = set()
        self.holding = False

    # -- members and administrators --------------------------------------------------------------------------------

    def player(self, member_id: str) -> Player:
        return self.players.setdefault(member_id, Player())

    def register(self, *member_ids: str, topics: tuple[str, ...] = ("t",)) -> None:
        self.ids |= dict.fromkeys(member_ids, tuple(sorted(topics)))
        self.see()

    def unregister(self, *member_ids: str) -> None:
        for member_id in member_ids:
            del self.ids[member_id]
        self.see()

    def ask(self, member_id: str, *, wait_ms: int = 60_000, **fields: Any) -> Question:
        """Send a member's AwaitCommand, with what it runs unless `fields` override that."""
        player = self.player(member_id)
        asked = {
            "generation": player.generation,
            "stopped": player.stopped,
            "topics": self.ids.get(member_id, ("t",)),
            **fields,
        }
        command = AwaitCommand(group_id=GROUP, member_id=member_id, wait_ms=wait_ms, **asked)
        player.question = self.request(
            lambda token: Await(token=token, asked=command, client_id="c", client_host="/127.0.0.1")
        )
        return player.question

    def obey(self, member_id: str) -> Question:
        """Carry out the member's last command, and send the next AwaitCommand."""
        self.player(member_id).obey()
        return self.ask(member_id)

    def settle(self, *member_ids: str) -> None:
        """Let these members obey until all their requests wait."""
        for member_id in member_ids:
            if self.player(member_id).question is None:
                self.ask(member_id)
        while answered := [m for m in member_ids if self.player(m).question.answer is not None]:  # type: ignore[union-attr]
            for member_id in answered:
                self.obey(member_id)

    def commit(self, member_id: str, offsets: dict[str, int], *, generation: int | None = None) -> Question:
        """`offsets` is {"t-0": 5}."""
        named = tuple(OwnedOffset(tp[:-2], int(tp[-1]), offset) for tp, offset in offsets.items())
        of = self.player(member_id).generation if generation is None else generation
        commit = CommitOwned(group_id=GROUP, member_id=member_id, generation=of, offsets=named)
        return self.request(lambda token: OwnedCommit(token=token, commit=commit))

    def errors(self, question: Question) -> dict[str, str]:
        """{"t-0": error} of a commit."""
        answer: CommitAnswer = question.answer
        return {f"{topic}-{number}": error.name for topic, number, error in answer.partitions}

    def request(self, make: Callable[[int], Request | Await | OwnedCommit]) -> Question:
        token = next(self._tokens)
        question = self.questions[token] = Question()
        self._perform(self.machine.handle(make(token), self.now))
        return question

    # -- environment ------------------------------------------------------------------------------------------------

    @property
    def now(self) -> Moment:
        return Moment(self.now_ms, WALL_MS + self.now_ms)

    def see(self) -> None:
        """Fire the watch, and report the ids."""
        if GROUP in self.watched and not self.blind:
            self._perform(self.machine.step(partial(self.machine.server.seen, GROUP, dict(self.ids)), self.now))

    def grow(self, topic: str, size: int) -> None:
        self.sizes[topic] = size
        self._perform(self.machine.step(self.machine.server.topics_changed, self.now))

    def pass_ms(self, ms: int) -> None:
        """Advance the clock; due timers fire in order."""
        end = self.now_ms + ms
        while due := sorted((at, key) for key, at in self.timers.items() if at <= end and key.group_id):
            at, key = due[0]
            self.now_ms = max(self.now_ms, at)
            del self.timers[key]
            self._perform(self.machine.timer_fired(key, self.now))
        self.now_ms = end

    def write_all(self, error: Error | None = None) -> None:
        """Store the writes held back, or refuse them with `error`."""
        self.holding = True  # later writes are queued behind those held back
        for _ in range(len(self.writes)):
            self._write(self.writes.popleft(), error)
        self.holding = False
        while self.writes:
            self._write(self.writes.popleft(), None)

    def reload(self, *, strategy: str | None = None) -> None:
        """Replace the coordinator, which loses everything it did not write, by one that loads the log."""
        self.strategy = strategy or self.strategy
        for player in self.players.values():
            player.obey()
            player.question = None
        self._start()
        for change in decode_all(self.log.items()):
            self.machine.apply(change)
        for event in self.machine.wake():
            self._perform(self.machine.step(event, self.now))

    def unload(self) -> None:
        self._perform(self.machine.unload(self.now))

    @property
    def record(self) -> ServerRecord:
        """The group as stored."""
        stored = dict(decode_all(self.log.items()))
        record = stored[ServerKey(GROUP)]
        assert isinstance(record, ServerRecord)
        return record

    @property
    def state(self) -> str:
        return self.machine.describe(GROUP).state.value

    def committed(self) -> dict[str, int]:
        found = self.machine.offsets.fetch(GROUP, None)
        return {f"{topic}-{n}": record.offset for topic, n, record in found if isinstance(record, OffsetRecord)}

    def traced(self, kind: str, *fields: str) -> list[tuple[object, ...]]:
        return [tuple(event.fields[name] for name in fields) for event in self.events if event.kind == kind]

    def _perform(self, outcome: Effects) -> None:
        for timer in outcome.timers:
            if isinstance(timer, SetTimer):
                self.timers[timer.key] = timer.at_ms
            else:
                self.timers.pop(timer.key, None)
        self.events += outcome.events
        for token, answer in outcome.replies:
            self.questions.pop(token).answer = answer
        assert not outcome.abandoned, "every request of this design is answered"
        self.writes += outcome.writes
        while self.writes and not self.holding:
            self._write(self.writes.popleft(), None)
        for watch in outcome.watches:
            self._watch(watch)
        self.deciding += outcome.decisions
        while self.deciding and not self.thinking:
            self.decide()

    def decide(self) -> None:
        """Let the strategy return, or fail, for the first pending decision."""
        asked = self.deciding.popleft()
        try:
            record = next_generation(asked, self.settings)
        except RebalanceLabError:
            record = None
        self._perform(self.machine.step(partial(self.machine.server.decided, asked, record), self.now))

    def _watch(self, watch: Any) -> None:
        self.watches.append(watch)
        match watch:
            case WatchIds():
                assert watch.group_id not in self.watched
                self.watched.add(watch.group_id)
                self.see()
            case ReadAgain():
                self.see()
            case ForgetIds():
                self.watched.remove(watch.group_id)

    def _write(self, write: Write, error: Error | None) -> None:
        if error is None:
            for change in write.changes:
                key, value = encode(change)
                self.log.pop(key, None)
                if value is not None:
                    self.log[key] = value
        if error is None:
            self._perform(self.machine.step(write.stored, self.now))
        else:
            self._perform(self.machine.step(partial(write.not_stored, error), self.now))
