"""Whatever happens, in any order: nothing is owned without an epoch, and a fenced epoch is never used again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.membership.consumer import events
from coordinator.membership.consumer.effects import (
    AssignPartitions,
    Callback,
    LosePartitions,
    RevokePartitions,
    SendHeartbeat,
)
from coordinator.membership.consumer.member import ConsumerMember, ConsumerMemberSettings, ConsumerMemberState, deadline
from coordinator.membership.consumer.reactions import HEARTBEAT, REACTIONS, reaction
from coordinator.membership.consumer.table import step
from coordinator.membership.effects import CommitPositions, Effect, FindCoordinator
from coordinator.membership.events import Closed, CoordinatorFound, CoordinatorUnknown, Event, Polled, Ticked
from kernel.clock import NS_PER_MS
from kernel.values import TopicPartition
from tests.support.properties import examples

ERRORS = sorted(REACTIONS)
ALL = frozenset(TopicPartition("t", n) for n in range(4))
Saying = tuple[str, object]

anything: st.SearchStrategy[Saying] = st.one_of(
    st.tuples(st.just("advance"), st.integers(0, 4000)),
    st.tuples(st.just("refused"), st.sampled_from(ERRORS)),
    st.tuples(st.just("late"), st.sampled_from(ERRORS)),
    st.tuples(st.just("target"), st.frozensets(st.sampled_from(sorted(ALL)))),
    st.sampled_from([("found", None), ("unknown", None), ("returned", None), ("unchanged", None), ("poll", None)]),
    st.sampled_from([("raised", None), ("subscribe", None), ("unsubscribe", None)]),
)
sayings = st.tuples(st.integers(0, 2), anything).map(lambda drawn: drawn[1] if drawn[0] == 0 else ("kind", None))


class World:
    """One member, the group and the listener's calls."""

    def __init__(self) -> None:
        self.now = 0
        self.member = ConsumerMember(
            settings=ConsumerMemberSettings(group="g", max_poll_interval_ms=5000), member_id="m"
        )
        self.epoch = 0
        self.fenced = 0  #: the highest epoch that the group refused
        self.calls: list[Callback] = []
        self.lookups = 0
        self.heard: frozenset[TopicPartition] = frozenset()  #: what the listener believes to own

    def event(self, what: str, detail: object) -> Event | None:
        member = self.member
        match what:
            case "refused" | "late":
                return reaction(HEARTBEAT, str(detail), stamp=member.stamp - (what == "late"), sent_ns=self.now)
            case "target" if member.heartbeat_sent:
                assert isinstance(detail, frozenset)
                self.epoch += 1
                return events.HeartbeatAnswered(member.stamp, self.epoch, 1000, detail)
            case "unchanged" if member.heartbeat_sent and member.epoch:
                return events.HeartbeatAnswered(member.stamp, member.epoch, 1000)
            case "found" | "unknown" if self.lookups:
                self.lookups -= 1
                return CoordinatorFound(1) if what == "found" else CoordinatorUnknown("nobody")
            case "returned" | "raised" if self.calls:
                call = self.calls.pop(0)
                again = what == "raised" and member.state is ConsumerMemberState.RECONCILING
                if again and isinstance(call, RevokePartitions):
                    self.heard |= call.partitions & member.owned
                return events.CallbackReturned(call.number, failed=what == "raised")
        return {
            "poll": Polled(),
            "tick": Ticked(),
            "subscribe": events.Subscribed(frozenset({"t"})),
            "unsubscribe": events.Unsubscribed(),
            "close": Closed(),
        }.get(what)

    def say(self, what: str, detail: object = None) -> None:
        if what == "kind":
            for kind in ("subscribe", "found", "poll", "returned"):
                self.say(kind)
            self.say("unchanged") if self.member.epoch else self.say("target", ALL)
            self.say("advance", 100)
            return
        if what == "advance":
            assert isinstance(detail, int)
            self.now += detail * NS_PER_MS
            what = "tick"
        if what == "refused" and not self.member.heartbeat_sent:
            return
        event = self.event(what, detail)
        if event is None:
            return
        before = self.member
        self.member, wanted = step(before, event, self.now)
        if isinstance(event, events.EpochFenced) and event.stamp == before.stamp:
            self.fenced = max(self.fenced, before.epoch)
        for effect in wanted:
            self.check(before, effect)
        assert not self.member.owned or self.member.epoch > 0
        assert self.member.releasing <= self.member.owned
        assert not self.member.epoch or self.member.epoch > self.fenced
        assert self.lookups == self.member.finding or self.member.state is ConsumerMemberState.FATAL
        due = deadline(self.member)
        if due is not None and due <= self.now:
            moved, effects = step(self.member, Ticked(), self.now)
            assert moved != self.member or effects, f"a timer that is due does nothing: {self.member}"

    def check(self, before: ConsumerMember, effect: Effect) -> None:
        match effect:
            case RevokePartitions() | LosePartitions():
                assert effect.partitions <= before.owned
                assert effect.partitions <= self.heard, "the listener hears of each loss once, unless it raises"
                self.heard -= effect.partitions
                self.calls.append(effect)
            case AssignPartitions():
                assert not effect.partitions & self.heard
                self.heard |= effect.partitions
                self.calls.append(effect)
            case SendHeartbeat():
                assert effect.epoch <= 0 or effect.epoch > self.fenced
                assert effect.epoch < 0 or effect.topics != frozenset(), "the group would share its partitions out"
                assert effect.epoch != 0 or not effect.owned
            case CommitPositions():
                assert effect.identity.generation > self.fenced
            case FindCoordinator():
                self.lookups += 1


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(sayings, max_size=50), st.booleans(), st.lists(sayings, max_size=8))
def test_any_course_of_events_keeps_the_members_promises(course: list[Saying], close: bool, rest: list[Saying]) -> None:
    world = World()
    for what, detail in [*course, *([("close", None)] if close else []), *rest]:
        world.say(what, detail)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(sayings, max_size=40))
def test_member_in_any_state_settles_when_all_goes_well(course: list[Saying]) -> None:
    world = World()
    for what, detail in course:
        world.say(what, detail)
    for _ in range(30):
        world.say("kind")
        if world.member.state is ConsumerMemberState.STABLE and not world.calls:
            assert world.member.owned == world.member.target.partitions == world.heard
            return
    raise AssertionError(f"still {world.member}")
