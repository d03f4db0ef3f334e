"""Members read from different servers of an ensemble, one of which lags: their lists differ, their claims overlap.

They disagree and attempts fail, but there are never two owners: owner nodes are written through the leader.
"""

from __future__ import annotations

import asyncio

import pytest

from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.servers import Limits, followers_of, leader_of
from tests.faults.linked_ensemble import linked_ensemble
from tests.support.consumers.weak_members import attempts, joined, joining, outcomes, releases
from tests.support.consumers.zookeeper import running_broker, settled, shared
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import opened

pytestmark = pytest.mark.faults

#: A server that is cut off serves stale reads until it gives up its leader, so the whole test has to fit into this.
SYNC_LIMIT_S = 60


def after_the_release(link):
    """Matches the first read, or sync, after R5, where the group is read."""
    state = {"released": 0}

    def match(op):
        if releases(op):
            state["released"] += 1
        return state["released"] > 0 and op.op in ("getData", "sync")

    return match


@pytest.mark.parametrize(
    ("settings", "conflicts"),
    [pytest.param({}, 1, id="default"), pytest.param({"fix_sync_before_reads": "true"}, 0, id="sync before reads")],
)
async def test_member_at_a_lagging_server_assigns_by_an_old_list_and_conflicts(tmp_path, settings, conflicts):
    async def stands_at_its_first_answerless_request(link):
        def waits():
            last = link.operations()[-1]
            return last.op in ("create", "sync") and last.result is None

        await until(waits, 60, lambda: f"c1 to wait for the leader, last {link.operations()[-3:]}")

    async with linked_ensemble(tmp_path, Limits(tick_ms=500, sync_limit=2 * SYNC_LIMIT_S)) as (servers, links):
        lagging = await asyncio.to_thread(lambda: followers_of(servers.servers)[0])
        leader = await asyncio.to_thread(leader_of, servers.servers)
        given = {"zookeeper_session_timeout_ms": "30000"} | settings
        with ZooKeeperProxy(lagging.address) as link:
            async with (
                running_broker(leader.address, tmp_path / "broker", {"t": 6}),
                opened(leader.address) as session,
                joined(link.connect_string, "c1", {"t": 1}, **given) as c1,
            ):
                paused = link.pause_at(after_the_release(link))
                async with joining(leader.address, "c2", {"t": 1}) as (_, second):
                    await paused.reached()
                    await asyncio.wait_for(second, 60)
                    links.cut(lagging.number)
                    async with joining(leader.address, "c3", {"t": 1}) as (_, third):
                        await asyncio.wait_for(third, 60)
                        await settled(session, shared("t", ("g_c2-0", [2, 3]), ("g_c3-0", [4, 5])))
                        paused.release()
                        await stands_at_its_first_answerless_request(link)
                        links.heal()
                        await attempts(c1, 2)
                        every = (("g_c1-0", [0, 1]), ("g_c2-0", [2, 3]), ("g_c3-0", [4, 5]))
                        await settled(session, shared("t", *every))
                        assert outcomes(c1, "conflict") == ["conflict"] * conflicts
                        read = [op for op in link.operations() if op.path.startswith("/consumers/g/ids/")]
                        assert paths.member_id("g", "g_c3") in {op.path for op in read}
