"""Operations for one session only: done in it, or not at all, however late its end is noticed."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kernel.waiting import wait_until
from kernel.zookeeper import errors
from kernel.zookeeper.operations import SessionState
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import become, end_session, expire, opened


async def test_an_operation_for_one_session_is_done_while_that_session_lives(chroot):
    async with opened(chroot, retry_forever=True) as session:
        await session.create("/n", b"1", only_in=session.session_id)
        await session.set("/n", b"2", only_in=session.session_id)
        assert (await session.get("/n"))[0] == b"2"


@pytest.mark.parametrize("bound", [True, False])
async def test_waiting_operation_goes_into_a_new_session_only_if_allowed(chroot, bound):
    with ZooKeeperProxy(chroot) as proxy:
        async with opened(proxy.connect_string, retry_forever=True) as session, opened(chroot) as direct:
            await session.create("/n", b"before")
            old = session.session_id
            proxy.refuse(True)
            proxy.cut()
            await become(session, SessionState.SUSPENDED)
            waiting = asyncio.ensure_future(session.set("/n", b"stale", only_in=old if bound else 0))
            await asyncio.to_thread(end_session, chroot, session.credentials)
            proxy.refuse(False)
            if bound:
                with pytest.raises(errors.SessionExpired):
                    await waiting
            else:
                await waiting
            await session.wait_connected()
            assert session.session_id != old
            assert (await direct.get("/n"))[0] == (b"before" if bound else b"stale")


async def test_operations_of_an_ended_session_are_not_sent_in_the_next_one(chroot):
    async with opened(chroot, retry_forever=True) as session, opened(chroot) as direct:
        await session.create("/n", b"before")
        old = session.session_id
        ender = threading.Thread(target=end_session, args=(chroot, session.credentials))
        ender.start()
        # Blocks the loop on purpose, until kazoo's thread is in the next session.
        wait_until(lambda: session.credentials[0] not in (0, old), 60, "a new session")
        assert (session.session_id, session.state) == (old, SessionState.CONNECTED)
        with pytest.raises(errors.SessionExpired):
            await session.set("/n", b"stale", only_in=old)
        ender.join()
        assert (await direct.get("/n"))[0] == b"before"


@pytest.mark.parametrize("operation", ["create", "set"])
async def test_operation_for_an_ended_session_is_refused_without_a_request(chroot, operation):
    async with opened(chroot, retry_forever=True) as session:
        old = session.session_id
        await expire(session)
        await session.wait_connected()
        with pytest.raises(errors.SessionExpired, match="is over"):
            await getattr(session, operation)("/m", b"", only_in=old)
        assert await session.exists("/m") is None
