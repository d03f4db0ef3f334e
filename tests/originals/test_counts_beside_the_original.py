"""Our members and the originals, each group behind a counting proxy of the same kind: the same table of requests.

A change is a mass start, a leave or a join of N members in a group that existed before. The count model subtracts what
failed attempts cost, since conflicts depend on timing; the rest must be equal, kind by kind.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

import pytest

from comparison.originals.brokers import RealBroker
from comparison.originals.hosts import OriginalHost, OriginalMember
from kernel.zookeeper import paths
from tests.support.consumers.zookeeper import Member, new_member
from tests.support.java.originals import real_broker
from tests.support.zookeeper import count_model
from tests.support.zookeeper.count_model import Shape
from tests.support.zookeeper.proxy import Op, ZooKeeperProxy

P = 12
TOPIC = "counted"
HOSTS = {"0.8.2.2": "host_0_8", "1.1.1": "host_1_1"}
RELEASES = {"0.8.2.2": "0.8.2", "1.1.1": "1.1"}
SETTINGS = {
    "rebalance.backoff.ms": "200",
    "rebalance.max.retries": "20",
    "zookeeper.session.timeout.ms": "30000",
    "auto.offset.reset": "smallest",
    "auto.commit.interval.ms": "3600000",
}
#: Much longer than a backoff: a member whose attempt failed tries again within it.
QUIET_S = 0.7
#: Of all changes in `play`: the first one is the join of the member that was there before.
MEASURED_LEAVE = 2


class Members(Protocol):
    """Members of one kind, by name."""

    async def join(self, name: str, group: str, zookeeper: str) -> None: ...
    async def leave(self, name: str) -> None: ...
    async def ran(self) -> None:
        """Return when the members have had a turn to react."""


class Ours:
    def __init__(self, release: str) -> None:
        self._settings = SETTINGS | {"kafka.release": release}
        self._members: dict[str, Member] = {}

    async def join(self, name: str, group: str, zookeeper: str) -> None:
        settings = {key.replace(".", "_"): value for key, value in self._settings.items()}
        member = self._members[name] = new_member(zookeeper, name, group=group, **settings)
        await member.consumer.start()
        await member.consumer.subscribe({TOPIC: 1}, member)

    async def leave(self, name: str) -> None:
        await self._members.pop(name).consumer.close()

    async def ran(self) -> None:
        """They run in this process."""


class Theirs:
    def __init__(self, host: OriginalHost) -> None:
        self._host = host
        self._members: dict[str, OriginalMember] = {}

    async def join(self, name: str, group: str, zookeeper: str) -> None:
        self._members[name] = await self._host.join(
            name, zookeeper=zookeeper, group=group, topics={TOPIC: 1}, properties=SETTINGS, consuming=False
        )

    async def leave(self, name: str) -> None:
        await self._members.pop(name).leave()

    async def ran(self) -> None:
        await self._host.answers()


class FrozenInALeave(Theirs):
    """The originals' process is stopped for a while as soon as the first measured member has left."""

    def __init__(self, host: OriginalHost) -> None:
        super().__init__(host)
        self._leaves = 0

    async def leave(self, name: str) -> None:
        await super().leave(name)
        self._leaves += 1
        if self._leaves == MEASURED_LEAVE:
            self._host.freeze()
            asyncio.get_running_loop().call_later(3 * QUIET_S, self._host.thaw)


@dataclass(frozen=True)
class Change:
    """One change as measured. `table` excludes failed attempts; its keys are operation, kind of path and result."""

    what: str
    shape: Shape
    tally: count_model.Tally
    table: Counter[str]
    notifications: int


async def play(members: Members, group: str, size: int, zookeeper: str, brokers: int) -> list[Change]:
    everybody = [f"m{number}" for number in range(size)]
    last = everybody[-1]
    changes = []
    with ZooKeeperProxy(zookeeper) as proxy:
        where = proxy.connect_string
        await members.join(last, group, where)
        await proxy.quiet(QUIET_S, ran=members.ran)
        await members.leave(last)
        await proxy.quiet(QUIET_S, ran=members.ran)

        async def change(what: str, after: int, *doing: Awaitable[None]) -> None:
            mark = proxy.mark()
            await asyncio.gather(*doing)
            await proxy.quiet(QUIET_S, ran=members.ran)
            shape = Shape(after, P, brokers=brokers)
            ops = proxy.operations(mark)
            tally = count_model.tally([(op.connection, op.op, op.path, op.result) for op in ops], group)
            table = without_failed(Counter(kind(op, group) for op in ops), tally, shape)
            changes.append(Change(what, shape, tally, table, len(proxy.events(mark))))

        await change("mass start", size, *(members.join(name, group, where) for name in everybody))
        await change("leave", size - 1, members.leave(last))
        await change("join", size, members.join(last, group, where))
        for name in everybody:
            # One of 0.8.2.2 that leaves in the middle of a rebalance goes through all its retries first.
            await proxy.quiet(QUIET_S / 2, ran=members.ran)
            await members.leave(name)
    return changes


def kind(op: Op, group: str) -> str:
    """`operation kind-of-path result`."""
    parents = {paths.CONSUMERS, paths.group(group), paths.member_ids(group)}
    if op.op == "create" and op.path in parents:
        about = "folder"
    elif paths.parse_member_id(op.path):
        about = "registration"
    elif paths.parse_owner(op.path):
        about = "owner"
    elif paths.parse_offset(op.path):
        about = "offset"
    else:
        about = op.path.replace(f"/{group}", "/G")
        about = "broker" if about.startswith(f"{paths.BROKER_IDS}/") else about
    return f"{op.op} {about} {op.result}"


def without_failed(table: Counter[str], tally: count_model.Tally, shape: Shape) -> Counter[str]:
    """The table without the cost of conflicts: reads by the model; offsets and owners by measured numbers."""
    failed = tally.failed
    rolled_back = sum(n for what, n in table.items() if what.startswith("create owner ok"))
    kept = table - Counter(
        {
            "getChildren /brokers/ids ok": 2 * failed,
            "getData broker ok": 2 * shape.brokers * failed,
            "getData registration ok": (shape.members + 2) * failed,
            "getChildren /consumers/G/ids ok": 2 * failed,
            f"getData /brokers/topics/{TOPIC} ok": shape.topics * failed,
        }
    )
    for what in ("getData owner ok", "getData owner NoNode", "create owner NodeExists"):
        del kept[what]
    # As many claims and releases as there are partitions; any more of both were rolled back.
    surplus = rolled_back - shape.partitions
    kept["create owner ok"] -= surplus
    kept["delete owner ok"] -= surplus
    kept["getData offset ok"] = shape.partitions
    return +kept


@pytest.mark.parametrize("brokers", [1, 2])
@pytest.mark.parametrize("version", HOSTS)
def test_our_members_and_the_originals_make_the_same_requests(version, brokers, broker_1_1, request, tmp_path):
    host = request.getfixturevalue(HOSTS[version])
    topic_once(broker_1_1)
    zookeeper = broker_1_1.zookeeper

    async def script() -> None:
        for size in (3, 5):
            name = f"{version.replace('.', '-')}-{brokers}-{size}"
            ours, theirs = await asyncio.gather(
                play(Ours(RELEASES[version]), f"ours-{name}", size, zookeeper, brokers),
                play(Theirs(host), f"theirs-{name}", size, zookeeper, brokers),
            )
            for one, other in zip(ours, theirs, strict=True):
                check_model(one, RELEASES[version])
                check_model(other, RELEASES[version])
                if one.what != "mass start":
                    assert dict(sorted(one.table.items())) == dict(sorted(other.table.items())), (one.what, size)
                    assert one.notifications == other.notifications

    with ExitStack() as stack:
        if brokers == 2:
            stack.enter_context(real_broker("1.1.1", tmp_path, zookeeper=zookeeper, node_id=2))
        asyncio.run(script())


def test_frozen_originals_are_waited_for(broker_1_1, host_0_8):
    """A busy machine can freeze them; their silence was once mistaken for the end of the change."""
    topic_once(broker_1_1)
    zookeeper = broker_1_1.zookeeper
    for change in asyncio.run(play(FrozenInALeave(host_0_8), "frozen", 3, zookeeper, 1)):
        check_model(change, "0.8.2")


def topic_once(broker: RealBroker) -> None:
    if TOPIC not in _made.setdefault(broker.zookeeper or "", set()):
        broker.create_topic(TOPIC, P)
        _made[broker.zookeeper or ""].add(TOPIC)


_made: dict[str, set[str]] = {}


def check_model(change: Change, release: str) -> None:
    shape, tally = change.shape, change.tally
    of_failed = tally.reads_of_failed(shape)
    if change.what == "mass start":
        best, worst = count_model.reads_of_mass_start(shape, release=release)
        assert best <= tally.reads <= worst + of_failed
        fewest, most = count_model.notifications_of_mass_start(shape.members)
        assert fewest <= change.notifications <= most
        return
    join = change.what == "join"
    reads = count_model.reads_of_join(shape, release=release) if join else count_model.reads_of_leave(shape)
    assert tally.reads == reads + of_failed, change
    notifications = (
        count_model.notifications_of_join(shape.members)
        if join
        else count_model.notifications_of_leave(shape.members, graceful=True)
    )
    assert change.notifications == notifications
