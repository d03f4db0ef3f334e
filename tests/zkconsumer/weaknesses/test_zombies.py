"""A member that is cut off from ZooKeeper but not from Kafka keeps delivering and notices nothing.

On the originals: the fetcher ran during the whole cut, past the expiry, and afterwards both offsets moved back.
`test_frozen_members.py` freezes a whole member.
"""

from __future__ import annotations

import pytest

from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper.operations import SessionState
from tests.support.consumers.weak_members import has, is_cut_off, joined, lapse, mend, polling, sever
from tests.support.consumers.zookeeper import produce, running_broker, settled, shared
from tests.support.zookeeper.sessions import opened

MINE = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("settings", "delivers"),
    [
        pytest.param({}, True, id="default"),
        pytest.param({"fix_stop_on_disconnect": "true"}, False, id="stops on disconnect"),
    ],
)
async def test_member_cut_off_only_from_zookeeper_delivers_past_its_expiry(chroot, tmp_path, settings, delivers, link):
    async with (
        running_broker(chroot, tmp_path, {"t": 2}) as broker,
        opened(chroot) as session,
        joined(chroot, "c2", {"t": 1}, **settings) as c2,
        joined(link.connect_string, "c1", {"t": 1}, zookeeper_session_timeout_ms="30000", **settings) as c1,
        polling(c1, c2),
    ):
        await settled(session, shared("t", ("g_c1-0", [0]), ("g_c2-0", [1])))
        await produce(broker, "t", 2, range(5))
        await has(c1, MINE, 5)
        old = c1.session.session_id
        sever(link)
        await is_cut_off(c1)
        await lapse(chroot, c1)
        await settled(session, shared("t", ("g_c2-0", range(2))))
        if not delivers:
            await until(lambda: c1.consumer.assignment() == {0: frozenset()}, 60, "c1 to stop")
        # It has expired, and another member owns these: both the owner and the zombie deliver what comes now.
        await produce(broker, "t", 2, range(5, 15))
        await has(c2, MINE, 15)
        if delivers:
            await has(c1, MINE, 15)
            assert c1.consumer.assignment() == {0: frozenset({MINE})}
        else:
            assert c1.records[MINE] == list(range(5))
            assert c1.consumer.assignment() == {0: frozenset()}
        mend(link)
        await settled(session, shared("t", ("g_c1-0", [0]), ("g_c2-0", [1])))
        assert c1.session.session_id != old


@pytest.mark.parametrize(
    ("settings", "delivers"),
    [
        pytest.param({}, True, id="default"),
        pytest.param({"fix_stop_on_disconnect": "true"}, False, id="stops on disconnect"),
    ],
)
async def test_fetchers_are_not_notified_of_a_short_cut(chroot, tmp_path, settings, delivers, link):
    """The session outlives the cut, so no other member takes over; this also shows the cost of the fix."""
    async with (
        running_broker(chroot, tmp_path, {"t": 1}) as broker,
        joined(link.connect_string, "c1", {"t": 1}, **settings) as c1,
        polling(c1),
    ):
        await produce(broker, "t", 1, range(5))
        await has(c1, MINE, 5)
        old = c1.session.session_id
        sever(link)
        await is_cut_off(c1)
        await produce(broker, "t", 1, range(5, 10))
        if delivers:
            await has(c1, MINE, 10)
        else:
            await until(lambda: c1.consumer.assignment() == {0: frozenset()}, 60, "c1 to stop")
            assert c1.records[MINE] == list(range(5))
        mend(link)
        await until(lambda: c1.session.state is SessionState.CONNECTED, 60, "c1 to be connected again")
        await has(c1, MINE, 10)
        assert c1.records[MINE] == list(range(10))
        assert c1.session.session_id == old
        assert c1.rebalances() == 1
