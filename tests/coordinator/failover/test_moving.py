"""Partitions that move while they are loaded or given up: in order, guarded by the epoch, nothing old left behind."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.broker.cluster.cluster_view import Leadership
from kernel.broker.storage.errors import Fenced, StorageFailed
from tests.coordinator.failover.moving import TOPIC_ID, TP, MovedCoordinator, SharedLogs, two_coordinators
from tests.support.properties import examples
from tests.support.time.manual_clock import ManualClock
from tests.support.time.virtual_time import run_virtually


async def test_leadership_that_returns_at_once_is_loaded_again_with_the_other_brokers_writes(virtual_clock):
    async with two_coordinators(virtual_clock) as (a, b):
        await a.leads(0)
        assert await a.commit(1) == "none"
        await b.leads(1)
        assert await b.commit(2) == "none"
        # a is notified of all changes at once: as far as it knows, it never resigned.
        await a.leads(2)
        assert await a.committed() == 2
        assert await b.commit(3) == "not_coordinator"
        assert await a.committed() == 2
        await b.leads(None)
        assert await b.committed() == "not_coordinator"


async def test_leadership_changes_during_a_load_end_in_the_last_state(virtual_clock):
    """KAFKA-10614: loads and unloads of one partition overtook each other."""
    async with two_coordinators(virtual_clock) as (a, b):
        await b.leads(0)
        member = await b.stable()
        a.storage.gate.clear()
        a.sees(1)
        await asyncio.sleep(0.01)
        assert await a.committed() == "coordinator_load_in_progress"
        assert await a.heartbeat(member, 1) == "none"
        for epoch in (None, 3, None, 5):
            a.sees(epoch)
            await asyncio.sleep(0.01)
        assert await a.heartbeat(member, 1) == "none", "still the first load"
        a.storage.gate.set()
        await a.leading.settled()
        assert a.leading.led(TP) == Leadership(TP, TOPIC_ID, 5)
        assert await a.describe() == ("Stable", [member])
        a.sees(6)
        a.sees(None)
        await a.leading.settled()
        assert await a.describe() == ("not_coordinator", [])


async def test_late_epoch_changes_nothing(virtual_clock):
    async with two_coordinators(virtual_clock) as (a, _):
        await a.leads(5)
        member = await a.stable()
        with pytest.raises(Fenced, match="led at epoch 5"):
            await a.coordinator.listener.on_lead(Leadership(TP, TOPIC_ID, 3))
        assert await a.describe() == ("Stable", [member])
        assert await a.commit(1, member, 1) == "none"


async def test_stale_view_leads_nothing_until_it_has_caught_up(virtual_clock):
    async with two_coordinators(virtual_clock) as (a, b):
        await a.leads(0)
        assert await a.commit(1) == "none"
        await b.leads(3)
        assert await b.commit(2) == "none"
        await a.leads(2)
        assert await a.committed() == "not_coordinator", "not what it had at epoch 0"
        assert await b.commit(3) == "none", "the leader is undisturbed"
        await a.leads(4)
        assert await a.committed() == 3


@pytest.mark.parametrize("resigned", [True, False], ids=["after a resignation", "in one moment"])
async def test_failed_load_leaves_nothing_of_the_earlier_leadership(resigned: bool, virtual_clock: ManualClock):
    """KAFKA-4362, KAFKA-5600."""
    async with two_coordinators(virtual_clock) as (a, b):
        await a.leads(0)
        member = await a.stable()
        assert await a.commit(1, member, 1) == "none"
        if resigned:
            await a.leads(None)
        await b.leads(1)
        assert await b.commit(2, member, 1) == "none"
        a.storage.broken = [StorageFailed("unreadable")]
        a.sees(2)
        await asyncio.sleep(0.1)
        assert await a.committed() == "not_coordinator"
        assert await a.heartbeat(member, 1) == "not_coordinator"
        assert await a.describe() == ("not_coordinator", [])
        await a.leading.settled()  # it is tried again
        assert await a.committed() == 2
        assert await a.describe() == ("Stable", [member])


async def test_failed_load_without_an_earlier_resignation_leaves_nothing_either(virtual_clock):
    async with two_coordinators(virtual_clock) as (a, _):
        await a.leads(0)
        member = await a.stable()
        a.storage.broken = [StorageFailed("unreadable")]
        with pytest.raises(StorageFailed):
            await a.coordinator.listener.on_lead(Leadership(TP, TOPIC_ID, 1))
        assert await a.describe() == ("not_coordinator", [])
        assert await a.heartbeat(member, 1) == "not_coordinator"


async def test_write_in_flight_when_the_partition_is_given_up_is_acknowledged_only_if_stored(virtual_clock):
    async with two_coordinators(virtual_clock) as (a, b):
        await a.leads(0)
        a.storage.gate.clear()
        under_way = asyncio.create_task(a.commit(1))
        await asyncio.sleep(0.01)
        a.sees(None)
        await asyncio.sleep(0.01)
        assert await a.committed() == "not_coordinator"
        await b.leads(1)
        assert not under_way.done()
        a.storage.gate.set()
        assert await under_way == "not_coordinator", "b has fenced it"
        assert await b.committed() == -1
        b.storage.gate.clear()
        late = asyncio.create_task(b.commit(2))
        await asyncio.sleep(0.01)
        b.sees(None)
        b.storage.gate.set()
        assert await late == "none", "this one was not fenced"
        await a.leads(2)
        assert await a.committed() == 2


async def test_broker_that_stops_during_a_load_leads_nothing_afterwards(virtual_clock):
    async with two_coordinators(virtual_clock) as (a, _):
        a.storage.gate.clear()
        a.sees(0)
        await asyncio.sleep(0.01)
        stopping = asyncio.create_task(a.coordinator.stop())
        await asyncio.sleep(0.01)
        a.storage.gate.set()
        await stopping
        await a.leading.settled()
        assert await a.committed() == "coordinator_not_available"


# -- any order of everything ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Act:
    """`who` is the broker; move, look, commit, hold, release, break or wait; then so many turns of the event loop."""

    what: str
    who: int
    turns: int = 1

    def __repr__(self) -> str:
        return f"{self.what} {'ab'[self.who]} {self.turns}"


#: A take-over or a commit takes some turns: it may be done before the next act, or at any point of its work.
ACTS = st.builds(
    Act,
    st.sampled_from(["move", "look", "look", "commit", "commit", "hold", "release", "break", "wait"]),
    st.integers(0, 1),
    st.sampled_from([1, 3, 30, 30]),
)


class Story:
    """Leadership moves, each broker notices when it looks, clients commit at either."""

    def __init__(self, clock: ManualClock) -> None:
        shared = SharedLogs()
        self.brokers = [MovedCoordinator(clock, shared), MovedCoordinator(clock, shared)]
        self.leader, self.epoch = 0, 0
        self.sent = 0
        self.acknowledged: set[int] = set()  #: numbers of commits, each to another partition
        self.commits: list[asyncio.Task[None]] = []

    async def perform(self, act: Act) -> None:
        broker = self.brokers[act.who]
        match act.what:
            case "move":
                self.leader, self.epoch = act.who, self.epoch + 1
            case "look":
                broker.sees(self.epoch if self.leader == act.who else None)
            case "commit":
                self.sent += 1
                self.commits.append(asyncio.create_task(self._commit(broker, self.sent)))
            case "hold":
                broker.storage.gate.clear()
            case "release":
                broker.storage.gate.set()
            case "break":
                broker.storage.broken = [StorageFailed("unreadable")]
            case _:
                await asyncio.sleep(1)
        for _ in range(act.turns):
            await asyncio.sleep(0)

    async def _commit(self, broker: MovedCoordinator, number: int) -> None:
        error = await broker.commit(number, partition=number)
        assert error in {"none", "not_coordinator", "coordinator_load_in_progress"}
        if error == "none":
            self.acknowledged.add(number)

    async def end(self) -> None:
        """Both brokers look, all writes end; the leader has each commit that was acknowledged."""
        for act in ("release", "look"):
            for who in (0, 1):
                await self.perform(Act(act, who))
        for broker in self.brokers:
            await broker.leading.settled()
        await asyncio.gather(*self.commits)
        leader, other = self.brokers[self.leader], self.brokers[1 - self.leader]
        assert await other.committed() == "not_coordinator"
        assert (await leader.all_committed()).keys() >= self.acknowledged
        assert await leader.commit(7) == "none"
        assert await leader.committed() == 7
        for broker in self.brokers:
            await broker.stop()


@given(acts=st.lists(ACTS, min_size=8, max_size=30))
@settings(max_examples=examples(100))
def test_in_any_order_only_the_leader_answers_and_has_every_acknowledged_commit(acts: list[Act]):
    clock = ManualClock()

    async def main() -> None:
        story = Story(clock)
        await story.brokers[0].leads(0)
        for act in acts:
            await story.perform(act)
        await story.end()

    run_virtually(main(), clock)
