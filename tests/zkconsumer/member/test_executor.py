"""The executor with fakes that record their calls: effects that need no server, and failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest

from kernel.errors import Unavailable
from kernel.values import Record, TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.errors import BadVersion, NodeExists, NoNode, SessionExpired
from tests.support.rebalance.world import GROUP, ModelZooKeeper
from tests.support.trace.tracers import ListTracer
from zkconsumer.member.executor import Executor, Parts
from zkconsumer.rebalance import effects
from zkconsumer.rebalance.config import RebalanceConfig
from zkconsumer.rebalance.effects import Claim, Operation, Refusal, Request
from zkconsumer.rebalance.state import Rebalance, RebalanceState
from zkconsumer.records.streams import Chunk, PartitionInfo, Registry, Stream
from zkconsumer.znodes.payloads import registration_payload

T0 = TopicPartition("t", 0)
ME = f"{GROUP}_c1"
SESSION = 7
ERRORS = {
    Refusal.NO_NODE: NoNode,
    Refusal.NODE_EXISTS: NodeExists,
    Refusal.BAD_VERSION: BadVersion,
    Refusal.OTHER_SESSION: SessionExpired,
}


class Zookeeper:
    """A fake session and watcher over the model; the next request raises `refuses`."""

    def __init__(self) -> None:
        self.model = ModelZooKeeper()
        self.model.set_broker(0)
        self.model.set_topic("t", 1)
        self.model.put(paths.member_id(GROUP, ME), registration_payload({"t": 1}, 1), SESSION)
        self.session_id = SESSION
        self.asked: list[Request] = []
        self.closed = False
        self.renewed_behind_a_claim = 0  #: another session begins before the executor learns of its claim

    def _answer(self, operation: Operation, path: str, data: bytes = b"", **more: int) -> effects.Response:
        request = Request(operation, path, data, **more)
        self.asked.append(request)
        answer = self.model.answer("c1", self.session_id, request, frozenset())
        if answer.refusal is not None:
            raise ERRORS[answer.refusal](str(answer.refusal), path)
        return answer

    async def read(self, path: str, *, step: str, cause: str = "") -> tuple[bytes, SimpleNamespace]:
        answer = self._answer(Operation.GET_DATA, path)
        return answer.data, SimpleNamespace(version=answer.version, ephemeral_owner=answer.owner)

    async def children(self, path: str, *, step: str, cause: str = "") -> list[str]:
        return list(self._answer(Operation.GET_CHILDREN, path).children)

    async def create(self, path, data, *, ephemeral, makepath, step, cause, only_in):
        assert makepath
        self._answer(Operation.CREATE, path, data, persistent=not ephemeral, session=only_in)
        self.session_id += self.renewed_behind_a_claim

    async def delete(self, path, version, *, step, cause, only_in):
        self._answer(Operation.DELETE, path, version=version, session=only_in)

    async def set(self, path, data, *, step, cause, only_in):
        return SimpleNamespace(version=self._answer(Operation.SET_DATA, path, data, session=only_in).version)

    async def sync(self, path, *, step, cause):
        self._answer(Operation.SYNC, path)

    async def close(self) -> None:
        self.closed = True


class Fetchers:
    def __init__(self) -> None:
        self.did: list[str] = []
        self.stopping = asyncio.Event()
        self.stopping.set()

    def start(self, infos) -> None:
        self.did.append("start " + " ".join(f"{info.topic_partition}@{info.fetched}" for info in infos))

    async def stop(self) -> None:
        self.did.append("stop")
        await self.stopping.wait()
        self.did.append("stopped")


class Offsets:
    def __init__(self) -> None:
        self.stored: dict[TopicPartition, int] = {}
        self.error: Exception | None = None

    async def commit(self, *, explicit: bool, step: str) -> None:
        """Nothing to write."""

    async def fetch_stored(self, partitions, closing):
        assert not closing()
        if self.error is not None:
            raise self.error
        return self.stored


class Listener:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.raises: Exception | None = None

    async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        self.calls.append(f"assigned {stream} {sorted(map(str, partitions))}")
        if self.raises is not None:
            raise self.raises

    async def on_revoked(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        self.calls.append(f"revoked {stream} {sorted(map(str, partitions))}")


class Bench:
    """An executor with fakes for its parts; `play` runs a script with it."""

    def __init__(self, *, one_by_one: bool = False, **options: object) -> None:
        self.zookeeper, self.fetchers, self.offsets, self.listener = Zookeeper(), Fetchers(), Offsets(), Listener()
        self.tracer = ListTracer(process="c1")
        self.registry = Registry()
        self.stream = Stream(f"{ME}-0", 2, asyncio.Event())
        self.streams = {("t", f"{ME}-0"): self.stream}
        parts = Parts(
            session=self.zookeeper,
            watcher=self.zookeeper,
            fetchers=self.fetchers,
            offsets=self.offsets,
            registry=self.registry,
            streams=self.streams,
            listener=self.listener,
            tracer=self.tracer,
            stop_auto_commit=self._nothing,
            one_by_one=one_by_one,
        )
        config = {"group": GROUP, "consumer_id": ME, "max_retries": 1, "backoff_ms": 0} | options
        self.executor = Executor(Rebalance(config=RebalanceConfig(**config)), parts)

    async def _nothing(self) -> None:
        """There is no commit timer."""

    async def idle(self) -> None:
        await until(lambda: self.executor.machine.state is RebalanceState.IDLE, 60, "the executor to be idle")

    async def close(self) -> None:
        self.executor.post(effects.CloseDemanded())
        await until(lambda: self.executor.machine.state is RebalanceState.CLOSED, 60, "the executor to be closed")


@asynccontextmanager
async def executing(**options: object) -> AsyncIterator[Bench]:
    """An executor that runs, is shut down at the end and must not have crashed."""
    bench = Bench(**options)
    running = asyncio.create_task(bench.executor.run())
    try:
        yield bench
        await bench.close()
    finally:
        running.cancel()
        outcome = await asyncio.gather(running, return_exceptions=True)
    assert outcome == [None]
    assert bench.zookeeper.closed


@pytest.mark.parametrize("one_by_one", [True, False])
async def test_reads_of_a_step_are_the_same_in_both_ways(one_by_one):
    async with executing(one_by_one=one_by_one) as bench:
        together = 0
        most: list[int] = []
        read = bench.zookeeper.read

        async def slow_read(path, **more):
            nonlocal together
            together += 1
            most.append(together)
            await asyncio.sleep(0)
            together -= 1
            return await read(path, **more)

        bench.zookeeper.read = slow_read
        bench.zookeeper.model.set_broker(1)
        assert await bench.executor.demand("start") is None
        assert (max(most) == 1) is one_by_one
        lists = [request.path for request in bench.zookeeper.asked if request.operation is Operation.GET_CHILDREN]
        assert lists == [paths.BROKER_IDS, paths.BROKER_IDS, paths.member_ids(GROUP), paths.member_ids(GROUP)]


async def test_thread_without_a_stream_fails_the_attempt_by_name_and_is_released_by_the_next():
    async with executing() as bench:
        bench.streams.clear()
        error = await bench.executor.demand("start")
        assert error is not None
        assert f"our registration names {ME}-0 for t" in error
        assert bench.registry.infos() == []
        assert bench.zookeeper.model.owners() == {T0: f"{ME}-0"}
        assert bench.listener.calls == bench.tracer.of("partitions_revoked") == []
        # It is in the machine's registry, so the next rebalance releases it.
        bench.streams["t", f"{ME}-0"] = bench.stream
        assert await bench.executor.demand("start") is None
        deletes = [request.path for request in bench.zookeeper.asked if request.operation is Operation.DELETE]
        assert deletes == [paths.owner(GROUP, "t", 0)]


async def test_a_listener_that_raises_fails_the_attempt_by_the_rules_of_1_1():
    async with executing(listener_in_attempt=True) as bench:
        bench.listener.raises = ValueError("no")
        error = await bench.executor.demand("start")
        assert error is not None
        assert "ListenerFailed: the rebalance listener raised ValueError('no')" in error
        assert bench.listener.calls == ["revoked 0 []", "assigned 0 ['t-0']"]
        bench.listener.raises = None
        assert await bench.executor.demand("start") is None


async def test_claims_made_before_1_1s_listener_raised_are_released_by_the_next_rebalance():
    async with executing(listener_in_attempt=True) as bench:
        bench.listener.raises = ValueError("no")
        assert await bench.executor.demand("start") is not None
        assert bench.zookeeper.model.owners() == {T0: f"{ME}-0"}
        bench.listener.raises = None
        bench.zookeeper.model.put("/consumers/g/ids/g_c0", registration_payload({"t": 1}, 1), SESSION + 1)
        assert await bench.executor.demand("start") is None
        assert bench.zookeeper.model.owners() == {}, "the other member owns the partition now: no claim was left behind"


async def test_queues_are_emptied_by_topic_and_current_chunks_everywhere():
    """As the original's clearFetcherQueues; it matters when a pattern no longer matches anything."""
    async with executing() as bench:
        one = PartitionInfo.of(Claim("t", 0, bench.stream.thread, 0), bench.stream)
        for first in (0, 2):
            records = tuple(Record("t", 0, offset, 0, None, b"", ()) for offset in (first, first + 1))
            await bench.stream.put(Chunk(one, first, records))
        handed_out = bench.stream.take(1)
        assert handed_out is not None
        bench.executor._clear(effects.ClearStreams(()))
        behind = bench.stream.take(9)
        assert behind is not None
        assert [record.offset for record in (*handed_out.records, *behind.records)] == [0, 2, 3]
        await bench.stream.put(Chunk(one, 4, records))
        bench.executor._clear(effects.ClearStreams(("t",)))
        assert bench.stream.take(9) is None


async def test_answered_demand_leaves_nothing_behind():
    async with executing() as bench:
        for _ in range(3):
            assert await bench.executor.demand("start") is None
        assert bench.executor._tickets == {}


async def test_library_error_in_the_listener_keeps_its_name():
    async with executing(listener_in_attempt=True) as bench:
        bench.listener.raises = Unavailable("the store is down")
        error = await bench.executor.demand("start")
        assert error is not None
        assert error.endswith("Unavailable: the store is down")


async def test_a_listener_that_raises_ends_the_executor_by_default():
    bench = Bench()
    bench.listener.raises = ValueError("no")
    running = asyncio.create_task(bench.executor.run())
    bench.executor.post(effects.RebalanceDemanded("start", 0))
    with pytest.raises(ValueError, match="no"):
        await running


async def test_fetching_starts_at_the_offsets_in_kafka():
    async with executing(offsets_from=frozenset({"kafka"})) as bench:
        bench.offsets.stored = {T0: 42}
        assert await bench.executor.demand("start") is None
        assert bench.fetchers.did[-1] == "start t-0@42"


async def test_missing_response_with_offsets_fails_the_attempt():
    async with executing(offsets_from=frozenset({"kafka"})) as bench:
        bench.offsets.error = Unavailable("shutting down before the coordinator has returned the committed offsets")
        error = await bench.executor.demand("start")
        assert error is not None
        assert "the coordinator has returned" in error
        assert bench.zookeeper.model.owners() == {}


async def test_lost_connection_stops_at_once_and_resumes_after_the_delivered_records():
    async with executing(stop_on_disconnect=True) as bench:
        assert await bench.executor.demand("start") is None
        (info,) = bench.registry.infos()
        info.fetched, info.consumed, info.started = 90, 30, True
        bench.executor.post(effects.Disconnected())
        await bench.idle()
        assert bench.fetchers.did[-2:] == ["stop", "stopped"]
        assert bench.executor.machine.delivering == {}
        bench.executor.post(effects.Reconnected())
        await bench.idle()
        assert bench.fetchers.did[-1] == "start t-0@30"
        assert not info.started  # so the trace records again where delivery starts
        assert bench.listener.calls == ["assigned 0 ['t-0']", "revoked 0 ['t-0']", "assigned 0 ['t-0']"]


async def test_effects_after_an_immediate_stop_wait_for_the_fetchers():
    """Two concurrent stops would not wait for each other: the second one would find nothing left to stop."""
    async with executing(stop_on_disconnect=True) as bench:
        assert await bench.executor.demand("start") is None
        bench.fetchers.stopping.clear()
        bench.executor.post(effects.Disconnected())
        await bench.idle()
        bench.executor.post(effects.Disconnected())
        bench.executor.post(effects.Reconnected())
        await until(lambda: "stop" in bench.fetchers.did[2:], 60, "the fetchers to be updated")
        for _ in range(10):
            await asyncio.sleep(0)
        assert bench.fetchers.did[-1] == "stop"
        bench.fetchers.stopping.set()
        await bench.idle()
        assert bench.fetchers.did[-3:] == ["stop", "stopped", "start t-0@-1"]


async def test_change_waits_for_the_quiet_time_and_a_later_one_restarts_it():
    async with executing(quiet_ms=30) as bench:
        assert await bench.executor.demand("start") is None
        bench.executor.post(effects.ChangeNotified("members"))
        bench.executor.post(effects.ChangeNotified("members"))
        assert len(bench.tracer.of("rebalance_started")) == 1
        await until(lambda: len(bench.tracer.of("rebalance_ended")) == 2, 60, "the second rebalance")
        await bench.idle()
        assert bench.executor.machine.reminders == 2
        assert len(bench.tracer.of("rebalance_started")) == 2


async def test_reminders_after_the_end_are_ignored():
    async with executing(quiet_ms=60000) as bench:
        assert await bench.executor.demand("start") is None
        bench.executor.post(effects.ChangeNotified("members"))
        bench.executor.post(effects.CloseDemanded())
        await until(lambda: bench.executor.machine.state is RebalanceState.CLOSED, 60, "the end")
        assert bench.executor.machine.quiet_token == 1


async def test_failed_member_polls_until_its_partitions_are_free():
    async with executing(retry_when_free=True) as bench:
        bench.zookeeper.model.put(paths.owner(GROUP, "t", 0), b"g_other-0", 99)
        assert await bench.executor.demand("start") is not None
        looked = paths.owner(GROUP, "t", 0)
        before = len(bench.zookeeper.asked)
        await until(lambda: len(bench.zookeeper.asked) > before + 2, 60, "some lookups")
        assert {request.path for request in bench.zookeeper.asked[before:]} == {looked}
        bench.zookeeper.model.remove(looked)
        await until(lambda: bench.zookeeper.model.owners() == {T0: f"{ME}-0"}, 60, "the claim")
        await bench.idle()


async def test_checked_requests_carry_version_and_session_and_epochs_are_kept_with_the_partition():
    async with executing(checked_release=True, fence_epochs=True, sync_before_reads=True) as bench:
        assert await bench.executor.demand("start") is None
        (info,) = bench.registry.infos()
        assert (info.session, info.epoch) == (SESSION, 0)
        assert await bench.executor.demand("start") is None
        (info,) = bench.registry.infos()
        assert (info.session, info.epoch) == (SESSION, 1)
        owner = paths.owner(GROUP, "t", 0)
        assert Request(Operation.DELETE, owner, version=0, session=SESSION) in bench.zookeeper.asked
        assert Request(Operation.SYNC, paths.member_ids(GROUP)) in bench.zookeeper.asked
        epoch = paths.epoch(GROUP, "t", 0)
        assert Request(Operation.SET_DATA, epoch, f"{ME}-0".encode(), session=SESSION) in bench.zookeeper.asked


async def test_claim_belongs_to_the_session_of_its_request():
    async with executing() as bench:
        bench.zookeeper.renewed_behind_a_claim = 1
        assert await bench.executor.demand("start") is None
        assert [info.session for info in bench.registry.infos()] == [SESSION]
        assert bench.zookeeper.session_id == SESSION + 1


async def test_member_in_a_new_session_does_not_delete_nodes_of_the_old_one():
    async with executing() as bench:
        assert await bench.executor.demand("start") is None
        owner = paths.owner(GROUP, "t", 0)
        request = Request(Operation.DELETE, owner, version=0, session=SESSION)
        bench.zookeeper.session_id = SESSION + 1
        answer = await bench.executor._request(request, "R5")
        assert answer.refusal is Refusal.OTHER_SESSION
        assert bench.zookeeper.model.owners() == {T0: f"{ME}-0"}
        answer = await bench.executor._request(Request(Operation.DELETE, owner, version=3), "R5")
        assert answer.refusal is Refusal.BAD_VERSION
