"""Whatever clients send to a group, and whenever they disconnect: it answers, and afterwards accepts members."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel.wire.errors import ErrorCode
from kernel.wire.versions import SERVED, Api
from tests.support.coordinators.in_memory import HandlerConnection, LoneCoordinator
from tests.support.groups.classic import assignment, subscription
from tests.support.properties import examples
from tests.support.time.manual_clock import ManualClock
from tests.support.time.virtual_time import run_virtually

GROUP = "g"
BROKER = {
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "100",
    "group.min.session.timeout.ms": "300",
    "group.max.size": "4",
}
CONNECTIONS = ("w", "x", "y", "z")
#: Which member is meant: none, one that never existed, or one that was named in an answer, counted from the last.
MEMBERS = st.one_of(st.sampled_from(["", "nobody"]), st.integers(1, 5))
INSTANCES = st.sampled_from([None, None, None, "", "i", "j"])
GENERATIONS = st.sampled_from([-(2**31), -1, 0, 1, 2, 3, 4, 2**31 - 1])
LONGEST_MS = 1_800_000
TIMEOUTS = st.sampled_from([-1, 0, 300, 2_000, 30_000, LONGEST_MS])
METADATA = st.sampled_from([b"", b"junk", subscription("t"), subscription("u")])
PROTOCOLS = st.lists(
    st.builds(lambda name, data: {"name": name, "metadata": data}, st.sampled_from(["range", "else", ""]), METADATA),
    max_size=3,
)
ASSIGNED = st.sampled_from([b"", b"junk", assignment("t", 0), assignment("nowhere", 7)])
TYPES = st.sampled_from(["consumer", "consumer", "connect", ""])


def request(api: Api, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lowest, highest = SERVED[api]
    if api is Api.OffsetCommit:
        lowest = 1  # version 0 commits to ZooKeeper, which a lone coordinator has not
    versions = st.integers(lowest, highest)
    return st.tuples(st.sampled_from(CONNECTIONS), st.just(api), versions, st.fixed_dictionaries(fields))


IDENTITY = {"member_id": MEMBERS, "group_instance_id": INSTANCES}
COMMITTED = {"committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": ""}
COMMIT = [{"name": "t", "partitions": [{"partition_index": 0, **COMMITTED}]}]
STEPS = st.one_of(
    request(
        Api.JoinGroup,
        **IDENTITY,
        session_timeout=TIMEOUTS,
        rebalance_timeout=TIMEOUTS,
        protocol_type=TYPES,
        protocols=PROTOCOLS,
    ),
    request(
        Api.SyncGroup,
        **IDENTITY,
        generation_id=GENERATIONS,
        protocol_type=st.one_of(st.none(), TYPES),
        protocol_name=st.sampled_from([None, "range", "else"]),
        assignments=st.lists(
            st.builds(lambda member, data: {"member_id": member, "assignment": data}, MEMBERS, ASSIGNED), max_size=3
        ),
    ),
    request(Api.Heartbeat, **IDENTITY, generation_id=GENERATIONS),
    request(
        Api.LeaveGroup,
        member_id=MEMBERS,
        members=st.lists(
            st.builds(
                lambda member, instance: {"member_id": member, "group_instance_id": instance}, MEMBERS, INSTANCES
            ),
            max_size=3,
        ),
    ),
    request(Api.OffsetCommit, **IDENTITY, generation_id_or_member_epoch=GENERATIONS, topics=st.just(COMMIT)),
    st.sampled_from([1, 100, 400, 3_000]),  # wait so many milliseconds
    st.sampled_from(CONNECTIONS),  # disconnect this one
)


class Crowd:
    """Clients that send given requests, and use only the ids of the responses."""

    def __init__(self, coordinator: LoneCoordinator) -> None:
        self._coordinator = coordinator
        self._connections: dict[str, HandlerConnection] = {}
        self._asked: list[asyncio.Future[Any]] = []
        self._ids: list[str] = []

    async def live(self, steps: list[Any]) -> None:
        for step in steps:
            match step:
                case int():
                    await asyncio.sleep(step / 1000)
                case str():
                    self.hang_up(step)
                case (name, api, version, fields):
                    await self._send(name, api, version, fields)

    def hang_up(self, name: str) -> None:
        if name in self._connections:
            self._connections.pop(name).close()

    async def _send(self, name: str, api: Api, version: int, fields: dict[str, Any]) -> None:
        if name not in self._connections:
            self._connections[name] = await self._coordinator.connect(name)
        body = {"group_id": GROUP, **self._meant(fields)}
        answer = self._connections[name].send(api, version, body)
        answer.add_done_callback(self._remember)
        self._asked.append(answer)
        await asyncio.sleep(0.001)

    def _meant(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._meant(item) for item in value]
        if not isinstance(value, dict):
            return value
        return {k: self._id(v) if k == "member_id" and isinstance(v, int) else self._meant(v) for k, v in value.items()}

    def _id(self, back: int) -> str:
        return self._ids[-back] if back <= len(self._ids) else "not-yet"

    def _remember(self, answered: asyncio.Future[Any]) -> None:
        if not answered.cancelled() and answered.exception() is None:
            member_id = getattr(answered.result(), "member_id", "")
            if member_id and member_id not in self._ids:
                self._ids.append(member_id)

    def failures(self) -> list[BaseException]:
        done = [answer for answer in self._asked if answer.done() and not answer.cancelled()]
        return [error for answer in done if (error := answer.exception()) is not None]


async def joined_and_synced(coordinator: LoneCoordinator) -> Any:
    """What a well-behaved member gets that joins the group alone."""
    connection = await coordinator.connect("good")
    identity = {"group_id": GROUP, "group_instance_id": None}
    joining = {
        **identity,
        "session_timeout": 10_000,
        "rebalance_timeout": 10_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": subscription("t")}],
    }
    known = await connection.call(Api.JoinGroup, 5, **joining, member_id="")
    joined = await connection.call(Api.JoinGroup, 5, **joining, member_id=known.member_id)
    assert joined.error_code is ErrorCode.none, joined
    assert joined.leader == joined.member_id
    assert [member.member_id for member in joined.members] == [joined.member_id]
    synced = await connection.call(
        Api.SyncGroup,
        3,
        **identity,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[{"member_id": joined.member_id, "assignment": assignment("t", 0)}],
    )
    connection.close()
    return synced


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=30))
def test_group_accepts_a_member_after_all_misbehaving_ones_have_left(steps: list[Any]) -> None:
    clock = ManualClock()

    async def test() -> None:
        coordinator = LoneCoordinator(clock, BROKER, {"t": 1})
        await coordinator.lead_all()
        crowd = Crowd(coordinator)
        try:
            await crowd.live(steps)
            assert not crowd.failures()
            for name in CONNECTIONS:
                crowd.hang_up(name)
            await asyncio.sleep(4 * LONGEST_MS / 1000)  # a session, and rebalances that wait for members that are gone
            synced = await joined_and_synced(coordinator)
            assert (synced.error_code, synced.assignment) == (ErrorCode.none, assignment("t", 0))
            assert not crowd.failures()
        finally:
            await coordinator.stop()

    run_virtually(test(), clock)


def test_random_clients_get_into_the_group() -> None:
    """The property above is worth something only if some of the requests are accepted."""
    clock = ManualClock()
    identity = {"member_id": "", "group_instance_id": "i"}
    timeouts = {"session_timeout": 30_000, "rebalance_timeout": 2_000}
    protocols = [{"name": "range", "metadata": b"junk"}]
    joining = {**identity, **timeouts, "protocol_type": "consumer", "protocols": protocols}
    committing = {**identity, "member_id": 1, "generation_id_or_member_epoch": 1, "topics": COMMIT}
    syncing = {**identity, "member_id": 1, "generation_id": 1, "assignments": [{"member_id": 1, "assignment": b"junk"}]}

    async def test() -> None:
        coordinator = LoneCoordinator(clock, BROKER, {"t": 1})
        await coordinator.lead_all()
        steps = [
            ("w", Api.JoinGroup, 5, joining),
            400,
            ("w", Api.SyncGroup, 3, syncing),
            ("x", Api.OffsetCommit, 7, committing),
        ]
        await Crowd(coordinator).live(steps)
        written = [event["partition"] for event in coordinator.tracer.of("offset_written")]
        assert written == [0]
        await coordinator.stop()

    run_virtually(test(), clock)
