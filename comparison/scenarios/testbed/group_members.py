"""The members of a run: their processes and events, and the commands and faults that reach them.

A *place* is where a process is deployed (`m1`, `m2`, ...). A restarted process keeps its place. Each process has its
own name: the place's, with a number from the second process on (`m1`, `m1.2`, `m1.3`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.processes.children import ended_within
from comparison.scenarios.processes.gathering import gather_all, gather_or_cancel
from comparison.scenarios.processes.lines import REFUSED, WAITING
from comparison.scenarios.testbed.group_view import QUIET_MS, memberships_each, view_of
from comparison.scenarios.testbed.places import Subscriptions, chosen_victim
from kernel.designs import DESIGNS
from kernel.errors import RebalanceLabError
from kernel.trace.events import Role
from kernel.waiting import WaitTimeout, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from comparison.scenarios.processes.children import ChildProcess
    from comparison.scenarios.testbed.testbed import Testbed

MEMBER_MODULE = "comparison.scenarios.processes.member_process"


class NobodyThere(RebalanceLabError):
    """A step is about a member that there is not: the run has failed."""


class NeverJoins(WaitTimeout):
    """A member could not start, or the group has refused all of them: waiting is over at once."""


class GroupMembers:
    """Processes at the places `m1`, `m2`, ..., with one or several members each."""

    def __init__(self, testbed: Testbed, processes: int) -> None:
        self._testbed = testbed
        self._request = testbed.request
        self._tracer = testbed.tracer
        self._now_ns = testbed.runtime.clock.monotonic_ns
        self._memberships_each = memberships_each(self._request)
        self.view = view_of(self._request, testbed.partitions)
        self.places = [f"m{number}" for number in range(1, processes + 1)]
        self._living = {place: place for place in self.places}  #: place -> its current process
        self._lives = Counter(self.places)
        self._posing = dict[str, str]()  #: place -> the place whose group.instance.id its process has
        self._designs = dict[str, str]()  #: place -> the design of its members, if it is not the run's
        self._per_record_ms = 0  #: that every application spends on a record
        self._settings: dict[str, Mapping[str, str]] = {}  #: place -> settings over the design's own
        self.subscriptions = Subscriptions(self._request, self.places)
        self._children: dict[str, ChildProcess] = {}
        self._configured: set[str] = set()
        self._gone: set[str] = set()
        #: Called when a member that is stepped waits before a ZooKeeper operation, and when it no longer does.
        self.on_waiting: Callable[[Mapping[str, object]], None] = lambda _: None
        self.joined = 0  #: members started so far, including those that have left
        self.present = 0
        self.random = Random(self._request.parameters.seed)  # reproducible, not secret
        #: The place to cut off in a split-brain run, where a member is by then: it connects to other servers.
        self.victim = chosen_victim(self._request, self.places, self.random)

    async def warm_up(self) -> None:
        """Start the processes in advance, so that joining does not include the time for starting them."""
        await gather_or_cancel(*(self._spawn(name) for name in self.places))

    async def _spawn(self, name: str) -> None:
        self._children[name] = await self._testbed.spawn(MEMBER_MODULE, name, self._heard)

    def _heard(self, event: Mapping[str, object]) -> None:
        if event.get("kind") == WAITING:
            self.on_waiting(event)
            return
        self.view.apply(event)
        if event.get("kind") == REFUSED:
            self.present -= 1
            if self._request.scenario.members_per_process == 1:
                self.view.leave_out(str(event["process"]))

    def join(self, count: int, settings: Mapping[str, str] | None = None, design: str = "") -> None:
        """Let `count` more members join at once, with `settings` over the design's own, and of another design."""
        places = self.next_places(count)
        if settings:
            self._settings |= dict.fromkeys(places, settings)
        if design:
            self._designs |= dict.fromkeys(places, design)
        self.join_at(places)

    async def join_spread(
        self, count: int, spread_ms: int, settings: Mapping[str, str] | None = None, design: str = ""
    ) -> None:
        """As `join`, each after a part of `spread_ms` that is drawn from the seed; without it all at once."""
        if not spread_ms:
            self.join(count, settings, design)
            return
        waited_s = 0.0
        for after_s in sorted(self.random.random() * spread_ms / 1000 for _ in range(count)):
            await asyncio.sleep(after_s - waited_s)
            waited_s = after_s
            self.join(1, settings, design)

    def next_places(self, count: int) -> list[str]:
        """Where the next members join."""
        return [self.places[number % len(self.places)] for number in range(self.joined, self.joined + count)]

    async def add(self, count: int, settings: Mapping[str, str] | None = None, *, posing_as: str = "") -> list[str]:
        """Let `count` more members join at once, at new places with a process each; the names of the places.

        `settings` are over the design's own; `posing_as` is a place whose group.instance.id they have.
        """
        first = len(self.places) + 1
        added = [f"m{number}" for number in range(first, first + count)]
        self.places += added
        for number, place in enumerate(added, start=first):
            self._living[place] = place
            self._lives[place] = 1
            self.subscriptions.begin(place, number)
            if settings:
                self._settings[place] = settings
            if posing_as:
                self._posing[place] = posing_as
        await gather_or_cancel(*(self._spawn(place) for place in added))
        self.join_at(added)
        return added

    def join_at(self, places: Sequence[str]) -> None:
        """Let a member join at each of these places, at once."""
        self._list_traces(places)
        for place in places:
            self._join(place)
            self.joined += 1

    def _list_traces(self, places: Iterable[str]) -> None:
        """List the trace files of processes that are not configured yet: all at once, so that nobody joins later."""
        names = dict.fromkeys(self._living[place] for place in places)
        if new := [name for name in names if name not in self._configured]:
            self._testbed.record.add_traces(Role.MEMBER, new)

    def _join(self, place: str) -> None:
        name = self._living[place]
        if name not in self._configured:
            self.view.subscribe(name, self.subscriptions.names(place))
            self._children[name].send(self._configuration(place, name))
            self._configured.add(name)
            if self._per_record_ms:
                self.delay(name, self._per_record_ms)
        self._children[name].send({"command": "join"})
        self.present += 1

    def _configuration(self, place: str, name: str) -> dict[str, object]:
        return {
            **self._request.identity(name),
            "place": self._posing.get(place, place),
            "named": self._request.scenario.named_members,
            "group": self._testbed.group,
            **self.subscriptions.of(place),
            "zookeeper": self._testbed.zookeeper.connect_for_member(victim=place == self.victim),
            "bootstrap": self._testbed.bootstrap,
            "settings": {**self._own_settings(place), **self._settings.get(place, {})},
            "consumer": self._designs.get(place, ""),
            "members": 0,
        }

    def _own_settings(self, place: str) -> Mapping[str, str]:
        """The settings that the design of a place's members has."""
        design = self._designs.get(place)
        return (configuration(design, self._request.parameters) if design else self._request.configuration).member

    def choose_owner(self) -> str:
        """A random process that owns partitions; in delayed not the leader, since losing it would end the delay."""
        spared = {self.view.decider} if DESIGNS[self._request.design].delays_reassignment else set()
        owning = [name for name in self.view.owning_processes() if name not in self._gone | spared]
        if not owning:
            raise NobodyThere(f"no member that owns a partition can be chosen ({self.view.summary()})")
        return self.random.choice(owning)

    def child(self, name: str) -> ChildProcess:
        return self._children[name]

    def place_of(self, name: str) -> str:
        """The place of a process."""
        return name.partition(".")[0]

    @property
    def present_places(self) -> list[str]:
        return [place for place in self.places if self._living[place] in self._configured - self._gone]

    @property
    def refused_places(self) -> list[str]:
        """Where the group has refused the process that is there."""
        return [place for place in self.present_places if self._living[place] in self.view.refused]

    def process_at(self, place: str) -> str:
        """The name of the current process at a place."""
        return self._living[place]

    def commit(self) -> None:
        """Have all members commit what was delivered to them."""
        for each in sorted(self._configured - self._gone):
            self._children[each].send({"command": "commit"})

    def commit_remembered(self, name: str) -> None:
        """Have one process commit the positions that its application remembers, whether it still owns them or not."""
        self._children[name].send({"command": "commit", "remembered": True})

    def slow_down(self, name: str) -> None:
        """Stop polling in one process. It is in `view.stopped_polling` once its last polls have returned."""
        self._children[name].send({"command": "pause_consumption"})

    def speed_up(self, name: str) -> None:
        """Resume polling."""
        self.view.stopped_polling.discard(name)
        self._children[name].send({"command": "resume"})

    def delay(self, name: str, per_record_ms: int) -> None:
        """Have one process spend so long on each record."""
        self._children[name].send({"command": "delay", "per_record_ms": per_record_ms})

    def fail_listener(self, name: str, callback: str) -> None:
        """Have one process's listener raise in its next call of this kind (`any`: of all), once; '' for not."""
        self._children[name].send({"command": "trouble_listener", "callback": callback, "raises": True})

    def delay_all(self, per_record_ms: int) -> None:
        """Have every process spend so long on each record, also those that are started later."""
        self._per_record_ms = per_record_ms
        for name in sorted(self._configured - self._gone):
            self.delay(name, per_record_ms)

    def present_processes(self) -> list[str]:
        """The processes that have joined and not gone, the oldest first."""
        return [name for name in self._children if name in self._configured - self._gone]

    def step(self, name: str, *, on: bool) -> None:
        """Have one process wait before each ZooKeeper operation, or no longer."""
        self._children[name].send({"command": "step", "on": on})

    def let_go(self, name: str) -> None:
        """Let a process that is stepped perform one operation."""
        self._children[name].send({"command": "let_go"})

    def subscribe(self, place: str, topics: Sequence[str] = (), pattern: str = "") -> None:
        """Change the topics of the running members at a place, or their pattern."""
        name = self._living[place]
        self.subscriptions.change(place, topics, pattern)
        self.view.subscribe(name, self.subscriptions.names(place))
        self._children[name].send({"command": "subscribe", **self.subscriptions.of(place)})

    def unsubscribe(self, name: str) -> None:
        """Have the members of a process unsubscribe, or shut down in a design in which they cannot."""
        self.view.leave_out(name)
        self.present -= 1
        self._children[name].send({"command": "unsubscribe"})

    def subscribe_again(self, name: str) -> None:
        """Have the members of a process that have unsubscribed come back."""
        self.view.take_back(name)
        self.present += 1
        self._children[name].send({"command": "subscribe_again"})

    def has_joined(self, place: str) -> bool:
        """Whether a process at this place was asked to join and was neither killed nor asked to leave."""
        name = self._living.get(place, "")
        return name in self._configured and name not in self._gone

    def is_gone(self, name: str) -> bool:
        """Whether a process was killed or left."""
        return name in self._gone

    def lose(self, name: str) -> None:
        """Do without a process that has ended by itself."""
        self._forget(name)
        self._tracer.emit("process_ended", target=name, how="itself", code=self._children[name].returncode)

    async def kill(self, name: str) -> None:
        self._forget(name)
        self._tracer.emit("process_ended", target=name, how="kill", code=await self._children[name].kill())
        self._testbed.record.killed(name)

    def leave(self, name: str) -> None:
        """Command a process to leave the group and exit. Raises `NobodyThere` if it is frozen: it would not hear it."""
        if self._children[name].frozen:
            raise NobodyThere(f"{name} is frozen, so it cannot leave. Heal it first")
        self._forget(name)
        self._children[name].send({"command": "leave"})

    async def go(self, place: str, timeout_s: float) -> None:
        """Have the process at a place leave, and wait for its end. Raises `WaitTimeout`, and as `leave`."""
        name = self._living[place]
        self.leave(name)
        code = await ended_within(self._children[name], timeout_s)
        self._tracer.emit("process_ended", target=name, how="leave", code=code)

    async def come_back(
        self,
        place: str,
        settings: Mapping[str, str] | None = None,
        topics: Sequence[str] | None = None,
        design: str = "",
        pattern: str = "",
    ) -> None:
        """Start a process with one member at a free place, optionally with other settings, subscription or design."""
        if self._living[place] not in self._gone:
            raise NobodyThere(f"nobody has left {place}, so nobody can come back to it")
        name = self.next_at(place)
        self._lives[place] += 1
        self._living[place] = name
        if settings:
            self._settings[place] = settings
        self.subscriptions.change(place, topics or (), pattern)
        if design:
            self._designs[place] = design
        self._list_traces([place])
        await self._spawn(name)
        self._join(place)

    def next_at(self, place: str) -> str:
        """The name of the next process at a place."""
        return f"{place}.{self._lives[place] + 1}"

    def _forget(self, name: str) -> None:
        self._gone.add(name)
        self.view.leave_out(name)
        self.present -= name not in self.view.refused

    def check(self) -> None:
        """Raise if a member's process has ended unexpectedly."""
        for name in self._configured - self._gone:
            if self._children[name].returncode is not None:
                raise self._children[name].failure("running")
        self._testbed.check()

    def check_joining(self, *, without: str = "") -> None:
        """As `check`, for waits in which every member has to take part. Raises `NeverJoins`."""
        self.check()
        for name in self.view.never_joining.keys() - self._gone - {without}:
            raise NeverJoins(f"{name} could not join: {self.view.never_joining[name]}")
        if not self.present and self.refused_places:
            raise NeverJoins(f"the group has refused all of its members ({self.view.summary()})")

    async def until_settled(self, timeout_s: float, *, without: str = "", quiet_ms: int = 0) -> None:
        """Wait until each partition has one owner and all members have joined, not counting `without`.

        With `quiet_ms`, that has to be so when the group has been quiet for so long, from now on.
        """
        begun_ns = self._now_ns()

        def settled() -> bool:
            self.check_joining(without=without)
            present = self.present - bool(without)  # without those that have been refused meanwhile
            units, memberships = present * self._request.parameters.streams, present * self._memberships_each
            now_ns = self._now_ns()
            rests = not quiet_ms or self.view.quiet(now_ns, quiet_ms, begun_ns)
            return rests and self.view.settled(units, memberships, now_ns)

        await until(settled, timeout_s, lambda: f"the group to settle ({self._summary()})")

    def _summary(self) -> str:
        frozen = [f"{name} is frozen" for name in self.present_processes() if self._children[name].frozen]
        return "; ".join([*frozen, self.view.summary()])

    async def until_all_rebalance(self, begun: Mapping[str, int], timeout_s: float) -> None:
        """Wait until every process that is still present has begun more rebalances than `begun` says."""

        def unaware() -> list[str]:
            self.check()
            now = self.view.begun()
            return [process for process, before in begun.items() if now.get(process, before + 1) <= before]

        await until(lambda: not unaware(), timeout_s, lambda: f"{', '.join(unaware())} to rebalance")

    async def until_quiet(self, timeout_s: float) -> None:
        """Wait until no member rebalances and nothing has happened for a while."""

        def quiet() -> bool:
            self.check()
            return self.view.quiet(self._now_ns(), QUIET_MS)

        await until(quiet, timeout_s, lambda: f"the group to be quiet ({self._summary()})")

    async def stop(self, *, at_once: bool = False) -> None:
        """Stop every member, killing those that do not end; `at_once` kills them all."""
        await gather_all(*(self._stop(name, child, at_once=at_once) for name, child in self._children.items()))

    async def _stop(self, name: str, child: ChildProcess, *, at_once: bool) -> None:
        ended_before, has_left = child.returncode is not None, name in self._gone
        code = await child.stop(at_once=at_once)
        if not (ended_before and has_left):
            how = "itself" if ended_before else "leave" if has_left else "stop"
            self._tracer.emit("process_ended", target=name, how=how, code=code)
