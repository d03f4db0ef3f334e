"""Members and leaders that misbehave, over TCP to a broker of ours: each gets Kafka's answer, and its group lives on.

What a real 4.1.1 answered is recorded (conversations/bad.json; most of it is also played without a broker in
conversations/test_recorded.py). Other recordings have similar cases: a leader that assigns to strangers or to no
member, members that never sync or fall silent, pending ids, changing types (classic), oversized subscriptions,
assignments and commits (large), instance ids in every state (table, classic).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from coordinator.groups.classic.states import GroupState
from coordinator.groups.errors import Error
from coordinator.groups.requests import Protocol
from coordinator.service.mount import mount
from kernel.trace.writer import SilentTracer
from tests.support.brokers.live import create_topics, running_broker
from tests.support.conversations.recorded import player, recording
from tests.support.groups.classic import RANGE, Machine, subscription
from tests.support.wire.clients import WireConnection, wait_for_coordinator

RECORDED = recording("bad")
#: Settings of the recorded broker that ours does not have, all for features that it does not have.
SETTINGS = {k: v for k, v in RECORDED.settings.items() if not k.startswith(("transaction.state.", "log.cleaner."))}

#: Kafka reads a name that is not UTF-8 with replacement characters, and ignores bytes after a request; it answers both.
#: Ours closes the connection, so that a client that garbles its requests is not mistaken for another.
FUSSIER = {"bad/join-not-utf8", "bad/heartbeat-trailing"}


async def test_misbehaving_members_get_the_answers_of_4_1_1_over_tcp(chroot: str, tmp_path: Path) -> None:
    """All at once; one that differs is played up to twice more, alone, before it counts: timers are real."""
    async with running_broker(chroot, tmp_path, settings=SETTINGS, mount=(mount,), tracer=SilentTracer()) as broker:
        await create_topics(broker, RECORDED.topics)

        async def connect(client_id: str) -> WireConnection:
            return await WireConnection.open(broker.address.host, broker.address.port, client_id)

        async def play(name: str) -> list[str]:
            return await player(RECORDED, name, connect).play()

        admin = await connect("admin")
        await wait_for_coordinator(admin, *(f"warm-{n}" for n in range(16)))
        admin.close()
        names = RECORDED.conversations.keys() - FUSSIER
        together = dict(zip(names, await asyncio.gather(*map(play, names)), strict=True))
        again = [name for name in names if together[name]]
        problems = {name: found for name in again if await play(name) and (found := await play(name))}
        assert not problems, "\n".join(f"{name}: {line}" for name, found in problems.items() for line in found)
        for name in FUSSIER:
            refused = await play(name)
            if len(refused) != 1:  # the machine may have paused longer than an answer may take
                refused = await play(name)
            assert len(refused) == 1, refused
            assert "got      {'closed': True}" in refused[0]


def test_protocol_named_twice_counts_once_and_the_group_goes_on() -> None:
    """4.1.1 behaves differently: it counts the name twice, finds no protocol that all members have, and never answers.

    Its group stays in PreparingRebalance, and the other members are refused with error 23 whenever they rejoin.
    """
    machine = Machine()
    first = machine.admit("a")
    machine.wait(100)
    machine.sync("a", {"a": b"mine"})
    twice = machine.join("b", returns=False, protocols=(*RANGE, Protocol("range", subscription("u"))))
    first = machine.join("a")
    assert (first.answer.error, twice.answer.error) == (Error.NONE, Error.NONE)
    assert {member.subscription for member in first.answer.members} == {subscription("t")}
    machine.sync("a", {"a": b"mine", "b": b"yours"})
    assert machine.sync("b").answer.assignment == b"yours"
    assert machine.group is not None
    assert machine.group.state is GroupState.STABLE
