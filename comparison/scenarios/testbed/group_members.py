"""The members of a run: their processes, what they tell, and what can be done to them.

A *place* is where a process is deployed (`m1`, `m2`, ...): it keeps its name when the process is restarted. Each
process has a name of its own, the place's with a number from the second one on: `m1`, `m1.2`, `m1.3`.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import TYPE_CHECKING

from comparison.scenarios.processes.children import ChildProcess, ended_within
from comparison.scenarios.processes.gathering import gather_all, gather_or_cancel
from comparison.scenarios.testbed.group_view import GroupView
from kernel.designs import DESIGNS
from kernel.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.scenarios.processes.fork_server import ForkServer
    from comparison.scenarios.testbed.testbed import Testbed

MEMBER_MODULE = "comparison.scenarios.processes.member_process"
#: A group is quiet when nobody rebalances and nothing was heard about ownership for this long: then whatever a
#: change has caused is over, and the next change is not merged with it.
QUIET_MS = 300


class GroupMembers:
    """Processes at the places `m1`, `m2`, ...; several members in each where the scenario says so."""

    def __init__(self, testbed: Testbed, fork_server: ForkServer, processes: int) -> None:
        self._fork_server = fork_server
        self._testbed = testbed
        self._request = testbed.request
        self._tracer = testbed.tracer
        self.view = GroupView(testbed.partitions)
        self.places = [f"m{number}" for number in range(1, processes + 1)]
        self._living = {place: place for place in self.places}  #: place -> the process that is there now
        self._lives = Counter(self.places)
        self._settings: dict[str, Mapping[str, str]] = {}  #: place -> over the design's own
        self._topics = {place: self._first_topics(number) for number, place in enumerate(self.places, start=1)}
        self._children: dict[str, ChildProcess] = {}
        self._configured: set[str] = set()
        self._gone: set[str] = set()
        self.joined = 0  #: members asked to join so far, those that left since among them
        self.present = 0
        self.random = random.Random(self._request.parameters.seed)  # reproducible, not secret
        #: Whom a split-brain run cuts off, chosen before anybody starts: it knows other servers than the rest.
        self.victim = self.random.choice(self.places) if self._request.split_brain else ""

    def _first_topics(self, place: int) -> tuple[str, ...]:
        names = self._request.parameters.topic_names
        numbers = self._request.scenario.first_topics.get(place, tuple(range(len(names))))
        return tuple(names[number] for number in numbers)

    async def warm_up(self) -> None:
        """Start the processes; they load their code and wait. Joining then takes no longer than it must."""
        await gather_or_cancel(*(self._spawn(name) for name in self.places))

    async def _spawn(self, name: str) -> None:
        log = self._request.run_dir / f"{name}.log"
        child = await ChildProcess.spawn(self._fork_server, MEMBER_MODULE, name, log, self.view.apply)
        self._children[name] = child
        self._tracer.emit("process_started", target=name, child_pid=child.pid)

    def join(self, count: int, settings: Mapping[str, str] | None = None) -> None:
        """Let `count` more members join, all at once; `settings` go over the design's own."""
        for _ in range(count):
            place = self.places[self.joined % len(self.places)]
            if settings:
                self._settings[place] = settings
            self._join(place)
            self.joined += 1

    def _join(self, place: str) -> None:
        name = self._living[place]
        if name not in self._configured:
            self.view.subscribed[name] = frozenset(self._topics[place])
            self._children[name].send(self._configuration(place, name))
            self._configured.add(name)
        self._children[name].send({"command": "join"})
        self.present += 1

    def _configuration(self, place: str, name: str) -> dict[str, object]:
        return {
            **self._request.identity(name),
            "place": place,
            "group": self._testbed.group,
            "topics": self._streams_of(place),
            "zookeeper": self._testbed.zookeeper.connect_for_member(victim=place == self.victim),
            "bootstrap": self._testbed.bootstrap,
            "settings": {**self._request.configuration.member, **self._settings.get(place, {})},
            "members": 0,
        }

    def _streams_of(self, place: str) -> dict[str, int]:
        return dict.fromkeys(self._topics[place], self._request.parameters.streams)

    def choose_owner(self) -> str:
        """A process that owns something, by the seed; not the one whose memory is what a design lives by."""
        spared = {self.view.decider} if DESIGNS[self._request.design].delays_reassignment else set()
        owning = [name for name in self.view.owning_processes() if name not in self._gone | spared]
        assert owning, "nobody owns anything"
        return self.random.choice(owning)

    def child(self, name: str) -> ChildProcess:
        return self._children[name]

    def process_at(self, place: str) -> str:
        """The name of the process that is at a place now."""
        return self._living[place]

    def commit(self) -> None:
        """Ask everybody to commit what was handed out."""
        for each in sorted(self._configured - self._gone):
            self._children[each].send({"command": "commit"})

    def commit_remembered(self, name: str) -> None:
        """Ask one process to commit what its application remembers, whoever owns it by now."""
        self._children[name].send({"command": "commit", "remembered": True})

    def slow_down(self, name: str) -> None:
        """One process polls no more."""
        self._children[name].send({"command": "pause_consumption"})

    def speed_up(self, name: str) -> None:
        """It polls again."""
        self._children[name].send({"command": "resume"})

    def subscribe(self, place: str, topics: Sequence[str]) -> None:
        """The members at a place change over to these topics while they run."""
        name = self._living[place]
        self._topics[place] = tuple(topics)
        self.view.subscribed[name] = frozenset(topics)
        self._children[name].send({"command": "subscribe", "topics": self._streams_of(place)})

    async def kill(self, name: str) -> None:
        self._forget(name)
        code = await self._children[name].kill()
        self._tracer.emit("process_ended", target=name, how="kill", code=code)

    def leave(self, name: str) -> None:
        """Ask a process to leave; it ends by itself."""
        self._forget(name)
        self._children[name].send({"command": "leave"})

    async def go(self, place: str, timeout_s: float) -> None:
        """The process at a place leaves and has ended. Raises `WaitTimeout` when it does not end."""
        name = self._living[place]
        self.leave(name)
        code = await ended_within(self._children[name], timeout_s)
        self._tracer.emit("process_ended", target=name, how="leave", code=code)

    async def come_back(
        self, place: str, settings: Mapping[str, str] | None = None, topics: Sequence[str] | None = None
    ) -> None:
        """A new process at a place whose last one has ended, as one member; other settings or topics from now on."""
        assert self._living[place] in self._gone, "somebody is there"
        name = self.next_at(place)
        self._lives[place] += 1
        self._living[place] = name
        if settings:
            self._settings[place] = settings
        if topics:
            self._topics[place] = tuple(topics)
        await self._spawn(name)
        self._join(place)

    def next_at(self, place: str) -> str:
        """The name that the next process at a place will have."""
        return f"{place}.{self._lives[place] + 1}"

    def _forget(self, name: str) -> None:
        self._gone.add(name)
        self.view.leave_out(name)
        self.present -= 1

    def check(self) -> None:
        """Raise when a member's process has ended that was not to."""
        for name in self._configured - self._gone:
            if self._children[name].returncode is not None:
                raise self._children[name].failure("being a member")
        self._testbed.check()

    async def until_settled(self, timeout_s: float, *, without: str = "") -> None:
        """Every partition is owned once, by as many members as can. `without`: one that does not count now."""
        present = self.present - bool(without)
        streams = self._request.parameters.streams
        # Streams are threads of one member in some designs, and memberships of their own elsewhere.
        memberships = present * (1 if DESIGNS[self._request.design].streams_are_threads else streams)

        def settled() -> bool:
            self.check()
            return self.view.settled(present * streams, memberships)

        await until(settled, timeout_s, lambda: f"the group to settle ({self.view.summary()})")

    async def until_quiet(self, timeout_s: float) -> None:
        """Nobody rebalances, and nothing has happened for a while."""

        def quiet() -> bool:
            self.check()
            return self.view.quiet(time.monotonic_ns(), QUIET_MS)

        await until(quiet, timeout_s, lambda: f"the group to be quiet ({self.view.summary()})")

    async def stop(self, *, at_once: bool = False) -> None:
        """Tell every member to leave and kill those that do not, or kill them all `at_once`."""
        await gather_all(*(self._stop(name, child, at_once=at_once) for name, child in self._children.items()))

    async def _stop(self, name: str, child: ChildProcess, *, at_once: bool) -> None:
        ended_before = child.returncode is not None
        code = await child.stop(at_once=at_once)
        if name not in self._gone:
            self._tracer.emit("process_ended", target=name, how="itself" if ended_before else "stop", code=code)
        elif not ended_before:
            self._tracer.emit("process_ended", target=name, how="leave", code=code)


def processes_needed(members: int, members_per_process: int) -> int:
    return -(-members // members_per_process)
