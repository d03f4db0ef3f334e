"""What a change of the group costs on a real ZooKeeper: every attempt equals the count model, to the last request.

The model is `tests/support/zookeeper/count_model.py`; the traces are also compared with the server's counters.
`tests/originals/test_counts_beside_the_original.py` compares our members with the originals.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from kernel.broker.broker import Broker
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.counters import read_counters
from tests.support.consumers.weak_members import begins
from tests.support.consumers.zookeeper import Member, led, member, new_member, produce, running_broker
from tests.support.zookeeper import count_model
from tests.support.zookeeper.count_model import Attempt, Shape
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import end_session
from zkconsumer.znodes.filters import TopicFilter

N, T, P, B = 3, 1, 6, 2
STEPS = ("R1", "R2", "R3", "R4", "R5", "R6", "R8", "R11")


# -- reading traces ------------------------------------------------------------------------------------------------


class Round:
    """What members traced since it began."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._since = {id(who): len(who.tracer.events) for who in members}

    def events(self, who: Member) -> list[dict[str, object]]:
        return who.tracer.events[self._since.get(id(who), 0) :]

    def requests(self, members: Sequence[Member]) -> Counter[str]:
        """The requests of all members as `step operation`, and the sums in the formulas."""
        counts: Counter[str] = Counter()
        for who in members:
            for event in self.events(who):
                if event["kind"] == "zk_op":
                    counts[f"{event['step']} {event['op']}"] += 1
                    read = event["op"] in count_model.READS
                    counts["reads" if read else "writes"] += 1
                    counts["ok reads" if read else "ok writes"] += bool(event["ok"])
                elif event["kind"] == "zk_notified":
                    counts["notifications"] += 1
        return counts

    def attempts(self, who: Member) -> list[tuple[Attempt, Counter[str]]]:
        """Each attempt as input of the model, and the requests that were traced in it."""
        found = []
        traced: list[dict[str, object]] = []
        owned: dict[str, int] = {"partitions_revoked": 0, "partitions_assigned": 0}
        for event in self.events(who):
            if event["kind"] == "attempt_started":
                traced = []
                owned = dict.fromkeys(owned, 0)
            elif event["kind"] == "zk_op":
                traced.append(event)
            elif event["kind"] in owned:
                owned[event["kind"]] += len(event["partitions"])
            elif event["kind"] == "attempt_ended":
                counts = Counter(f"{op['step']} {op['op']}" for op in traced if op["step"] in STEPS and not _folder(op))
                found.append((_described(traced, counts, owned, str(event["outcome"])), counts))
        return found

    def found_leaders(self, who: Member) -> bool:
        """Whether a rebalance has succeeded since then, and everything that it assigned is being fetched."""
        events = self.events(who)
        assigned = [i for i, event in enumerate(events) if event["kind"] == "partitions_assigned"]
        if not assigned:
            return False
        started = sum(event["kind"] == "position_started" for event in events[assigned[-1] :])
        return started == sum(map(len, who.consumer.assignment().values()))

    async def settled(self, members: Sequence[Member]) -> None:
        for who in members:
            await until(lambda w=who: self.found_leaders(w), 60, f"the rebalance of {who.id}")


def _folder(op: Mapping[str, object]) -> bool:
    """Whether the request creates the parent of a new topic's owners, or failed because it was missing."""
    in_owners = op["op"] == "create" and "/owners" in str(op["path"])
    return in_owners and (op["error"] == "NoNode" or paths.parse_owner(str(op["path"])) is None)


def _described(
    traced: Sequence[Mapping[str, object]], counts: Counter[str], owned: Mapping[str, int], outcome: str
) -> Attempt:
    """The member reports what it owned; what a failed attempt would have owned shows only in its reads."""
    commits = [op for op in traced if op["step"] == "R4"]
    # In a new session the member stops delivering the partitions that it no longer owns.
    forgot = owned["partitions_revoked"] and not counts["R5 delete"]
    return Attempt(
        owned_before=0 if forgot else owned["partitions_revoked"],
        owned_after=owned["partitions_assigned"] if outcome == "ok" else counts["R8 getData"],
        outcome=outcome,
        conflicts=counts["R11 getData"],
        committed=sum(op["op"] == "setData" for op in commits),
        first_commits=sum(op["op"] == "create" for op in commits),
    )


def failed_cost(attempts: Sequence[tuple[Attempt, Counter[str]]], shape: Shape) -> int:
    """Reads of the attempts that failed."""
    return sum(
        count_model.failed_attempt(shape, attempt.owned_after, attempt.conflicts)
        for attempt, _ in attempts
        if attempt.outcome != "ok"
    )


def every_attempt_is_the_model_s(happened: Round, members: Sequence[Member], shape: Shape) -> int:
    """Check each attempt step by step; returns the reads of failed ones."""
    attempts = [each for who in members for each in happened.attempts(who)]
    assert attempts
    for attempt, counts in attempts:
        expected = count_model.by_step(shape, attempt)
        leader_finder = {name for name in expected if name.startswith("leader-finder")}
        assert counts == Counter({name: n for name, n in expected.items() if name not in leader_finder})
    return failed_cost(attempts, shape)


# -- playing -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def two_brokers(chroot: str, data_dir: Path) -> AsyncIterator[Broker]:
    """Two registered brokers, of which the first leads topic t."""
    async with running_broker(chroot, data_dir, {"t": P}) as broker, running_broker(chroot, data_dir, {}, 1):
        yield broker


async def group_of(leaving: AsyncExitStack, chroot: str, number: int) -> list[Member]:
    """Members that joined one after the other, and have made their first commits."""
    members: list[Member] = []
    for position in range(number):
        happened = Round(members)
        members.append(await leaving.enter_async_context(member(chroot, f"c{position}", {"t": 1})))
        await happened.settled(members)
    return members


async def test_join_leave_and_crash_cost_as_modelled_and_as_counted_by_the_server(zookeeper, chroot, tmp_path):
    namespace = chroot.rsplit("/", 1)[1]
    port = zookeeper.servers[0].client_port

    async def served() -> tuple[int, int]:
        counters = await asyncio.to_thread(read_counters, "127.0.0.1", port)
        return counters.per_namespace.get(namespace, (0, 0))

    async with two_brokers(chroot, tmp_path) as broker, AsyncExitStack() as leaving:
        await produce(broker, "t", P, range(4))
        members = await group_of(leaving, chroot, N - 1)
        await asyncio.gather(*(who.read_until(4 * P // (N - 1)) for who in members))

        before, happened = await served(), Round(members)
        last = member(chroot, "c2", {"t": 1})
        members.append(await last.__aenter__())
        await happened.settled(members)
        join = happened.requests(members)
        check_join(happened, members, join)
        after = await served()
        assert (after[0] - before[0], after[1] - before[1]) == (join["ok reads"], join["ok writes"])

        happened = Round(members)
        leaver, *others = reversed(members)
        await last.__aexit__(None, None, None)
        await happened.settled(others)
        leave, of_leaver = happened.requests(others), happened.requests([leaver])
        check_leave(happened, others, leave)
        assert (of_leaver["notifications"], of_leaver["reads"]) == (1, 0)
        gone, both = await served(), leave + of_leaver
        # The session's end is one transaction; the server counts each deleted node: the id, P / N owners.
        assert (gone[0] - after[0], gone[1] - after[1]) == (both["ok reads"], both["ok writes"] + 1 + P // N)


async def test_watch_registered_by_one_read_saves_a_read_per_member(chroot, tmp_path):
    async with running_broker(chroot, tmp_path, {"t": P}), AsyncExitStack() as leaving:
        members: list[Member] = []
        for name in ("c0", "c1", "c2"):
            happened = Round(members)
            joining = member(chroot, name, {"t": 1}, watch_reads="one")
            members.append(await leaving.enter_async_context(joining))
            await happened.settled(members)
        shape = Shape(3, P)
        of_failed = every_attempt_is_the_model_s(happened, members, shape)
        join = happened.requests(members)
        assert join["reads"] == count_model.reads_of_join(shape) - 3 + of_failed
        assert join["notifications"] == count_model.notifications_of_join(3)

        happened = Round(members)
        await members[2].consumer.close()
        await happened.settled(members[:2])
        shape = Shape(2, P)
        of_failed = every_attempt_is_the_model_s(happened, members[:2], shape)
        leave = happened.requests(members[:2])
        assert leave["reads"] == count_model.reads_of_leave(shape) - 2 + of_failed


def check_join(happened: Round, members: Sequence[Member], join: Counter[str]) -> None:
    shape = Shape(N, P, T, B)
    of_failed = every_attempt_is_the_model_s(happened, members, shape)
    assert join["reads"] == count_model.reads_of_join(shape) + of_failed
    assert join["notifications"] == count_model.notifications_of_join(N)
    # Every partition was consumed since the second member joined and made its first commit.
    assert join["R4 setData"] == P
    rolled_back = join["R11 delete"]
    assert join["ok writes"] == count_model.writes_of_join(shape, commits=P) + 2 * rolled_back


def check_leave(happened: Round, others: Sequence[Member], leave: Counter[str]) -> None:
    shape = Shape(N - 1, P, T, B)
    of_failed = every_attempt_is_the_model_s(happened, others, shape)
    assert leave["reads"] == count_model.reads_of_leave(shape) + of_failed
    assert leave["notifications"] == count_model.notifications_of_leave(N - 1, graceful=True) - 1  # the leaver's own
    session_s_end = 1
    assert leave["ok writes"] + session_s_end == (
        count_model.writes_of_leave(shape, owned_by_leaver=P // N) + 2 * leave["R11 delete"]
    )


async def test_expiry_growth_and_crash_cost_as_modelled(chroot, tmp_path):
    with ZooKeeperProxy(chroot) as proxy, ZooKeeperProxy(chroot) as before_other:
        async with two_brokers(chroot, tmp_path) as broker, AsyncExitStack() as leaving:
            back = await leaving.enter_async_context(member(proxy.connect_string, "c0", {"t": 1}))
            other = await leaving.enter_async_context(member(before_other.connect_string, "c1", {"t": 1}))

            async def quiet() -> None:
                await proxy.quiet(0.4)
                await before_other.quiet(0.4)

            await quiet()
            happened = Round([back, other])
            proxy.refuse()  # otherwise it may reconnect to its session before that ends, and read more
            proxy.cut()
            await asyncio.to_thread(end_session, chroot, back.session.credentials)
            proxy.refuse(False)
            notified = ("delivery", "getData", "/brokers/topics/t")
            await until(lambda: notified in back.operations(), 60, "the listeners to be notified")
            await quiet()
            check_expiry(happened, back)

            happened = Round([back, other])
            held = [link.pause_at(begins) for link in (proxy, before_other)]
            await broker.cluster.grow_topic("t", partitions=P + 2)
            await led(broker, "t", P + 2)
            for pause in held:
                await pause.reached()
                pause.release()
            await happened.settled([back, other])
            await quiet()
            grown = Shape(2, P + 2, T, B)
            of_failed = every_attempt_is_the_model_s(happened, [back, other], grown)
            growth = happened.requests([back, other])
            assert growth["reads"] == count_model.reads_of_growth(grown) + of_failed
            assert growth["notifications"] == 2

            happened = Round([other])
            proxy.refuse()
            proxy.cut()
            await asyncio.to_thread(end_session, chroot, back.session.credentials)
            await happened.settled([other])
            await before_other.quiet(0.4)
            shape = Shape(1, P + 2, T, B)
            assert every_attempt_is_the_model_s(happened, [other], shape) == 0
            crash = happened.requests([other])
            assert crash["reads"] == count_model.reads_of_leave(shape)
            assert crash["notifications"] == count_model.notifications_of_leave(1, graceful=False)
            proxy.refuse(False)


def check_expiry(happened: Round, back: Member) -> None:
    shape = Shape(2, P, T, B)
    of_failed = every_attempt_is_the_model_s(happened, [back], shape)
    rebalances = sum(event["kind"] == "rebalance_ended" for event in happened.events(back))
    fewest, most = count_model.rebalances_of_expiry(T)
    assert fewest <= rebalances <= most
    reads = happened.requests([back])["reads"]
    assert reads == count_model.reads_of_expiry(shape, owned=P // 2, rebalances=rebalances) + of_failed
    first, _ = happened.attempts(back)[0]
    assert first.owned_before == 0  # others may own its partitions by now


async def test_patterns_mass_start_and_missing_broker_cost_as_modelled(chroot, tmp_path):
    with ZooKeeperProxy(chroot) as proxy:
        where = proxy.connect_string
        async with running_broker(chroot, tmp_path, {"t": P}) as broker:
            async with AsyncExitStack() as leaving:
                await check_patterns(proxy, broker, leaving)
            # A member was there before: the group's parents exist.
            async with member(where, "c0", {"t": 1}, group="m"):
                await proxy.quiet(0.4)
            await check_mass_start(where, proxy)
        async with member(where, "n1", {"t": 1}, group="n") as alone:
            await proxy.quiet(0.3)
            assert Round([]).requests([alone])["reads"] == count_model.NO_BROKER_READS


async def check_patterns(proxy: ZooKeeperProxy, broker: Broker, leaving: AsyncExitStack) -> None:
    pattern = TopicFilter.white("t|v")
    members: list[Member] = []
    for name in ("w1", "w2"):
        await proxy.quiet(0.4)
        happened = Round(members)
        # A new topic may have no leader yet: make sure that no member has to look twice.
        joiner = new_member(proxy.connect_string, name, group="w", refresh_leader_backoff_ms="3600000")
        leaving.push_async_callback(joiner.consumer.close)
        members.append(joiner)
        await joiner.consumer.start()
        await joiner.consumer.subscribe_pattern(pattern, 1, joiner)
    await proxy.quiet(0.4)
    shape = Shape(2, P, wildcard=True)
    of_failed = every_attempt_is_the_model_s(happened, members, shape)
    join = happened.requests(members)
    assert join["reads"] == count_model.reads_of_join(shape) + of_failed

    happened = Round(members)
    await broker.cluster.create_topic("v", partitions=2, replication_factor=1)
    await until(
        lambda: all(w.calls[-1][2] and len(w.calls[-1][2]) == (P + 2) // 2 for w in members),
        60,
        "the partitions of v to be shared",
    )
    await proxy.quiet(0.4)
    grown = Shape(2, P + 2, topics=2, wildcard=True)
    of_failed = every_attempt_is_the_model_s(happened, members, grown)
    appeared = happened.requests(members)
    assert appeared["reads"] == count_model.reads_of_new_topic(grown) + of_failed
    assert appeared["notifications"] == 2


async def check_mass_start(where: str, proxy: ZooKeeperProxy) -> None:
    shape = Shape(N, P)
    async with AsyncExitStack() as leaving:
        coming = [member(where, f"c{number}", {"t": 1}, group="m") for number in range(N)]
        members = list(await asyncio.gather(*(leaving.enter_async_context(each) for each in coming)))
        await proxy.quiet(0.5)
        happened = Round([])
        best, worst = count_model.reads_of_mass_start(shape)
        attempts = [each for who in members for each in happened.attempts(who)]
        assert sum(attempt.outcome == "ok" for attempt, _ in attempts) >= N
        assert best <= happened.requests(members)["reads"] <= worst + failed_cost(attempts, shape)
        fewest, most = count_model.notifications_of_mass_start(N)
        assert fewest <= happened.requests(members)["notifications"] <= most
