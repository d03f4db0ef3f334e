"""What a membership change costs on a real ZooKeeper: equal to the count model, and to the server's own counters.

N members, T topics, P partitions, B brokers. A join costs N^2 + N(T+3B+9) + P + T reads and 1 + 2P + U writes, a
leave N^2 + N(T+3B+9) + P reads, plus what failed attempts cost; notifications are N-1 and N (and one to a graceful
leaver itself). Measured on 160 rounds of the originals; nothing about our client differs.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

from kernel.waiting import until
from kernel.zookeeper.counters import read_counters
from tests.support.zk_consumers import Member, counted, member, produce, reads_predicted, running_broker

N, T, P, B = 3, 1, 6, 1


def leader_found(who: Member, since: int) -> bool:
    """A rebalance has succeeded since then, and everything that it gave is being fetched."""
    events = who.tracer.events[since:]
    assigned = [i for i, event in enumerate(events) if event["kind"] == "partitions_assigned"]
    if not assigned:
        return False
    started = sum(event["kind"] == "position_started" for event in events[assigned[-1] :])
    return started == sum(map(len, who.consumer.assignment().values()))


def since_of(members: list[Member]) -> dict[str, int]:
    return {who.id: len(who.tracer.events) for who in members}


async def quiet(members: list[Member], marks: dict[str, int]) -> None:
    for who in members:
        await until(lambda w=who: leader_found(w, marks.get(w.id, 0)), 15, f"the rebalance of {who.id}")


def in_all(members: list[Member], marks: dict[str, int]) -> Counter[str]:
    total: Counter[str] = Counter()
    for who in members:
        total += counted(who, marks.get(who.id, 0))
        events = who.tracer.events[marks.get(who.id, 0) :]
        total["notifications"] += sum(event["kind"] == "zk_notified" for event in events)
        total["commits"] += sum(event["kind"] == "commit_answered" for event in events)
    return total


def attempts(members: list[Member], marks: dict[str, int]) -> list[dict[str, object]]:
    return [e for who in members for e in who.tracer.events[marks.get(who.id, 0) :] if e["kind"] == "attempt_ended"]


def test_a_join_and_a_leave_cost_what_the_model_says_and_the_server_counts_the_same(zookeeper, chroot, tmp_path):
    namespace = chroot.rsplit("/", 1)[1]
    port = zookeeper.servers[0].client_port

    def served() -> tuple[int, int]:
        return read_counters("127.0.0.1", port).per_namespace.get(namespace, (0, 0))

    async def rounds() -> None:
        async with running_broker(chroot, tmp_path, {"t": P}) as broker, AsyncExitStack() as leaving:
            await produce(broker, "t", P, range(4))
            members: list[Member] = []
            for number in range(N - 1):
                marks = since_of(members)
                members.append(await leaving.enter_async_context(member(chroot, f"c{number}", {"t": 1})))
                await quiet(members, marks)
            await asyncio.gather(*(who.read_until(4 * P // (N - 1)) for who in members))

            before = await asyncio.to_thread(served)
            marks = since_of(members)
            last = member(chroot, f"c{N - 1}", {"t": 1})
            members.append(await last.__aenter__())
            await quiet(members, marks)
            join = in_all(members, marks)
            after = await asyncio.to_thread(served)
            check_join(join, attempts(members, marks))
            assert (after[0] - before[0], after[1] - before[1]) == served_by(join)

            marks = since_of(members)
            leaver = members.pop()
            await last.__aexit__(None, None, None)
            await quiet(members, marks)
            leave = in_all(members, marks)
            gone = await asyncio.to_thread(served)
            check_leave(leave, in_all([leaver], marks), attempts(members, marks))
            reads, writes = served_by(leave + in_all([leaver], marks))
            # The session's end is one transaction; the server counts each node that it removed: the id, P / N owners.
            assert (gone[0] - after[0], gone[1] - after[1]) == (reads, writes + 1 + P // N)

    asyncio.run(rounds())


def served_by(counts: Counter[str]) -> tuple[int, int]:
    return counts["ok reads"], counts["ok writes"]


def check_join(join: Counter[str], ended: list[dict[str, object]]) -> None:
    failed = [event for event in ended if event["outcome"] != "ok"]
    conflicts = join["R11 getData"]
    formula = N**2 + N * (T + 3 * B + 9) + P + T
    of_failed = reads_predicted(failed, members=N, topics=T, brokers=B) + conflicts
    # Offsets read in vain by a failed attempt: P are read by the good ones.
    in_vain = join["R8 getData"] - P
    assert join["reads"] == formula + of_failed + in_vain
    assert join["notifications"] == N - 1
    # U: something was consumed of each partition. The reset of -1 to 0 was committed when the second one joined, so
    # that every offset node exists and each commit is one request.
    assert join["commits"] == P
    of_failed_writes = join["R11 create"] - P + join["R11 delete"]
    assert join["writes"] == 1 + 2 * P + join["commits"] + of_failed_writes
    assert len(ended) - len(failed) == N


def check_leave(leave: Counter[str], leaver: Counter[str], ended: list[dict[str, object]]) -> None:
    n = N - 1
    # A graceful leaver's nodes are all gone before anybody is told: no conflict with it, maybe among the others.
    failed = [event for event in ended if event["outcome"] != "ok"]
    of_failed = reads_predicted(failed, members=n, topics=T, brokers=B) + leave["R11 getData"]
    assert leave["reads"] == n**2 + n * (T + 3 * B + 9) + P + of_failed + leave["R8 getData"] - P
    assert leave["notifications"] == n
    assert leaver["notifications"] == 1
    assert leaver["reads"] == 0
    owned_by_others = P - P // N
    assert leave["R5 delete"] == owned_by_others
    assert leave["R11 create"] >= P
