"""Watches on member ids with a real ZooKeeper: what is read, how often, and after the session is lost."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

from coordinator.groups.effects import ForgetIds, ReadAgain, WatchIds
from coordinator.protocol.server.member_znode import registration_payload
from coordinator.service.member_watches import Ids, MemberWatches
from kernel.broker.settings.configuration import BrokerConfig
from kernel.runtime import REAL
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.errors import SessionFailed, Unanswered
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.sessions import end_session, fail, opened

GROUP = "g"


class Watching:
    """A `MemberWatches` and what it reports."""

    def __init__(self, zookeeper: str) -> None:
        config, _ = BrokerConfig.from_settings({"zookeeper.session.timeout.ms": "15000"})
        self.tracer = ListTracer(process="broker-1")
        services: Any = SimpleNamespace(zookeeper=zookeeper, config=config, tracer=self.tracer, node_id=1, runtime=REAL)
        self.watches = MemberWatches(services)
        self.reports: list[Ids] = []
        self.mistakes: list[BaseException] = []

    def watch(self, watch: WatchIds | ReadAgain | ForgetIds) -> None:
        self.watches.watch(watch, "a partition", self.reports.append, self.mistakes.append)

    async def reported(self, ids: Ids) -> None:
        await until(lambda: self.reports[-1:] == [ids], 60, lambda: f"{ids} to be reported: {self.reports}")

    def reads(self, op: str) -> list[str]:
        return [event["path"].rsplit("/", 1)[1] for event in self.tracer.of("zk_op") if event["op"] == op]


async def test_ids_are_read_once_each_and_the_watch_outlives_the_session(chroot: str) -> None:
    watching = Watching(chroot)
    async with opened(chroot) as member:
        watching.watch(WatchIds(GROUP))
        await watching.reported({})  # there is nothing, not even the parent
        a, b, foreign = (paths.member_id(GROUP, name) for name in ("a", "b", "foreign"))
        await member.create(a, registration_payload(("t",), 0), ephemeral=True, makepath=True)
        await watching.reported({"a": ("t",)})
        await member.create(foreign, b'{"version":1,"subscription":{"t":1},"pattern":"static","timestamp":"1"}')
        await member.create(b, registration_payload(("u", "t"), 0), ephemeral=True)
        await watching.reported({"a": ("t",), "b": ("t", "u")})
        assert sorted(watching.reads("getData")) == ["a", "b", "foreign"]
        # Data is not watched: it is read again on request.
        await member.set(a, registration_payload(("u",), 0))
        watching.watch(ReadAgain(GROUP, "a"))
        await watching.reported({"a": ("u",), "b": ("t", "u")})
        assert watching.reads("getData").count("b") == 1
        # The session ends, with its watches; what happens meanwhile is not missed.
        opening = watching.watches._opening
        assert opening is not None
        session = opening.result()
        await asyncio.to_thread(end_session, chroot, session.credentials)
        await member.delete(b)
        await watching.reported({"a": ("u",)})
        assert len({event["session"] for event in watching.tracer.of("session_changed")}) == 2
        await member.delete(a)
        await watching.reported({})
        # No group watches now: nothing is read.
        watching.watch(ForgetIds(GROUP))
        reads = len(watching.reads("getChildren"))
        await member.create(b, registration_payload(("t",), 0), ephemeral=True)
        await session.sync("/")
        assert len(watching.reads("getChildren")) == reads
    await watching.watches.stop()


async def test_watches_of_two_groups_share_a_session_and_may_end_while_it_opens(chroot: str) -> None:
    watching = Watching(chroot)
    watching.watch(WatchIds(GROUP))
    watching.watch(ForgetIds(GROUP))
    await watching.watches.stop()
    assert not watching.reports
    again = Watching(chroot)
    again.watch(WatchIds(GROUP))
    again.watch(WatchIds("other"))
    await until(lambda: len(again.reports) == 2, 60, "both groups to be read")
    assert len({event["session"] for event in again.tracer.of("session_changed")}) == 1
    await again.watches.stop()


async def test_group_that_comes_and_goes_keeps_one_watch(chroot: str) -> None:
    watching = Watching(chroot)
    for times in range(1, 4):
        watching.watch(WatchIds(GROUP))
        await until(lambda times=times: len(watching.reports) == times, 60, "the ids to be read")
        watching.watch(ForgetIds(GROUP))
    assert watching.watches._opening is not None
    assert len(watching.watches._opening.result()._watches) == 1
    # Every later read finds it.
    watching.watch(WatchIds(GROUP))
    await until(lambda: len(watching.reports) == 4, 60, "the ids to be read")
    async with opened(chroot) as member:
        await member.create(paths.member_id(GROUP, "a"), registration_payload(("t",), 0), ephemeral=True, makepath=True)
        await watching.reported({"a": ("t",)})
    await watching.watches.stop()


def readable(chroot: str, path: str, *, by_all: bool) -> None:
    """Make a znode readable by all clients, or only with the password."""
    admin = KazooClient(chroot, auth_data=[("digest", "admin:secret")])
    admin.start()
    admin.set_acls(path, OPEN_ACL_UNSAFE if by_all else [make_digest_acl("admin", "secret", all=True)])
    admin.stop()
    admin.close()


async def test_ids_without_permission_are_seen_once_readable(chroot: str) -> None:
    watching, ids = Watching(chroot), paths.member_ids(GROUP)
    async with opened(chroot) as member:
        await member.create(paths.member_id(GROUP, "a"), registration_payload(("t",), 0), makepath=True)
        await asyncio.to_thread(readable, chroot, ids, by_all=False)
        watching.watch(WatchIds(GROUP))
        await until(lambda: "ids" in watching.reads("getChildren"), 60, "the ids to be read without permission")
        assert not watching.reports
        await asyncio.to_thread(readable, chroot, ids, by_all=True)
        await watching.reported({"a": ("t",)})
    await watching.watches.stop()


async def test_ids_that_zookeeper_does_not_answer_in_time_are_asked_for_again(
    chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watching, path = Watching(chroot), paths.member_id(GROUP, "a")
    async with opened(chroot) as member:
        await member.create(path, registration_payload(("t",), 0), makepath=True)
        watching.watch(WatchIds(GROUP))
        await watching.reported({"a": ("t",)})
        assert watching.watches._opening is not None
        session = watching.watches._opening.result()
        real, unanswered = session.get, [Unanswered("too slow", path)]

        async def get(path: str, **how: Any) -> Any:
            if unanswered:
                raise unanswered.pop()
            return await real(path, **how)

        monkeypatch.setattr(session, "get", get)
        await member.set(path, registration_payload(("u",), 0))
        watching.watch(ReadAgain(GROUP, "a"))
        await watching.reported({"a": ("u",)})
        assert not unanswered
        assert not watching.mistakes
    await watching.watches.stop()


async def test_bug_in_the_session_ends_the_watching(chroot: str) -> None:
    watching = Watching(chroot)
    watching.watch(WatchIds(GROUP))
    await watching.reported({})
    assert watching.watches._opening is not None
    await fail(watching.watches._opening.result())
    await until(lambda: watching.mistakes, 60, "the bug to be reported")
    assert isinstance(watching.mistakes[0], SessionFailed)
    await watching.watches.stop()
