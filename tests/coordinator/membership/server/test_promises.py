"""Whatever happens, in any order: a member reports what it runs, and what it owned is accounted for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.membership.effects import (
    AbandonCoordinator,
    CommitPositions,
    Effect,
    Emit,
    FindCoordinator,
    Identity,
    Lose,
    Revoke,
)
from coordinator.membership.events import (
    Closed,
    CoordinatorFound,
    CoordinatorUnknown,
    Event,
    GenerationOutdated,
    Polled,
    Refusal,
    Response,
    Resumed,
    Stopped,
    Ticked,
)
from coordinator.membership.server import effects, events
from coordinator.membership.server.member import AWAITING, OWNING, ServerMember, ServerMemberState, deadline
from coordinator.membership.server.reactions import REACTIONS, reaction
from coordinator.membership.server.table import TABLE, step
from kernel.clock import NS_PER_MS
from kernel.values import TopicPartition
from tests.coordinator.membership.server.commanded import SESSION_TIMEOUT_MS, SETTINGS
from tests.support.properties import examples

partition_sets = st.frozensets(st.builds(TopicPartition, st.just("t"), st.integers(0, 3)), max_size=3)
ERRORS = sorted({*REACTIONS, ("AwaitCommand", "INCONSISTENT_STRATEGY")})
ONE = frozenset({TopicPartition("t", 0)})
Saying = tuple[str, object]

#: Events with which a member makes progress, by state; the last one takes effect.
KINDNESS: dict[ServerMemberState, list[Saying]] = {
    ServerMemberState.UNREGISTERED: [("session", None)],
    ServerMemberState.REGISTERING: [("registered", None)],
    ServerMemberState.WAITING: [("advance", 200), ("event", Ticked()), ("event", CoordinatorFound(1)), ("start", ONE)],
    ServerMemberState.STARTING: [("resumed", None)],
    ServerMemberState.STARTED: [("event", Polled()), ("advance", 900), ("nothing", None)],
    ServerMemberState.STOPPING: [("event", Stopped())],
    ServerMemberState.CLOSING: [("event", Stopped())],
}

#: Anything else that the coordinator, ZooKeeper, a clock or the application may do; stamps are filled in.
anything = st.one_of(
    st.tuples(st.just("advance"), st.integers(0, 4000)),
    st.tuples(st.just("refused"), st.sampled_from(ERRORS)),
    st.tuples(st.just("late"), st.sampled_from(ERRORS)),
    st.tuples(st.just("start"), partition_sets),
    st.tuples(st.just("start again"), partition_sets),
    st.sampled_from([("stop", None), ("stop", None), ("stop another", None), ("nothing", None), ("resumed", None)]),
    st.sampled_from([("session", None), ("registered", None), ("kind", None)]),
    st.sampled_from(
        [
            ("event", event)
            for event in (
                Polled(),
                Ticked(),
                Stopped(),
                events.SessionInterrupted(),
                events.SessionRestored(),
                events.SessionEnded(),
                CoordinatorFound(1),
                CoordinatorUnknown("nobody"),
            )
        ]
    ),
)
#: Most of the time things go well, or the interesting states would never be reached. (Not `one_of`, which would choose
#: among all the branches of `anything`.)
sayings = st.tuples(st.integers(0, 2), anything).map(lambda drawn: drawn[1] if drawn[0] == 0 else ("kind", None))
closing = st.one_of(st.just([]), st.just([("event", Closed())]))


def answers_await(event: Event) -> bool:
    if isinstance(event, Refusal):
        return event.api == "AwaitCommand"
    return isinstance(event, events.NoCommand | events.StopCommanded | events.StartCommanded)


class World:
    """One member and its invariants."""

    def __init__(self) -> None:
        self.now = 0
        self.member = ServerMember(settings=SETTINGS)
        self.generation = 0
        self.sessions = 0
        self.over: set[Identity] = set()
        self.lookups = 0  #: in flight; only these find a coordinator, or none

    def event(self, what: str, detail: object) -> Event | None:
        stamp = self.member.stamp
        match what:
            case "event":
                assert isinstance(detail, Event)
                if isinstance(detail, CoordinatorFound | CoordinatorUnknown):
                    if not self.lookups:
                        return None  # no such request is outstanding
                    self.lookups -= 1
                return detail
            case "session":
                self.sessions += 1
                return events.SessionBegun(self.sessions, SESSION_TIMEOUT_MS)
            case "registered":
                return events.Registered(stamp, f"m-{self.sessions}")
            case "nothing":
                return events.NoCommand(stamp)
            case "resumed":
                return Resumed(stamp)
            case "stop":
                return events.StopCommanded(stamp, self.member.generation)
            case "stop another":
                return events.StopCommanded(stamp, self.member.generation + 1)
            case "start" | "start again":
                assert isinstance(detail, frozenset)
                self.generation += what == "start"
                return events.StartCommanded(stamp, self.generation, dict.fromkeys(detail, 0))
            case _:
                assert isinstance(detail, tuple)
                api, error = detail
                return reaction(api, error, stamp=stamp - (what == "late"), sent_ns=self.now)

    def say(self, what: str, detail: object) -> None:
        if what == "advance":
            assert isinstance(detail, int)
            self.now += detail * NS_PER_MS
            return
        event = self.event(what, detail)
        if event is None or (answers_await(event) and not self.member.awaiting_command):
            return  # no such request is outstanding
        before = self.member
        self.member, wanted = step(before, event, self.now)
        self.lookups += sum(isinstance(effect, FindCoordinator) for effect in wanted)
        over = isinstance(event, events.SessionEnded) or (
            isinstance(event, GenerationOutdated) and event.stamp == before.stamp
        )
        if over and before.identity is not None:
            self.over.add(before.identity)
        if isinstance(event, events.StartCommanded) and self.member.identity is not None:
            self.over.discard(self.member.identity)  # the coordinator may give a generation twice
        self.check(before, event, wanted)

    def check(self, before: ServerMember, event: Event, wanted: tuple[Effect, ...]) -> None:
        after = self.member
        assert after.identity not in self.over
        if after.state not in (ServerMemberState.LEFT, ServerMemberState.FAILED):
            assert self.lookups == after.finding, (
                "a member that waits for an answer that has come, or asks twice, waits forever"
            )
        self.check_questions(before, event, wanted)
        for effect in wanted:
            if isinstance(effect, CommitPositions):
                assert effect.identity == after.identity
                assert effect.stamp == after.stamp
            if isinstance(effect, Revoke | Lose):
                assert effect.partitions == before.owned
        assert not after.owned or after.state in OWNING
        emitted = [e.kind for e in wanted if isinstance(e, Emit) and e.kind.startswith("partitions_")]
        if after.generation != before.generation and after.state is ServerMemberState.STARTING:
            assert emitted[-1] == "partitions_assigned"
        elif before.owned and not after.owned:
            assert emitted in (["partitions_revoked"], ["partitions_lost"])
        starts = sum(isinstance(e, Emit) and e.kind == "rebalance_started" for e in wanted)
        ends = sum(isinstance(e, Emit) and e.kind == "rebalance_ended" for e in wanted)
        assert (before.attempt > 0) + starts - ends == (after.attempt > 0)
        due = deadline(after)
        if due is not None and due <= self.now:
            moved, effects_of_tick = step(after, Ticked(), self.now)
            assert moved != after or effects_of_tick, f"a timer that is due does nothing: {after}"

    def check_questions(self, before: ServerMember, event: Event, wanted: tuple[Effect, ...]) -> None:
        """One at a time, correct, and only with a registered id whose session may be alive."""
        after = self.member
        late = isinstance(event, Response) and event.stamp != before.stamp  # to a request that was cancelled
        waits = before.awaiting_command and (late or not answers_await(event))
        for effect in wanted:
            match effect:
                case effects.CancelAwait() | AbandonCoordinator():
                    waits = False
                case effects.SendAwaitCommand():
                    assert not waits
                    waits = True
                    assert after.registered
                    assert after.state in AWAITING
                    assert (effect.generation != effect.stopped) == (after.state is ServerMemberState.STARTED)
                    assert effect.stopped <= effect.generation
        assert after.awaiting_command == waits
        assert not waits or after.state in AWAITING

    def live(self, course: list[Saying]) -> None:
        for what, detail in course:
            for said in KINDNESS.get(self.member.state, []) if what == "kind" else [(what, detail)]:
                self.say(*said)


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(sayings, max_size=50), closing, st.lists(sayings, max_size=8))
def test_any_course_of_events_keeps_the_members_promises(
    course: list[Saying], close: list[Saying], rest: list[Saying]
) -> None:
    World().live([*course, *close, *rest])


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(sayings, max_size=40))
def test_member_in_any_state_is_started_when_all_goes_well(course: list[Saying]) -> None:
    world = World()
    world.live(course)
    world.say("session", None)  # ZooKeeper returns, whatever happened to it
    for _ in range(12):
        if world.member.state in (ServerMemberState.STARTED, ServerMemberState.FAILED):
            return
        world.live([("kind", None)])
    raise AssertionError(f"still {world.member}")


#: The way to each state.
WAYS: dict[ServerMemberState, list[Saying]] = {
    ServerMemberState.UNREGISTERED: [],
    ServerMemberState.REGISTERING: [("kind", None)],
    ServerMemberState.WAITING: [("kind", None)] * 2,
    ServerMemberState.STARTING: [("kind", None)] * 3,
    ServerMemberState.STARTED: [("kind", None)] * 4,
    ServerMemberState.STOPPING: [*[("kind", None)] * 4, ("stop", None)],
    ServerMemberState.CLOSING: [*[("kind", None)] * 4, ("event", Closed())],
    ServerMemberState.FAILED: [*[("kind", None)] * 4, ("refused", ("AwaitCommand", "UNKNOWN_STRATEGY"))],
}


@pytest.mark.parametrize(
    ("state", "event"), [pytest.param(s, e, id=f"{s.name}-{e.__name__}") for s, row in TABLE.items() for e in row]
)
def test_every_cell_of_the_table_keeps_the_members_promises(state: ServerMemberState, event: type[Event]) -> None:
    for advance_ms in (0, 5000):
        world = World()
        world.live(WAYS[state])
        assert world.member.state is state
        world.say("advance", advance_ms)
        stamp = world.member.stamp
        if issubclass(event, Refusal):
            api = "AwaitCommand" if world.member.awaiting_command else "CommitOwned"
            happened: Event = event(stamp=stamp, api=api, error="ERROR", sent_ns=world.now)
        else:
            happened = {
                CoordinatorFound: CoordinatorFound(2),
                CoordinatorUnknown: CoordinatorUnknown("nobody"),
                events.SessionBegun: events.SessionBegun(99, SESSION_TIMEOUT_MS),
                events.Registered: events.Registered(stamp, "m-9"),
                events.NoCommand: events.NoCommand(stamp),
                events.StopCommanded: events.StopCommanded(stamp, world.member.generation),
                events.StartCommanded: events.StartCommanded(stamp, 99, dict.fromkeys(ONE, 0)),
                Resumed: Resumed(stamp),
            }.get(event) or event()
        world.say("event", happened)
        world.live([("kind", None)] * 12)
