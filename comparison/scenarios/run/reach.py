"""What a step or fault of a user's own may call: the group, its members and the testbed, as `rebalance_lab.extending`
offers them.

Classes of ours have more, which changes without notice; they must have at least this (`mypy` checks it where a step is
given its group).

Two kinds of names: a *place* is where a process is deployed (`m1`, `m2`, ...), and stays the same when a process is
replaced; a *process* has the place's name, with a number from the second one on (`m1`, `m1.2`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from comparison.scenarios.testbed.testbed import BrokerChild as Broker
from kernel.trace.writer import Tracer
from kernel.zookeeper.servers import Server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from random import Random

    from kernel.values import TopicPartition

__all__ = ["Broker", "Group", "Members", "Process", "Server", "Testbed", "Tracer", "View", "ZooKeeper"]


class Process(Protocol):
    """A member's process. To end it, use `Members.kill` or `Members.leave`, which trace it."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> int | None:
        """The process's exit code; None while it runs."""

    def freeze(self) -> None:
        """Stop it (SIGSTOP); it keeps its connections. Before a change is waited for, see `View.leave_out`."""

    def thaw(self) -> None:
        """Let it go on (SIGCONT)."""


class View(Protocol):
    """Who owns what, as the members themselves believe."""

    @property
    def partitions(self) -> frozenset[TopicPartition]: ...

    @property
    def delivered(self) -> Mapping[TopicPartition, int]:
        """The next offset of each partition that was not delivered yet."""

    def held_by(self, process: str) -> frozenset[TopicPartition]:
        """The partitions that a process believes to own, even if it is frozen."""

    def owning_processes(self) -> list[str]:
        """The processes that own at least one partition."""

    def begun(self) -> Mapping[str, int]:
        """How many rebalances each process has begun."""

    def grow(self, partitions: Iterable[TopicPartition]) -> None:
        """Wait for owners of these partitions too, which `Testbed.grow_topic` has added."""

    def leave_out(self, process: str) -> None:
        """Do not wait for a process, and ignore what it believes: it is frozen, or cut off."""

    def take_back(self, process: str) -> None:
        """Wait for a process again that `leave_out` has left out."""

    def summary(self) -> str:
        """The owners in one line, for messages."""


class Members(Protocol):
    """The members' processes: which there are, and what can be done to them."""

    @property
    def view(self) -> View: ...

    @property
    def random(self) -> Random:
        """For choices that the run's seed repeats."""

    @property
    def present(self) -> int:
        """How many members there are now."""

    @property
    def places(self) -> Sequence[str]:
        """All places, also free ones."""

    @property
    def present_places(self) -> Sequence[str]:
        """The places at which there are members now."""

    def present_processes(self) -> Sequence[str]:
        """The processes that have joined and not gone, the oldest first."""

    def process_at(self, place: str) -> str:
        """The name of the present process at a place, or of the last one."""

    def place_of(self, name: str) -> str:
        """The place of a process."""

    def has_joined(self, place: str) -> bool:
        """Whether there is a member at this place now."""

    def is_gone(self, name: str) -> bool:
        """Whether a process was killed or has left."""

    def choose_owner(self) -> str:
        """A random process that owns partitions; the run fails if there is none."""

    def child(self, name: str) -> Process:
        """The process of this name."""

    async def add(self, count: int, settings: Mapping[str, str] | None = None) -> Sequence[str]:
        """Let `count` more members join at once, at new places; the names of the places."""

    async def come_back(
        self, place: str, settings: Mapping[str, str] | None = None, topics: Sequence[str] | None = None
    ) -> None:
        """Start a new process at a place whose last one has gone, optionally with other settings or topics."""

    async def kill(self, name: str) -> None:
        """End a process without warning (SIGKILL)."""

    def leave(self, name: str) -> None:
        """Tell a process to leave the group and end."""

    async def go(self, place: str, timeout_s: float) -> None:
        """Have the process at a place leave, and wait for its end. Raises `WaitTimeout`."""

    def slow_down(self, name: str) -> None:
        """Have a process stop polling."""

    def speed_up(self, name: str) -> None:
        """Have it poll again."""

    def delay(self, name: str, per_record_ms: int) -> None:
        """Have a process spend so long on each record."""

    def fail_listener(self, name: str, callback: str) -> None:
        """Have a process's listener raise once, in its next call of this kind: `assigned`, `revoked` or `any`."""

    def commit(self) -> None:
        """Have all members commit what was delivered to them."""

    def subscribe(self, place: str, topics: Sequence[str]) -> None:
        """Change the topics of the members at a place, in designs that can (`DESIGNS[...].resubscribes`)."""

    def unsubscribe(self, name: str) -> None:
        """Have the members of a process unsubscribe, or shut down where they cannot."""

    def subscribe_again(self, name: str) -> None:
        """Have them come back."""


class ZooKeeper(Protocol):
    """The run's ZooKeeper. Calls of `server` and of a `Server` block: use `asyncio.to_thread`."""

    @property
    def connect_string(self) -> str:
        """Its servers, for a session of your own."""

    @property
    def servers(self) -> Sequence[Server]:
        """Those that the run has started; none of a ZooKeeper that ran before."""

    def server(self, target: str) -> Server:
        """The server that a fault names: `leader` or `zookeeper-<n>`."""

    async def restart(self, servers: Sequence[Server], timeout_s: float) -> None:
        """Start servers that were killed, and wait until they serve."""


class Testbed(Protocol):
    """Everything in a run but its members."""

    @property
    def group(self) -> str:
        """The name of the group."""

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        """Those of the run's topics, which the load fills."""

    @property
    def bootstrap(self) -> str:
        """HOST:PORT,... of the brokers, for a client of your own."""

    @property
    def zookeeper(self) -> ZooKeeper: ...

    @property
    def brokers(self) -> Sequence[Broker]:
        """All of them; `killed` says whether one is down."""

    def broker(self, target: str) -> Broker:
        """The broker that a fault names: `coordinator` or `broker-<n>`. Raises `UserError`."""

    async def coordinating_now(self) -> Broker:
        """The broker that coordinates the group; in `zookeeper`, which has none, one of them."""

    async def kill_broker(self, broker: Broker) -> None:
        """End a broker without warning (SIGKILL)."""

    async def stop_broker(self, broker: Broker) -> None:
        """Shut a broker down."""

    async def start_again(self, broker: Broker) -> None:
        """Start a broker that has ended, with its data and its port, and wait until it serves."""

    async def grow_topic(self, topic: str, partitions: int) -> Sequence[TopicPartition]:
        """Add partitions to a topic, so that it has `partitions`; the new ones, which the load fills at once."""


class Group(Protocol):
    """The group of a run: what `OwnStep.perform` is given, and a fault has as `self.changes`."""

    @property
    def members(self) -> Members: ...

    @property
    def testbed(self) -> Testbed: ...

    @property
    def tracer(self) -> Tracer:
        """Writes events into the runner's trace."""

    @property
    def takeover_s(self) -> float:
        """How long the others may need to take over from a member that is lost."""

    async def settle(self) -> None:
        """Wait until every partition has one owner and the group is quiet. Raises `WaitTimeout`."""

    async def quiet(self) -> None:
        """Wait until no member rebalances. Raises `WaitTimeout`."""

    async def wait_for_phase(self, *, commits: bool = False) -> None:
        """Wait for a part of the heartbeat interval that the seed draws; with `commits`, of the commit interval too."""

    async def make(
        self,
        change: str,
        make: Callable[[], Awaitable[object] | None],
        *,
        members: int,
        round_: int = 1,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        """Make a change that is measured: trace it, call `make`, wait until the group has settled.

        `members` is how many there are afterwards; `detail` is kept in the trace. Raises `WaitTimeout`, and what `make`
        raises.
        """
