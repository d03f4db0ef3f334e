"""The members of a run: their processes, what they tell, and what can be done to them."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from comparison.scenarios.group_view import GroupView
from comparison.scenarios.processes import ChildProcess
from comparison.scenarios.together import all_ended, together
from kernel.waiting import until

if TYPE_CHECKING:
    from comparison.scenarios.nursery import Nursery
    from comparison.scenarios.testbed import Testbed

MEMBER_MODULE = "comparison.scenarios.member_process"
#: A group is quiet when nobody rebalances and nothing was heard about ownership for this long: then whatever a
#: change has caused is over, and the next change is not merged with it.
QUIET_MS = 300


class GroupMembers:
    """Processes `m1`, `m2`, ...; several members in each where the scenario says so."""

    def __init__(self, testbed: Testbed, nursery: Nursery, processes: int) -> None:
        self._nursery = nursery
        self._testbed = testbed
        self._request = testbed.request
        self._tracer = testbed.tracer
        self.view = GroupView(testbed.partitions)
        self._names = [f"m{number}" for number in range(1, processes + 1)]
        self._children: dict[str, ChildProcess] = {}
        self._configured: set[str] = set()
        self._gone: set[str] = set()
        self.joined = 0  #: members asked to join so far, those that left since among them
        self.present = 0
        self.random = random.Random(self._request.parameters.seed)  # reproducible, not secret
        #: Whom a split-brain run cuts off, chosen before anybody starts: it knows other servers than the rest.
        self.victim = self.random.choice(self._names) if self._request.split_brain else ""

    async def warm_up(self) -> None:
        """Start the processes; they load their code and wait. Joining then takes no longer than it must."""
        await together(*(self._spawn(name) for name in self._names))

    async def _spawn(self, name: str) -> None:
        log = self._request.run_dir / f"{name}.log"
        child = await ChildProcess.spawn(self._nursery, MEMBER_MODULE, name, log, self.view.apply)
        self._children[name] = child
        self._tracer.emit("process_started", target=name, child_pid=child.pid)

    def join(self, count: int) -> None:
        """Let `count` more members join, all at once."""
        for _ in range(count):
            name = self._names[self.joined % len(self._names)]
            if name not in self._configured:
                self._children[name].send(self._configuration(name))
                self._configured.add(name)
            self._children[name].send({"command": "join"})
            self.joined += 1
            self.present += 1

    def _configuration(self, name: str) -> dict[str, object]:
        parameters = self._request.parameters
        return {
            **self._request.identity(name),
            "group": self._testbed.group,
            "topics": dict.fromkeys(parameters.topic_names, parameters.streams),
            "zookeeper": self._testbed.zookeeper.connect_for_member(victim=name == self.victim),
            "bootstrap": self._testbed.bootstrap,
            "settings": dict(self._request.configuration.member),
            "members": 0,
        }

    def choose_owner(self) -> str:
        """A process that owns something, by the seed."""
        owning = [name for name in self.view.owning_processes() if name not in self._gone]
        assert owning, "nobody owns anything"
        return self.random.choice(owning)

    def child(self, name: str) -> ChildProcess:
        return self._children[name]

    def commit(self) -> None:
        """Ask everybody to commit what was handed out."""
        for each in sorted(self._configured - self._gone):
            self._children[each].send({"command": "commit"})

    def commit_remembered(self, name: str) -> None:
        """Ask one process to commit what its application remembers, whoever owns it by now."""
        self._children[name].send({"command": "commit", "remembered": True})

    async def kill(self, name: str) -> None:
        self._forget(name)
        code = await self._children[name].kill()
        self._tracer.emit("process_ended", target=name, how="kill", code=code)

    def leave(self, name: str) -> None:
        """Ask a process to leave; it ends by itself."""
        self._forget(name)
        self._children[name].send({"command": "leave"})

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
        # Streams are threads of one member in zookeeper, and memberships of their own elsewhere.
        memberships = present * (1 if self._request.design == "zookeeper" else streams)

        def settled() -> bool:
            self.check()
            return self.view.settled(present * streams, memberships)

        await until(settled, timeout_s, lambda: f"the group is settled ({self.view.told()})")

    async def until_quiet(self, timeout_s: float) -> None:
        """Nobody rebalances, and nothing has happened for a while."""

        def quiet() -> bool:
            self.check()
            return self.view.quiet(time.monotonic_ns(), QUIET_MS)

        await until(quiet, timeout_s, lambda: f"the group is quiet ({self.view.told()})")

    async def stop(self) -> None:
        """Let everybody leave at once; whoever does not is killed. Also ends those that were never told anything."""
        await all_ended(*(self._stop(name, child) for name, child in self._children.items()))

    async def _stop(self, name: str, child: ChildProcess) -> None:
        ended_before = child.returncode is not None
        code = await child.stop()
        if name not in self._gone:
            self._tracer.emit("process_ended", target=name, how="itself" if ended_before else "stop", code=code)
        elif not ended_before:
            self._tracer.emit("process_ended", target=name, how="leave", code=code)


def processes_needed(members: int, members_per_process: int) -> int:
    return -(-members // members_per_process)
