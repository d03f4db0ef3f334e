"""Invariants of a group, whatever members, storage and time do to it, in any order."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from coordinator.groups.classic.member import Member
from coordinator.groups.classic.states import GroupState
from coordinator.groups.effects import TimerKind
from coordinator.groups.records import GroupKey, OffsetKey, PendingKey
from coordinator.groups.requests import Producer, Protocol
from tests.support.groups.classic import LIMITS, Machine, assignment, subscription
from tests.support.properties import examples

NAMES = st.sampled_from("abcdef")
T0 = ("t", 0)
INSTANCES = st.sampled_from([None, None, "i", "j"])
PROTOCOLS = st.sampled_from(
    [
        (Protocol("range", subscription("t")),),
        (Protocol("range", subscription("t", "u")), Protocol("rr", subscription("t"))),
        (Protocol("rr", subscription("u")), Protocol("range", subscription("u"))),
    ]
)


class GroupUnderFire(RuleBasedStateMachine):
    """Random members; some are static, some vanish, some send a wrong generation."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = Machine(LIMITS)
        self.generation = 0
        self.missed_a_write = False  # if so, the log is behind until the next rebalance, as in Kafka
        self.instances: dict[str, str | None] = {}
        self.producers: dict[str, Producer] = {}
        self.seen: dict[int, Member] = {}  # by identity: a member id may come again

    # -- what happens ---------------------------------------------------------------------------------------------

    @rule(who=NAMES, protocols=PROTOCOLS, new=st.booleans(), returns=st.booleans(), instance_id=INSTANCES)
    def join(self, who, protocols, new, returns, instance_id):
        self.instances.setdefault(who, instance_id)
        self.machine.join(who, new=new, returns=returns, protocols=protocols, instance_id=self.instances[who])

    @rule(who=NAMES, lag=st.sampled_from([0, 0, 0, 1]))
    def sync(self, who, lag):
        machine = self.machine
        generation = machine.group.generation if machine.group else 1
        given = {name: assignment("t", number) for number, name in enumerate("abcdef") if name != "f"}
        machine.sync(who, given, generation=generation - lag, instance_id=self.instances.get(who))

    @rule(who=st.lists(NAMES, min_size=1, max_size=4, unique=True), protocols=PROTOCOLS)
    def settle(self, who, protocols):
        """Members that join, wait and sync correctly, which random requests seldom do."""
        for name in who:
            self.instances.setdefault(name, None)
            for _ in range(2):
                self.machine.join(name, protocols=protocols, instance_id=self.instances[name])
        self.machine.wait(100)
        for name in who:
            self.sync(name, 0)

    @rule(who=NAMES)
    def heartbeat(self, who):
        self.machine.heartbeat(who, instance_id=self.instances.get(who))

    @rule(who=st.lists(NAMES, max_size=3))
    def leave(self, who):
        self.machine.leave(*who)

    @rule(who=NAMES, anonymous=st.booleans())
    def commit(self, who, anonymous):
        self.machine.commit(who, {"t-0": self.machine.now_ms}, **({"generation": -1} if anonymous else {}))

    @rule(who=NAMES, ends=st.sampled_from([None, True, False]), anonymous=st.booleans(), raises=st.booleans())
    def commit_in_transaction(self, who, ends, anonymous, raises):
        """One producer for each name: it sends an offset, then may end its transaction, or be replaced."""
        producer = self.producers.get(who, Producer(ord(who), 0))
        fields = {} if anonymous else {"member_id": self.machine.ids.get(who, who), "generation": self.generation}
        self.machine.commit_in_transaction(producer, {"t-0": self.machine.now_ms}, **fields)
        if raises:
            producer = self.producers[who] = producer._replace(epoch=producer.epoch + 1)
        if ends is not None:
            self.machine.mark(producer, commits=ends)

    @rule()
    def delete(self):
        self.machine.delete_group()
        if self.machine.group is None or self.machine.group.state is GroupState.DEAD:
            self.generation = 0

    @rule(ms=st.sampled_from([1, 49, 50, 200, 500, 10_000]))
    def wait(self, ms):
        self.machine.wait(ms)

    @rule()
    def hold_writes(self):
        self.machine.hold()

    @rule(fails=st.booleans())
    def land_writes(self, fails):
        if fails and self.machine.writes:
            self.missed_a_write = True
            self.machine.fail()
        else:
            self.machine.land()

    @rule()
    def fail_over(self):
        before = self.machine.subject.describe(self.machine.group_id)
        settled = (
            not self.machine.writes
            and before.state in {GroupState.STABLE, GroupState.EMPTY}
            and not self.missed_a_write
        )
        # A group without stored records, as after an aborted transaction, is forgotten, as in Kafka.
        settled = settled and any(isinstance(key, GroupKey | OffsetKey | PendingKey) for key in self.machine.log)
        # A static member that misses a rebalance keeps its place, so a group can outgrow group.max.size. When such a
        # group is loaded, it rebalances, as in Kafka.
        settled = settled and len(before.members) <= LIMITS.members_max
        offsets = self.committed()
        generation, leader = self.generation_and_leader()
        self.machine.unload()
        self.machine.fail()
        self.everybody_is_answered()
        self.machine = self.machine.successor()
        if settled:
            # What was loaded equals what was running.
            assert self.machine.subject.describe(self.machine.group_id) == before
            assert self.generation_and_leader() == (generation, leader)
            assert self.committed() == offsets
        self.generation = 0  # a generation that was not stored is not remembered
        self.missed_a_write = False

    # -- what holds -----------------------------------------------------------------------------------------------

    def generation_and_leader(self) -> tuple[int, str | None]:
        group = self.machine.group
        return (group.generation, group.leader) if group else (0, None)

    def committed(self):
        """What OffsetFetch answers, plain and stable."""
        fetch, group_id = self.machine.subject.offsets.fetch, self.machine.group_id
        return fetch(group_id, None), fetch(group_id, (T0,), stable=True)

    def everybody_is_answered(self) -> None:
        for asked in self.machine.asked.values():
            assert (asked.answer is not None) != asked.abandoned, f"{asked.who}'s {asked.verb}"

    @invariant()
    def leader_is_a_member(self):
        group = self.machine.group
        if group is not None:
            assert (group.leader in group.members) if group.members else group.leader is None

    @invariant()
    def counters_count_what_is_there(self):
        group = self.machine.group
        if group is not None:
            members = group.members.values()
            assert group.joined == sum(m.parked_join is not None for m in members)
            assert group.supporters == Counter(name for m in members for name in {p.name for p in m.protocols})
            assert group.instances == {m.instance_id: m.id for m in members if m.instance_id is not None}
            assert not group.pending.keys() & group.members.keys()

    @invariant()
    def state_fits_the_members(self):
        group = self.machine.group
        if group is None or group.state is GroupState.DEAD:
            return
        if group.state is GroupState.EMPTY:
            assert not group.members
        elif group.state is not GroupState.PREPARING:
            assert group.members
        parked_syncs = [m for m in group.members.values() if m.parked_sync is not None]
        assert not parked_syncs or group.state is GroupState.COMPLETING
        if group.state is GroupState.COMPLETING:
            assert not group.joined
        assert group.joined <= len(group.members)

    @invariant()
    def generation_never_goes_back(self):
        group = self.machine.group
        if group is not None and group.state is not GroupState.DEAD:
            assert group.generation >= self.generation
            self.generation = group.generation

    @invariant()
    def who_waits_is_known_to_wait(self):
        """Every request without an answer is parked with a member or being written to the log: none is lost."""
        machine = self.machine
        waiting = {token for token, asked in machine.asked.items() if asked.answer is None and not asked.abandoned}
        known = {
            token
            for group in machine.subject.classic.groups.values()
            for member in group.members.values()
            for token in (member.parked_join, member.parked_sync)
            if token is not None
        }
        for write in machine.writes:
            known |= {getattr(write, "token", None) or getattr(getattr(write, "request", None), "token", None)}
        assert waiting <= known

    @invariant()
    def something_will_end_every_wait(self):
        """Every waiting state and every silent member has a timer or a write that will end the wait."""
        group = self.machine.group
        if group is None or group.state is GroupState.DEAD:
            return
        set_timers = {name.partition(" ")[0] for name in self.machine.timers()}
        if group.state is GroupState.PREPARING:
            assert TimerKind.JOIN.value in set_timers
        if group.state is GroupState.COMPLETING:
            assert TimerKind.SYNC.value in set_timers or self.machine.writes or not group.unsynced
        watched = {name.partition(" ")[2] for name in self.machine.timers()}
        for member in group.members.values():
            assert member.id in watched or member.parked_join is not None or member.parked_sync is not None

    @invariant()
    def removed_member_has_no_session_timer(self):
        """The fast path of heartbeats relies on it (`coordinator.service.heartbeats`)."""
        group = self.machine.group
        present = {} if group is None or group.state is GroupState.DEAD else group.members
        self.seen |= {id(member): member for member in present.values()}
        for member in self.seen.values():
            assert present.get(member.id) is member or member.session_timer.armed_ms is None

    @invariant()
    def nobody_is_named_twice_or_cleared_unnamed(self):
        named: set[tuple[object, ...]] = set()
        for event in self.machine.events:
            if event.kind in ("authority_named", "authority_cleared"):
                what = tuple(event.fields[name] for name in ("group", "topic", "partition", "owner", "epoch"))
                assert (what in named) == (event.kind == "authority_cleared"), event
                named ^= {what}


GroupUnderFire.TestCase.settings = settings(
    max_examples=examples(150), stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestGroupUnderFire = GroupUnderFire.TestCase
