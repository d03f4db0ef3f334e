"""offsets.storage=kafka: the requests to each broker, and the reaction to each kind of response."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from kernel.errors import Unavailable
from kernel.values import NO_OFFSET
from kernel.waiting import until
from kernel.wire.versions import Api
from kernel.zookeeper import paths
from tests.support.zookeeper.sessions import opened
from tests.zkconsumer.offsets.offset_keepers import Keeper, keeper, stored, t
from tests.zkconsumer.offsets.scripted_coordinator import SILENT, scripted

#: Pauses are short, except in tests of a pause.
KAFKA = {"offsets_storage": "kafka", "offsets_channel_backoff_ms": "20", "offsets_channel_socket_timeout_ms": "5000"}
ONLY_KAFKA = {**KAFKA, "dual_commit_enabled": "false"}


def fetched(one: Keeper, *partitions: int) -> asyncio.Future[object]:
    wanted = tuple(t(n) for n in partitions)
    return asyncio.ensure_future(one.offsets.fetch_stored(wanted, lambda: one.closing))


async def test_a_commit_names_everything_in_the_registry_as_a_simple_consumer(chroot):
    """The versions are those of Kafka 1.1's consumer; nothing is written to ZooKeeper."""
    async with scripted(chroot) as coordinator, keeper(chroot, **ONLY_KAFKA) as one:
        one.own(-1, 5, 7)
        one.move(-1, 5, 9)
        outcome = await one.commit()
        assert outcome.accepted == {t(1): 5, t(2): 9}
        assert coordinator.seen == [(Api.FindCoordinator, 0), (Api.OffsetCommit, 2)]
        (body,) = coordinator.commits
        assert (body.group_id, body.generation_id_or_member_epoch, body.member_id) == ("g", -1, "")
        assert coordinator.offsets == {t(0): NO_OFFSET, t(1): 5, t(2): 9}
        await one.commit()  # commits although nothing has changed
        assert coordinator.count(Api.OffsetCommit) == 2
        assert one.answered()[:3] == [
            ("kafka", 0, NO_OFFSET, "accepted"),
            ("kafka", 1, 5, "accepted"),
            ("kafka", 2, 9, "accepted"),
        ]
        assert [line for line in one.requests() if paths.offsets("g") in line] == []


async def test_dual_commit_writes_changed_offsets_accepted_by_kafka_to_zookeeper(chroot):
    async with scripted(chroot) as coordinator, keeper(chroot, **KAFKA) as one:
        one.own(5, 7)
        one.move(5, 9)
        coordinator.says(Api.OffsetCommit, "GROUP_AUTHORIZATION_FAILED")
        assert (await one.commit()).refused == dict.fromkeys((t(0), t(1)), "GROUP_AUTHORIZATION_FAILED")
        assert [line for line in one.requests() if paths.offsets("g") in line] == []
        assert (await one.commit()).accepted == {t(0): 5, t(1): 9}
        assert await stored(one.session, 1) == 9
        assert await one.session.exists(paths.offset("g", "t", 0)) is None
        assert one.answered()[2:] == [
            ("kafka", 0, 5, "accepted"),
            ("kafka", 1, 9, "accepted"),
            ("zookeeper", 1, 9, "accepted"),
        ]


async def test_offsets_in_kafka_are_fetched_and_a_missing_one_is_none(chroot):
    async with scripted(chroot) as coordinator, keeper(chroot, **ONLY_KAFKA) as one:
        coordinator.offsets[t(1)] = 30
        assert await fetched(one, 0, 1) == {t(0): NO_OFFSET, t(1): 30}
        assert coordinator.seen == [(Api.FindCoordinator, 0), (Api.OffsetFetch, 2)]
        assert await fetched(one) == {}
        await one.commit()  # an empty registry
        assert len(coordinator.seen) == 2


async def test_moved_coordinator_is_looked_up_again(chroot):
    """NOT_COORDINATOR drops the channel: a fetch is retried by itself, a commit with the next commit."""
    async with (
        scripted(chroot) as first,
        scripted(chroot, node_id=1, registered=False) as second,
        keeper(chroot, **ONLY_KAFKA) as one,
    ):
        await one.offsets.open()
        first.coordinator = second
        first.says(Api.OffsetCommit, "NOT_COORDINATOR")
        one.own(5)
        assert (await one.commit()).refused == {t(0): "NOT_COORDINATOR"}
        assert (first.count(Api.FindCoordinator), second.seen) == (1, [])
        assert (await one.commit()).accepted == {t(0): 5}
        assert (first.count(Api.FindCoordinator), second.seen) == (2, [(Api.OffsetCommit, 2)])
        second.says(Api.OffsetFetch, "NOT_COORDINATOR")
        first.coordinator = first
        first.offsets[t(0)] = 30
        assert await fetched(one, 0) == {t(0): 30}
        assert first.count(Api.FindCoordinator) == 3


@pytest.mark.parametrize(
    ("error", "commits_again_on", "fetches"),
    [
        ("COORDINATOR_NOT_AVAILABLE", 2, None),  # a fetch treats it as "no offset", like the original
        ("COORDINATOR_LOAD_IN_PROGRESS", 1, 30),
        ("GROUP_AUTHORIZATION_FAILED", 1, None),
    ],
)
async def test_each_error_has_the_consequence_that_it_has_in_the_original(chroot, error, commits_again_on, fetches):
    async with scripted(chroot) as coordinator, keeper(chroot, **ONLY_KAFKA) as one:
        one.own(5)
        coordinator.says(Api.OffsetCommit, error)
        assert (await one.commit()).refused == {t(0): error}
        await one.commit()
        assert coordinator.count(Api.FindCoordinator) == commits_again_on
        coordinator.offsets[t(0)] = 30
        coordinator.says(Api.OffsetFetch, error)
        assert await fetched(one, 0) == {t(0): NO_OFFSET if fetches is None else fetches}
        assert coordinator.count(Api.OffsetFetch) == (1 if fetches is None else 2)


async def test_missing_response_closes_the_channel(chroot):
    async with scripted(chroot) as coordinator, keeper(chroot, **ONLY_KAFKA) as one:
        kafka = one.offsets._kafka
        patient = kafka._config
        soon = replace(patient, offsets_channel_socket_timeout_ms=1000)
        one.own(5)
        coordinator.says(Api.OffsetCommit, SILENT)
        kafka._config = soon
        assert (await one.commit()).refused == {t(0): "UNANSWERED"}
        kafka._config = patient
        assert one.answered() == [("kafka", 0, 5, "unknown")]
        assert (await one.commit()).accepted == {t(0): 5}
        coordinator.says(Api.OffsetFetch, SILENT)
        kafka._config = soon
        assert await fetched(one, 0) == {t(0): 5}
        assert coordinator.count(Api.FindCoordinator) == 3


@pytest.mark.parametrize(
    ("closing", "step", "error", "tries"),
    [
        (False, "commit", "COORDINATOR_LOAD_IN_PROGRESS", 1),
        (False, "auto-commit", "COORDINATOR_LOAD_IN_PROGRESS", 1),
        (True, "auto-commit", "COORDINATOR_LOAD_IN_PROGRESS", 1),
        (True, "close", "COORDINATOR_LOAD_IN_PROGRESS", 3),
        (True, "R4", "NOT_COORDINATOR", 3),
        (True, "close", "OFFSET_METADATA_TOO_LARGE", 1),
    ],
)
async def test_only_a_closing_member_retries_and_not_for_its_timer(chroot, closing, step, error, tries):
    """offsets.commit.max.retries=2, and the original's isAutoCommit, which is false for the timer alone."""
    async with scripted(chroot) as coordinator, keeper(chroot, **ONLY_KAFKA, offsets_commit_max_retries="2") as one:
        one.own(5)
        one.closing = closing
        coordinator.says(Api.OffsetCommit, *[error] * 9)
        assert (await one.commit(step)).refused == {t(0): error}
        assert coordinator.count(Api.OffsetCommit) == tries


async def test_last_commit_of_a_closing_member_covers_all_consumed_records(chroot):
    async with scripted(chroot) as coordinator, keeper(chroot, **ONLY_KAFKA) as one:
        one.own(5)
        one.closing = True
        coordinator.says(Api.OffsetCommit, SILENT)
        committing = asyncio.ensure_future(one.commit("close"))
        await until(lambda: coordinator.commits, 60, "the first attempt")
        one.move(8)
        for connection in list(coordinator.server.connections):
            connection.abort()
        assert (await committing).accepted == {t(0): 8}


async def test_start_waits_for_a_coordinator(chroot):
    async with scripted(chroot, node_id=7, registered=False) as gone:
        nobody = gone.address
    async with keeper(chroot, **ONLY_KAFKA) as one:
        opening = asyncio.ensure_future(one.offsets.open())
        await until(lambda: len(one.requests()) >= 2, 60, "two lookups without a broker")
        await register(chroot, nobody)
        await until(lambda: any("ids/7" in line for line in one.requests()), 60, "a broker that does not answer")
        assert not opening.done()
        async with scripted(chroot) as coordinator:
            coordinator.says(Api.FindCoordinator, "COORDINATOR_NOT_AVAILABLE")
            await asyncio.wait_for(opening, 60)
            assert coordinator.count(Api.FindCoordinator) == 2


@pytest.mark.parametrize("what", ["open", "fetch", "commit"])
async def test_close_does_not_wait_for_a_coordinator(chroot, what):
    async with keeper(chroot, **ONLY_KAFKA, offsets_commit_max_retries="1") as one:
        one.own(5)
        calls: dict[str, Any] = {"open": one.offsets.open, "fetch": lambda: fetched(one, 0), "commit": one.commit}
        waiting = asyncio.ensure_future(calls[what]())
        await until(one.requests, 60, "a lookup of brokers")
        assert not waiting.done()
        one.closing = True
        if what == "commit":
            assert (await waiting).refused == {t(0): "UNANSWERED"}
        else:
            with pytest.raises(Unavailable, match="shutting down"):
                await waiting


async def register(chroot: str, address) -> None:
    async with opened(chroot) as session:
        await session.create(
            paths.broker(address.node_id),
            b'{"host":"%s","port":%d}' % (address.host.encode(), address.port),
            makepath=True,
        )
