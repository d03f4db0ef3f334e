"""Whatever happens, in any order: a refused identity is never used again, and what is owned is accounted for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.membership.classic import effects, events
from coordinator.membership.classic.member import ALIVE, Member, MemberState, deadline
from coordinator.membership.classic.reactions import REACTIONS, reaction
from coordinator.membership.classic.table import TABLE, step
from coordinator.membership.effects import CommitPositions, Effect, Emit, FindCoordinator, Identity, Lose, Revoke
from coordinator.membership.events import (
    Closed,
    CoordinatorFound,
    CoordinatorUnknown,
    Event,
    GenerationOutdated,
    Polled,
    Refusal,
    Resumed,
    Stopped,
    Ticked,
)
from kernel.clock import NS_PER_MS
from kernel.values import TopicPartition
from tests.coordinator.membership.classic.membership import SETTINGS, TOPICS, partitions_of
from tests.support.properties import examples

partition_sets = st.frozensets(st.builds(TopicPartition, st.just("t"), st.integers(0, 3)), max_size=3)
ERRORS = sorted({*REACTIONS, ("JoinGroup", "GROUP_MAX_SIZE_REACHED"), ("Heartbeat", "FENCED_INSTANCE_ID")})
Saying = tuple[str, object]

SUMMONS: Saying = ("refused", ("Heartbeat", "REBALANCE_IN_PROGRESS"))

ONE = frozenset({TopicPartition("t", 0)})

#: Events with which a member makes progress, by state; the last one takes effect.
KINDNESS: dict[MemberState, list[Saying]] = {
    MemberState.UNJOINED: [("event", Polled())],
    MemberState.STOPPING: [("event", Stopped())],
    MemberState.SEEKING: [("advance", 200), ("event", Ticked()), ("event", CoordinatorFound(1))],
    MemberState.JOINING: [("joined", False)],
    MemberState.DECIDING: [("decided", None)],
    MemberState.SYNCING: [("synced", ONE)],
    MemberState.ASSIGNED: [("event", Polled())],
    MemberState.RELEASING: [("event", Stopped())],
    MemberState.RESUMING: [("resumed", None)],
    MemberState.STABLE: [("advance", 900), ("event", Ticked()), ("heartbeat", None), ("event", Polled())],
    MemberState.REJOIN_NEEDED: [("event", Polled())],
    MemberState.UNSUBSCRIBING: [("event", Stopped())],
    MemberState.CLOSING: [("event", Stopped())],
}

#: Anything else that a coordinator, a clock or the application may do; stamps are filled in.
anything = st.one_of(
    st.tuples(st.just("advance"), st.integers(0, 12_000)),
    st.tuples(st.just("refused"), st.sampled_from(ERRORS)),
    st.tuples(st.just("refused"), st.sampled_from(ERRORS)),
    st.tuples(st.just("late"), st.sampled_from(ERRORS)),
    st.tuples(st.just("synced"), partition_sets),
    st.tuples(st.just("joined"), st.booleans()),
    st.sampled_from([("decided", None), ("resumed", None), ("id", None), ("heartbeat", None), ("kind", None)]),
    st.sampled_from(
        [
            ("event", event)
            for event in (
                Polled(),
                Ticked(),
                Stopped(),
                CoordinatorFound(1),
                CoordinatorUnknown("nobody"),
                events.SubscriptionChanged(frozenset({"t", "u"})),
                events.RejoinWanted("metadata-changed"),
                events.Unsubscribed(),
            )
        ]
    ),
)
#: Most of the time things go well, or the interesting states would never be reached. (Not `one_of`, which would choose
#: among all the branches of `anything`.)
sayings = st.tuples(st.integers(0, 2), anything).map(lambda drawn: drawn[1] if drawn[0] == 0 else ("kind", None))
#: A member that unsubscribes during the coordinator lookup, and what happens until it has left the group.
ending = st.one_of(
    st.just([]),
    st.lists(st.one_of(anything, st.just(("event", CoordinatorFound(2)))), max_size=4).map(
        lambda rest: [("refused", ("Heartbeat", "NOT_COORDINATOR")), ("event", events.Unsubscribed()), *rest]
    ),
)
closing = st.one_of(st.just([]), st.just([("event", Closed())]))


def accounted(owned: frozenset[TopicPartition], wanted: tuple[Effect, ...]) -> frozenset[TopicPartition]:
    """What is owned according to the trace, which must be correct at every step."""
    for emitted in wanted:
        if not isinstance(emitted, Emit) or not emitted.kind.startswith("partitions_"):
            continue
        changed = partitions_of(emitted, "partitions")
        if emitted.kind == "partitions_assigned":
            assert not changed & owned
            owned |= changed
        else:
            assert changed
            assert changed <= owned
            owned -= changed
        assert partitions_of(emitted, "all") == owned
    return owned


class World:
    """One member and its invariants."""

    def __init__(self, *, cooperative: bool = False) -> None:
        self.now = 0
        self.member = Member(settings=replace(SETTINGS, cooperative=cooperative), topics=TOPICS)
        self.generation = 0
        self.refused: set[Identity] = set()
        self.ids = 0
        self.assigned_as = ""  #: the id under which partitions were last assigned
        self.lookups = 0  #: in flight; only these find a coordinator, or none

    def event(self, what: str, detail: object) -> Event | None:
        stamp, now = self.member.stamp, self.now
        match what:
            case "event":
                assert isinstance(detail, Event)
                if isinstance(detail, CoordinatorFound | CoordinatorUnknown):
                    if not self.lookups:
                        return None  # no such request is outstanding
                    self.lookups -= 1
                return detail
            case "joined":
                self.generation += 1
                member_id = self.member.member_id or self._new_id()
                leader = member_id if detail else "other"
                return events.Joined(stamp, member_id, self.generation, "range", leader)
            case "synced":
                assert isinstance(detail, frozenset)
                return events.Synced(stamp, detail)
            case "decided":
                return events.Decided(stamp, {})
            case "resumed":
                return Resumed(stamp)
            case "id":
                return events.MemberIdGiven(stamp, self._new_id())
            case "heartbeat":
                return events.HeartbeatAnswered(stamp, now)
            case _:
                assert isinstance(detail, tuple)
                api, error = detail
                asked = {"JoinGroup": MemberState.JOINING, "SyncGroup": MemberState.SYNCING}.get(api, self.member.state)
                if asked is not self.member.state:
                    return None  # no such request is outstanding
                return reaction(api, error, stamp=stamp - (what == "late"), sent_ns=now)

    def _new_id(self) -> str:
        self.ids += 1
        return f"m-{self.ids}"

    def say(self, what: str, detail: object) -> None:
        if what == "advance":
            assert isinstance(detail, int)
            self.now += detail * NS_PER_MS
            return
        event = self.event(what, detail)
        if event is None:
            return
        before = self.member
        self.member, wanted = step(before, event, self.now)
        self.lookups += sum(isinstance(effect, FindCoordinator) for effect in wanted)
        if isinstance(event, GenerationOutdated | events.MemberForgotten) and before.identity is not None:
            heard = type(event) in TABLE[before.state] and event.stamp == before.stamp
            self.refused |= {before.identity} if heard else set()
        self.check(before, wanted)

    def check(self, before: Member, wanted: tuple[Effect, ...]) -> None:
        after = self.member
        assert after.identity not in self.refused
        if after.state not in (MemberState.LEFT, MemberState.FAILED):
            assert self.lookups == after.finding, (
                "a member that waits for an answer that has come, or asks twice, waits forever"
            )
        for effect in wanted:
            if isinstance(effect, effects.SendHeartbeat | effects.SendSync | CommitPositions):
                assert effect.identity not in self.refused, effect
                assert effect.stamp == after.stamp
            if isinstance(effect, Revoke | Lose):
                assert effect.partitions <= before.owned
                assert effect.partitions == before.owned or before.settings.cooperative
        if after.state in ALIVE - {MemberState.STOPPING, MemberState.RELEASING}:
            assert after.identity is not None
            assert after.timers.session_ns is not None
        if after.owned:
            assert after.settings.cooperative or after.state in (
                MemberState.STOPPING,
                MemberState.RESUMING,
                MemberState.STABLE,
                MemberState.REJOIN_NEEDED,
                MemberState.UNSUBSCRIBING,
                MemberState.CLOSING,
            )
        assert accounted(before.owned, wanted) == after.owned
        for emitted in wanted:
            if isinstance(emitted, Emit) and emitted.kind == "partitions_assigned":
                self.assigned_as = emitted.member_id
            elif isinstance(emitted, Emit) and emitted.kind in ("partitions_revoked", "partitions_lost"):
                assert emitted.member_id == self.assigned_as, "traced as another member's, which so keeps them forever"
        assert after.releasing <= after.owned
        assert after.identity is not None or after.owned == after.releasing, "a member without an identity owns nothing"
        starts = sum(isinstance(e, Emit) and e.kind == "rebalance_started" for e in wanted)
        ends = sum(isinstance(e, Emit) and e.kind == "rebalance_ended" for e in wanted)
        assert (before.attempt > 0) + starts - ends == (after.attempt > 0)
        due = deadline(after)
        if due is not None and due <= self.now:
            moved, effects_of_tick = step(after, Ticked(), self.now)
            assert moved != after or effects_of_tick, f"a timer that is due does nothing: {after}"

    def live(self, course: list[Saying]) -> None:
        for what, detail in course:
            for said in KINDNESS.get(self.member.state, []) if what == "kind" else [(what, detail)]:
                self.say(*said)


@settings(max_examples=examples(400), deadline=None)
@given(st.booleans(), st.lists(sayings, max_size=50), closing, st.lists(sayings, max_size=8))
def test_any_course_of_events_keeps_the_members_promises(
    cooperative: bool, course: list[Saying], close: list[Saying], rest: list[Saying]
) -> None:
    World(cooperative=cooperative).live([*course, *close, *rest])


@settings(max_examples=examples(200), deadline=None)
@given(st.booleans(), st.lists(sayings, max_size=40), ending)
def test_member_in_any_state_becomes_stable_when_all_goes_well(
    cooperative: bool, course: list[Saying], ending: list[Saying]
) -> None:
    world = World(cooperative=cooperative)
    world.live([*course, *ending, ("event", events.SubscriptionChanged(frozenset({"t"})))])
    for _ in range(24):  # a cooperative member that has something taken away makes two rounds
        if world.member.state in (MemberState.STABLE, MemberState.FAILED):
            return
        world.live([("kind", None)])
    raise AssertionError(f"still {world.member}")


TAKEN_AWAY: list[Saying] = [("joined", False), ("synced", frozenset())]

#: The way to each state.
WAYS: dict[MemberState, list[Saying]] = {
    MemberState.UNJOINED: [],
    MemberState.SEEKING: [("event", Polled())],
    MemberState.JOINING: [("kind", None)] * 2,
    MemberState.DECIDING: [("kind", None), ("kind", None), ("joined", True)],
    MemberState.SYNCING: [("kind", None)] * 3,
    MemberState.ASSIGNED: [("kind", None)] * 4,
    MemberState.RELEASING: [("kind", None)] * 6
    + [SUMMONS, ("kind", None), ("kind", None), *TAKEN_AWAY, ("kind", None)],
    MemberState.RESUMING: [("kind", None)] * 5,
    MemberState.STABLE: [("kind", None)] * 6,
    MemberState.REJOIN_NEEDED: [("kind", None)] * 6 + [SUMMONS],
    MemberState.STOPPING: [("kind", None)] * 6 + [SUMMONS, ("kind", None)],
    MemberState.UNSUBSCRIBING: [("kind", None)] * 6 + [("event", events.Unsubscribed())],
    MemberState.CLOSING: [("kind", None)] * 6 + [("event", Closed())],
    MemberState.FAILED: [("kind", None), ("kind", None), ("refused", ("JoinGroup", "GROUP_MAX_SIZE_REACHED"))],
}


@pytest.mark.parametrize(
    ("state", "event"), [pytest.param(s, e, id=f"{s.name}-{e.__name__}") for s, row in TABLE.items() for e in row]
)
def test_every_cell_of_the_table_keeps_the_members_promises(state: MemberState, event: type[Event]) -> None:
    sent = {MemberState.JOINING: "JoinGroup", MemberState.SYNCING: "SyncGroup"}.get(state, "Heartbeat")
    for advance_ms in (0, 5000):
        world = World(cooperative=state is MemberState.RELEASING)
        world.live(WAYS[state])
        assert world.member.state is state
        world.say("advance", advance_ms)
        stamp = world.member.stamp
        if issubclass(event, Refusal):
            happened: Event = event(stamp=stamp, api=sent, error="ERROR", sent_ns=world.now)
        else:
            happened = {
                CoordinatorFound: CoordinatorFound(2),
                CoordinatorUnknown: CoordinatorUnknown("nobody"),
                events.Joined: events.Joined(stamp, "m-1", 9, "range", "other"),
                events.MemberIdGiven: events.MemberIdGiven(stamp, "m-9"),
                events.Decided: events.Decided(stamp, {}),
                events.Synced: events.Synced(stamp, ONE),
                Resumed: Resumed(stamp),
                events.HeartbeatAnswered: events.HeartbeatAnswered(stamp, world.now),
                events.SubscriptionChanged: events.SubscriptionChanged(frozenset({"t", "u"})),
                events.RejoinWanted: events.RejoinWanted("metadata-changed"),
            }.get(event) or event()
        world.say("event", happened)
        world.live([("kind", None)] * 14)
