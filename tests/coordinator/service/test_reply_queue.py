"""Answers are sent in turns, later than the machine gives them: clients get the same answers in the same order."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.groups.answers import JoinAnswer, SyncAnswer
from coordinator.groups.effects import Reply, TimerKey, TimerKind
from coordinator.groups.errors import Error
from coordinator.groups.limits import Limits
from coordinator.groups.machine import Machine
from coordinator.groups.requests import Heartbeat, Join, Leave, Leaving, Sync
from coordinator.groups.server.strategies import assignment_settings
from coordinator.service.led_partition import LedPartition
from coordinator.service.reply_queue import ReplyQueue
from kernel.broker.loop.turns import Turns
from kernel.broker.settings.configuration import BrokerConfig
from kernel.broker.storage.errors import Fenced
from kernel.runtime import REAL, Runtime
from kernel.values import TopicPartition
from tests.support.coordinators.in_memory import MemoryLog, MemoryStorage
from tests.support.groups.classic import RANGE
from tests.support.time.manual_clock import ManualClock
from tests.support.trace.tracers import ListTracer

WHO = ("a", "b", "c", "d")


class TurnsByHand(Turns):
    """One piece at each `step`. A piece that fails ends its work, as in `Turns`."""

    def __init__(self) -> None:
        super().__init__(REAL.stopwatch)
        self.works: deque[Iterator[object]] = deque()
        self.failures = 0

    def run_in_turns(self, pieces: Iterator[object], what: str = "") -> None:
        self.works.append(pieces)

    def step(self) -> None:
        if self.works:
            work = self.works[0]
            try:
                next(work)
            except StopIteration:
                self.works.remove(work)
            except (ArithmeticError, KeyError):
                self.works.remove(work)
                self.failures += 1

    def run(self) -> None:
        while self.works:
            self.step()


def reply(token: int) -> Reply:
    return Reply(token, SyncAnswer(assignment=b"%d" % token))


# -- the reply queue ------------------------------------------------------------------------------------------------


TOKENS = range(8)


@given(
    order=st.permutations(TOKENS),
    failing=st.sets(st.sampled_from(TOKENS)),
    rounds=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6),
)
def test_every_answer_is_sent_once_in_order(order, failing, rounds):
    async def test() -> None:
        turns = TurnsByHand()
        reply_queue = ReplyQueue(turns)
        given_out: list[int] = []
        lost: list[int] = []

        def translate(answer: SyncAnswer) -> int:
            token = int(answer.assignment)
            if token in failing:
                raise ArithmeticError
            return token

        for token in TOKENS:
            reply_queue.expect(token, translate).on_complete(given_out.append, functools.partial(lost.append, token))
        waiting = deque(order)
        for handed_out, steps in [*rounds, (len(TOKENS), 0)]:
            reply_queue.put([reply(waiting.popleft()) for _ in range(min(handed_out, len(waiting)))])
            for _ in range(steps):
                turns.step()
        expected = [token for token in order if token not in failing]
        emptied = asyncio.ensure_future(reply_queue.emptied())
        await asyncio.sleep(0)
        assert emptied.done() is not bool(turns.works)
        turns.run()
        await emptied
        assert given_out == expected
        assert lost == [token for token in order if token in failing]
        assert turns.failures == len(failing)

    asyncio.run(test())


async def test_answer_that_nobody_waits_for_does_not_stop_those_after_it():
    turns = TurnsByHand()
    reply_queue = ReplyQueue(turns)
    given_out: list[Any] = []
    reply_queue.expect(2, lambda answer: answer.assignment).on_complete(given_out.append)
    reply_queue.put([reply(1), reply(2)])
    turns.run()
    reply_queue.expect(3, lambda answer: answer.assignment).on_complete(given_out.append)
    reply_queue.put([reply(3)])
    turns.run()
    assert (given_out, turns.failures) == ([b"2", b"3"], 1)
    await reply_queue.emptied()


async def test_sent_answer_allows_the_next_request():
    turns = TurnsByHand()
    reply_queue = ReplyQueue(turns)
    seen: list[Any] = []

    def go_on(answer: bytes) -> None:
        seen.append(answer)
        reply_queue.put([reply(2)])  # the connection's next request is answered at once

    reply_queue.expect(0, lambda answer: answer.assignment).on_complete(go_on)
    for token in (1, 2):
        reply_queue.expect(token, lambda answer: answer.assignment).on_complete(seen.append)
    reply_queue.put([reply(0), reply(1)])
    turns.run()
    assert seen == [b"0", b"1", b"2"]


# -- a partition ----------------------------------------------------------------------------------------------------


class Play:
    """One partition whose answers are sent as scripted."""

    def __init__(self, *, at_once: bool) -> None:
        self.turns = TurnsByHand()
        self.log = MemoryLog(TopicPartition("__consumer_offsets", 0))
        self.log.gate.clear()
        self.clock = ManualClock()
        config, _ = BrokerConfig.from_settings({"broker.id": "1"})
        services = SimpleNamespace(
            config=config,
            node_id=1,
            runtime=Runtime(clock=self.clock),
            tracer=ListTracer(clock=self.clock),
            turns=self.turns,
            storage=MemoryStorage(),
        )
        machine = Machine(Limits(members_max=3, session_timeout_ms_min=1), assignment_settings(config), lambda _: 0)
        self.partition = LedPartition(
            machine, self.log, services, deliver=_never, watch=_never, decide=_never, search=_never
        )
        self.answers: dict[int, Any] = {}
        self.order: list[int] = []  # the tokens of the parked requests, in the order of their answers
        self.ids: dict[str, str] = {}
        self._at_once = at_once
        self._numbers = itertools.count()

    def ask(self, who: str, request: Callable[[int, str], Any]) -> None:
        number = next(self._numbers)
        member_id = self.ids.get(who, "")
        answer = self.partition.ask(lambda token: request(token, member_id), lambda answer: answer)

        def take(given: Any) -> None:
            assert number not in self.answers
            self.answers[number] = given

        def take_later(given: Any) -> None:
            self.order.append(number)
            take(given)

        if isinstance(answer, tuple) or not hasattr(answer, "on_complete"):
            take(answer)
            if isinstance(answer, JoinAnswer) and answer.error is Error.MEMBER_ID_REQUIRED:
                self.ids[who] = answer.member_id
        else:
            answer.on_complete(take_later)
        if self._at_once:
            self.turns.run()

    async def act(self, action: tuple[str, Any]) -> None:
        verb, value = action
        if verb == "step":
            for _ in range(0 if self._at_once else value):
                self.turns.step()
        elif verb == "timer":
            self.partition._timer_fired(TimerKey(value, "g"))
        elif verb == "store":
            self.log.broken = Fenced("led elsewhere") if value else None
            self.log.gate.set()
            await self.partition.landed()
            self.log.gate.clear()
        else:
            self.ask(value, {"join": _join, "sync": _sync, "leave": _leave, "heartbeat": _heartbeat}[verb](self))
        if self._at_once:
            self.turns.run()

    async def end(self) -> None:
        self.log.gate.set()
        closing = asyncio.ensure_future(self.partition.close())
        while not closing.done():
            self.turns.step()
            await asyncio.sleep(0)
        await closing


async def _never(*_: object) -> None:
    raise AssertionError("nothing of this is in the script")


def _join(play: Play) -> Callable[[int, str], Join]:
    fresh_id = str(next(play._numbers))
    return lambda token, member_id: Join(
        token=token,
        group_id="g",
        member_id=member_id,
        client_id="c",
        client_host="/127.0.0.1",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=RANGE,
        fresh_id=fresh_id,
    )


def _generation(play: Play) -> int:
    group = play.partition.machine.classic.groups.get("g")
    return group.generation if group else -1


def _sync(play: Play) -> Callable[[int, str], Sync]:
    generation = _generation(play)
    given = tuple((member_id, who.encode()) for who, member_id in play.ids.items())
    return lambda token, member_id: Sync(
        token=token, group_id="g", member_id=member_id, generation=generation, assignments=given
    )


def _leave(play: Play) -> Callable[[int, str], Leave]:
    return lambda token, member_id: Leave(token=token, group_id="g", members=(Leaving(member_id),))


def _heartbeat(play: Play) -> Callable[[int, str], Heartbeat]:
    generation = _generation(play)
    return lambda token, member_id: Heartbeat(token=token, group_id="g", member_id=member_id, generation=generation)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["join", "join", "sync", "sync", "leave", "heartbeat"]), st.sampled_from(WHO)),
        st.tuples(st.just("step"), st.integers(1, 5)),
        st.tuples(st.just("timer"), st.sampled_from([TimerKind.JOIN, TimerKind.SYNC])),
        st.tuples(st.just("store"), st.sampled_from([False, False, False, True])),
    ),
    max_size=40,
)
#: Two members form a group, then a third one joins; answers are delayed.
FORMED = [
    *(("join", who) for who in "aabb"),
    ("timer", TimerKind.JOIN),
    ("timer", TimerKind.JOIN),
    *(("sync", who) for who in "ab"),
    ("store", False),
]


@given(st.sampled_from([[], FORMED]), ACTIONS)
def test_clients_get_the_same_answers_in_the_same_order_with_late_turns(before, actions):
    async def played(*, at_once: bool) -> Play:
        play = Play(at_once=at_once)
        for action in [*before, *actions]:
            if not play.partition.closed:
                await play.act(action)
        await play.end()
        return play

    async def test() -> None:
        slow, swift = await played(at_once=False), await played(at_once=True)
        assert slow.answers == swift.answers
        assert slow.order == swift.order
        assert slow.log.pairs == swift.log.pairs
        assert not slow.turns.works

    asyncio.run(test())


@pytest.mark.parametrize("verb", ["join", "sync"])
async def test_waiting_requests_are_answered_before_a_partition_is_given_up(verb):
    play = Play(at_once=False)
    for action in [*FORMED[:-1], *(("join", who) for who in "cc")] if verb == "join" else FORMED[:-1]:
        await play.act(action)
    await play.end()
    assert play.partition.closed
    last = {Error.NOT_COORDINATOR, Error.REBALANCE_IN_PROGRESS, Error.NONE}
    assert {answer.error for answer in play.answers.values()} <= {*last, Error.MEMBER_ID_REQUIRED}
    assert len(play.answers) == len([a for a in FORMED[:-1] if a[0] != "timer"]) + 2 * (verb == "join")
