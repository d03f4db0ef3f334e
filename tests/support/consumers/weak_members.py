"""For tests of the old consumer's weaknesses: members, each behind a proxy that pauses them at a request.

    with ZooKeeperProxy(chroot) as link:
        async with joined(link.connect_string, "c1", {"t": 1}) as c1:       # has joined, and fetches
            pause = link.pause_at(claims)
            async with joining(chroot, "c2", {"t": 1}) as (c2, join):       # joins in the background
                await pause.reached()

The predicates below say which request of the original's R1 to R12 a pause is for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

from kernel.errors import RebalanceLabError
from kernel.tasks import cancel_and_wait
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NoNode
from kernel.zookeeper.operations import SessionState
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.consumers.zookeeper import Member, member, new_member, wait_for_id
from tests.support.zookeeper.proxy import Op, ZooKeeperProxy
from tests.support.zookeeper.sessions import end_session
from zkconsumer.rebalance.state import RebalanceState

#: The registration of a member without topics: when it comes, everybody rebalances, and nothing is assigned anew.
VISITOR = b'{"pattern":"static","subscription":{}}'


def begins(op: Op) -> bool:
    """R1's first read. The leader finder's is the same, so pause only after it has finished."""
    return op.op.startswith("getChildren") and op.path == paths.BROKER_IDS


def releases(op: Op) -> bool:
    """R5, or a rollback of R11."""
    return op.op == "delete" and paths.parse_owner(op.path) is not None


def claims(op: Op) -> bool:
    """R11."""
    return op.op == "create" and paths.parse_owner(op.path) is not None


def reads_after_notification(op: Op) -> bool:
    """The first read after a notification of changed members, which arms the watch again."""
    return op.op == "exists" and op.path.endswith("/ids")


def partitions(topic: str, *numbers: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]


@asynccontextmanager
async def joined(chroot: str, name: str, topics: Mapping[str, int], **settings: str) -> AsyncIterator[Member]:
    """A member that has joined and fetches all it owns, so that it sends ZooKeeper no further requests by itself."""
    async with member(chroot, name, topics, **settings) as made:
        await fetches(made)
        yield made


def gives_up_soon(who: Member, *, attempts: int, backoff_ms: int) -> None:
    """From now on it rebalances with so few attempts. A joining member must keep trying until the others have
    released, which takes longer on a busy machine.
    """
    executor = who.consumer._executor
    assert executor is not None
    assert executor.machine.state is RebalanceState.IDLE
    config = replace(executor.machine.config, max_retries=attempts, backoff_ms=backoff_ms)
    executor.machine = replace(executor.machine, config=config)


@asynccontextmanager
async def joining(
    chroot: str, name: str, topics: Mapping[str, int], *, waits_ms: int | None = None, **settings: str
) -> AsyncIterator[tuple[Member, asyncio.Task[None]]]:
    """A started member and the task in which it subscribes; both are ended at the end. See `wait_for_id`."""
    made = new_member(chroot, name, **settings)
    join: asyncio.Task[None] | None = None
    try:
        await made.consumer.start()
        if waits_ms is not None:
            wait_for_id(made, waits_ms)
        join = asyncio.create_task(made.consumer.subscribe(topics, made))
        yield made, join
    finally:
        await made.consumer.close()
        await cancel_and_wait(join)


async def fetches(who: Member) -> None:
    """Wait until it has started to fetch all partitions that it believes it owns since its last rebalance began."""

    async def all_started() -> bool:
        events = who.tracer.events
        began = max((i for i, e in enumerate(events) if e["kind"] == "rebalance_started"), default=0)
        started = {(e["topic"], e["partition"]) for e in events[began:] if e["kind"] == "position_started"}
        mine = {tp for has in who.consumer.assignment().values() for tp in has}
        return {(tp.topic, tp.partition) for tp in mine} <= started

    await until(all_started, 60, lambda: f"{who.id} to fetch {who.consumer.assignment()}")


async def at_rest(*members: Member) -> None:
    """Wait until every member has been notified of all membership changes, has read them, and has rebalanced."""
    for who in members:
        await who.session.sync("/")  # earlier notifications arrive before this response
        looks = 0

        def rests(who: Member = who) -> bool:
            nonlocal looks
            ids = paths.member_ids("g")
            notified = sum(event["path"] == ids for event in who.tracer.of("zk_notified"))
            answered = who.operations().count(("delivery", "getChildren", ids))
            executor = who.consumer._executor
            assert executor is not None
            looks = looks + 1 if notified == answered and executor.machine.state is RebalanceState.IDLE else 0
            return looks == 3  # its reaction to an answer takes another turn of the loop

        await until(rests, 60, f"{who.id} to be idle")


@asynccontextmanager
async def polling(*members: Member) -> AsyncIterator[None]:
    """Applications that poll continuously until their member is closed."""
    polls = [asyncio.create_task(_poll(who)) for who in members]
    try:
        yield
    finally:
        await cancel_and_wait(*polls)


async def _poll(who: Member) -> None:
    while True:
        await who.read()


def sever(link: ZooKeeperProxy) -> None:
    """Cut the member's process off: requests in flight never arrive, and it cannot reconnect before `mend`."""
    link.refuse()
    link.cut()


def mend(link: ZooKeeperProxy) -> None:
    link.refuse(False)


async def is_cut_off(who: Member) -> None:
    await until(
        lambda: who.session.state is not SessionState.CONNECTED, 10, f"{who.id} to lose its connection to ZooKeeper"
    )


async def lapse(chroot: str, *severed: Member) -> None:
    """End their sessions now, as their timeouts would. Those are long, so that no pause of a busy machine ends a
    session too early.
    """
    for who in severed:
        await asyncio.to_thread(end_session, chroot, who.session.credentials)


async def attempts(who: Member, number: int, outcome: str = "ok", *, timeout_s: float = 60) -> None:
    """Wait until `number` attempts have ended with `outcome`."""
    await until(
        lambda: len(outcomes(who, outcome)) >= number,
        timeout_s,
        lambda: f"{number} x {outcome} of {who.session.member}, got {outcomes(who)}",
    )


def outcomes(who: Member, only: str | None = None) -> list[str]:
    """The outcomes of its attempts."""
    ended = [str(event["outcome"]) for event in who.tracer.of("attempt_ended")]
    return [outcome for outcome in ended if only in (None, outcome)]


async def committed(session: ZooKeeperSession, tp: TopicPartition, group: str = "g") -> int | None:
    """The committed offset in ZooKeeper."""
    try:
        data, _ = await session.get(paths.offset(group, tp.topic, tp.partition))
    except NoNode:
        return None
    return int(data)


async def has(who: Member, tp: TopicPartition, number: int) -> None:
    """Wait until `number` records of a partition were delivered to it; another task must poll."""
    await until(
        lambda: len(who.records.get(tp, ())) >= number,
        60,
        lambda: f"{number} records of {tp} at {who.session.member}, got {who.records}",
    )


async def failure(join: asyncio.Task[None], *, timeout_s: float = 60) -> RebalanceLabError:
    """The exception that the join raised in the application."""
    await asyncio.wait({join}, timeout=timeout_s)
    assert join.done(), "the join neither failed nor succeeded"
    error = join.exception()
    assert isinstance(error, RebalanceLabError), f"the join ended with {error!r}"
    return error
