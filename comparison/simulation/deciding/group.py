"""A group of counted members and its coordinator: it forms, one member joins, one is killed."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from comparison.consumers import CONSUMERS, STRATEGY, unconnected
from comparison.scenarios.plan.links import LOOPBACK, Kind
from comparison.scenarios.plan.presets import ZOOKEEPER_TICK_MS
from comparison.simulation.deciding.classic import ClassicMember
from comparison.simulation.deciding.commanded import CommandedMember
from comparison.simulation.deciding.coordinator import CountedCoordinator
from comparison.simulation.deciding.heap import Connection, EventHeap
from comparison.simulation.deciding.ledger import Ledger
from comparison.simulation.deciding.member import GROUP, TOPIC, Surroundings
from comparison.simulation.deciding.member_ids import MemberIds
from comparison.simulation.deciding.reconciling import TOPIC_ID, ReconcilingMember
from coordinator.groups.consumer.groups import ConsumerGroups
from coordinator.groups.consumer.topics import Topic, Topics
from coordinator.groups.machine import Machine
from coordinator.groups.server.strategies import assignment_settings
from coordinator.service.limits import consumer_settings_of, limits_of
from kernel.broker.settings.configuration import BrokerConfig
from kernel.clock import NS_PER_MS, NS_PER_S
from kernel.designs import DESIGNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from comparison.scenarios.plan.configuration import Configuration
    from comparison.scenarios.plan.links import Links
    from comparison.simulation.deciding.member import CountedMember
    from kernel.designs import Design

FORM, JOIN, CRASH = "form", "join", "crash"
_START_NS = 1_000 * NS_PER_S
#: The group has settled if every partition has had one owner for so many intervals of heartbeats, and its delay:
#: everybody has heard of everything after one.
_SETTLED_HEARTBEATS = 2
#: In a session that has no interval of heartbeats.
_PINGS = 3
#: Between looks at that.
_LOOK_NS = 100 * NS_PER_MS
#: A stage that has not settled by then never does.
_STAGE_S_MAX = 600
#: In which a system may count CPU time.
_CPU_STEP_NS = 10 * NS_PER_MS
#: A group of many members is stored in one record, which the broker limits.
_ANY_SIZE = {"group.metadata.max.bytes": str(2**31 - 1)}


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """What one change cost; all but `cpu_s` follows from the seed."""

    change: str  #: form, join or crash
    members: int  #: after it
    rounds: int  #: generations that the group went through, or epochs
    moved: int  #: how often a partition got another owner
    converge_ms: float | None  #: until every partition had one owner; None: it did not
    unowned_partition_s: float
    detect_ms: float | None  #: until the authority noticed a loss
    lasted_s: float  #: until the group had been settled for a while: heartbeats and polls go on meanwhile
    requests: dict[str, int]  #: of members, by API
    zk_writes: int  #: of members
    cpu_s: float  #: that deciding took at the coordinator, measured on this machine


class CountedGroup:
    """Create one, then `perform` changes in order."""

    def __init__(
        self,
        design: str,
        made: Configuration,
        *,
        partitions: int,
        seed: int,
        links: Links = LOOPBACK,
    ) -> None:
        """`made` has the settings of members and brokers. Not for `zookeeper`, which has no coordinator."""
        self._design = DESIGNS[design]
        self._made = made
        self._config = _configured(self._design, made)
        self._heap = EventHeap(_START_NS)
        self._random = Random(f"{seed} group")
        delay = links.delays(Random(f"{seed} delays"))

        def connecting(one: Kind, other: Kind) -> partial[Connection]:
            return partial(Connection, self._heap, partial(delay, one, other))

        self._to_zookeeper = connecting(Kind.MEMBER, Kind.ZOOKEEPER)
        self._ledger = Ledger(self._heap, partitions)
        ids = MemberIds(
            self._heap, self._ledger, connecting(Kind.BROKER, Kind.ZOOKEEPER), self._random, ZOOKEEPER_TICK_MS
        )
        config, _ = BrokerConfig.from_settings({**_ANY_SIZE, **made.broker})
        settings = assignment_settings(config)
        machine = Machine(
            limits_of(config, traced=False),
            settings,
            {TOPIC: partitions}.get,  # type: ignore[arg-type]  # nobody asks for another topic
            ConsumerGroups(
                lambda _: consumer_settings,
                Topics({TOPIC: Topic(TOPIC_ID, partitions)}.get, {TOPIC_ID: TOPIC}.get),
            ),
        )
        consumer_settings = consumer_settings_of(config)
        self._coordinator = CountedCoordinator(self._heap, machine, settings, self._ledger, ids)
        self._around = Surroundings(
            self._heap,
            self._ledger,
            self._coordinator,
            ids,
            self._random,
            partitions,
            connecting(Kind.MEMBER, Kind.BROKER),
        )
        self._members: list[CountedMember] = []
        self._killed = 0

    # -- changes ------------------------------------------------------------------------------------------------------

    def form(self, members: int) -> Stage:
        """All members start at once."""

        def start() -> None:
            for _ in range(members):
                self._add()

        return self._stage(FORM, start)

    def join(self) -> Stage:
        """One more member starts."""
        return self._stage(JOIN, self._add)

    def crash(self, name: str = "") -> Stage:
        """A member that owns partitions is killed: this one, or any."""
        owners = [each for each in self._members if each.is_alive and each.member.owned and name in ("", each.name)]
        victim = self._random.choice(owners)
        self._killed += 1
        return self._stage(CRASH, victim.kill)

    @property
    def _interval_ms(self) -> int:
        """Between heartbeats, or pings of a session."""
        return self._made.heartbeat_ms or self._made.session_ms // _PINGS

    def _stage(self, change: str, make: Callable[[], None]) -> Stage:
        self._wait_for_phase()
        self._ledger.begin()
        cpu = _CpuShare(self._coordinator)
        generation = self._coordinator.generation
        make()
        began_ns = self._heap.now_ns
        hold_ns = (_SETTLED_HEARTBEATS * self._interval_ms + self._made.delay_ms) * NS_PER_MS
        while self._ledger.settled_for_ns < hold_ns and self._heap.now_ns - began_ns < _STAGE_S_MAX * NS_PER_S:
            self._heap.run(self._heap.now_ns + _LOOK_NS)
        ledger = self._ledger
        return Stage(
            change=change,
            members=len(self._members) - self._killed,
            rounds=self._coordinator.generation - generation,
            moved=ledger.moved,
            converge_ms=ledger.converge_ms,
            unowned_partition_s=round(ledger.unowned_partition_s, 6),
            detect_ms=ledger.detect_ms,
            lasted_s=ledger.lasted_s,
            requests=dict(sorted(ledger.requests.items())),
            zk_writes=ledger.znode_operations["writes"],
            cpu_s=cpu.seconds(),
        )

    def _wait_for_phase(self) -> None:
        """Changes come at any moment between two heartbeats."""
        self._heap.run(self._heap.now_ns + int(self._random.random() * self._interval_ms * NS_PER_MS))

    def _add(self) -> None:
        name = f"m{len(self._members) + 1}"
        client_id = f"{name}-0"
        own = {"group_instance_id": client_id} if self._design.static_membership else {}
        config = replace(self._config, client_id=client_id, **own)
        member: CountedMember
        if self._design.classic:
            member = ClassicMember(name, config, self._around)
        elif self._design.reconciles:
            member = ReconcilingMember(name, config, self._around)
        else:
            member = CommandedMember(name, config, self._around, self._to_zookeeper, len(self._members) + 1)
        self._members.append(member)
        member.start()


class _CpuShare:
    """The CPU time that a coordinator takes from now on: what its decisions take, less what else ran here meanwhile.

    To ask the system for CPU time around each decision takes longer than most of them, and some count it in steps.
    """

    def __init__(self, coordinator: CountedCoordinator) -> None:
        self._coordinator = coordinator
        self._began = self._read()

    def _read(self) -> tuple[int, int, int]:
        return self._coordinator.deciding_ns, time.perf_counter_ns(), time.thread_time_ns()

    def seconds(self) -> float:
        deciding_ns, elapsed_ns, cpu_ns = (now - before for now, before in zip(self._read(), self._began, strict=True))
        return deciding_ns * min(1.0, (cpu_ns + _CPU_STEP_NS) / elapsed_ns) / NS_PER_S


def _configured(design: Design, made: Configuration) -> Any:
    """The configuration that all members have in common."""
    own = {STRATEGY: design.strategy} if design.strategy else {}
    config, _ = CONSUMERS[design.name].config(unconnected({**own, **made.member}, name=GROUP))
    return config
