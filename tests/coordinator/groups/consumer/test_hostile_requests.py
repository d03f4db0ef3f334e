"""Any requests in any order, valid or not, to groups of both protocols in one coordinator; writes may fail.

Nothing raises, every request is answered once (or parked, in the classic protocol), and after each of them the
invariants of `tests.coordinator.groups.consumer.consumer_invariants` hold. What a failed write decided has not
happened. A successor finds what was stored.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from coordinator.groups.consumer.groups import ConsumerGroups
from coordinator.groups.consumer.requests import ConsumerHeartbeat
from coordinator.groups.effects import Effects, Moment, Search, SetTimer, TimerKey, Turn, Write
from coordinator.groups.errors import Error
from coordinator.groups.machine import Machine
from coordinator.groups.requests import (
    Commit,
    DeleteGroup,
    DeleteOffsets,
    Heartbeat,
    Join,
    Leave,
    Leaving,
    OffsetToCommit,
    Sync,
)
from coordinator.service.topic_regex import problem
from tests.coordinator.groups.consumer.consumer_invariants import check_epochs, check_owners, check_tables, hard_state
from tests.support.groups.classic import ASSIGNMENT, LIMITS, RANGE
from tests.support.groups.consumer import SETTINGS, World, found_topics, owned_by_name

GROUPS = ("g", "h")
MEMBERS = ("a", "b", "c", "d", "e", "f")
INSTANCES = (None, None, None, "i", "j")
TOPICS = ("foo", "bar", "none")
REGEXES = (None, None, None, "", "fo+", "ba.|fo.", ".*", "(")
FAILURE = Error.COORDINATOR_NOT_AVAILABLE


class Coordinator:
    """A machine that is asked at random."""

    def __init__(self, seed: int, log: dict[Any, Any] | None = None) -> None:
        self.random = random.Random(seed)
        self.log = {} if log is None else log
        self.answers: Counter[int] = Counter()
        self.timers: dict[TimerKey, int] = {}
        self.held: list[Write] = []
        self.searches: list[Search] = []
        self.fails = False  #: whether the writes of the present requests are going to fail
        self.now = Moment(0, 1_000)
        self.world = World({"foo": 6, "bar": 3})
        self.epochs: dict[str, tuple[int, int]] = {}
        self.machine = Machine(LIMITS, ASSIGNMENT, lambda _: 6, ConsumerGroups(lambda _: SETTINGS, self.world.topics))
        for change in self.log.items():
            self.machine.apply(change)
        for event in self.machine.wake():
            self.perform(self.machine.step(event, self.now))
        self.store_all()

    # -- what the doing code does -----------------------------------------------------------------------------------

    def perform(self, effects: Effects) -> None:
        for timer in effects.timers:
            if isinstance(timer, SetTimer):
                self.timers[timer.key] = timer.at_ms
            else:
                self.timers.pop(timer.key, None)
        for token, _ in effects.replies:
            self.answers[token] += 1
        self.held += effects.writes
        self.searches += effects.searches

    def step(self, event: Callable[[Turn], None]) -> None:
        self.perform(self.machine.step(event, self.now))

    def store_all(self) -> None:
        while self.held:
            write = self.held.pop(0)
            for key, value in write.changes:
                self.log.pop(key, None)
                if value is not None:
                    self.log[key] = value
            self.step(write.stored)

    def fail_all(self) -> None:
        """As a log does that has lost its leadership: none of what is on its way is stored."""
        while self.held:
            self.step(partial(self.held.pop(0).not_stored, FAILURE))

    def advance(self, ms: int) -> None:
        end = self.now.ms + ms
        while due := [(at_ms, repr(key), key) for key, at_ms in self.timers.items() if at_ms <= end]:
            at_ms, _, key = min(due)
            self.now = Moment(max(self.now.ms, at_ms), 1_000 + max(self.now.ms, at_ms))
            del self.timers[key]
            self.perform(self.machine.timer_fired(key, self.now))
            self.store_all()
        self.now = Moment(end, 1_000 + end)

    # -- requests ---------------------------------------------------------------------------------------------------

    def one_of(self, *some: Any) -> Any:
        return self.random.choice(some)

    def partitions(self) -> Any:
        topics = self.random.sample(TOPICS, self.random.randrange(3))
        return owned_by_name({topic: self.random.sample(range(-1, 8), self.random.randrange(4)) for topic in topics})

    def plausible(self, group_id: str, member_id: str) -> tuple[int, Any]:
        """The epoch and the partitions that a member with this id would report."""
        group = self.machine.consumer.groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        return (0, {}) if member is None else (member.epoch, member.assigned)

    def consumer_heartbeat(self, token: int) -> ConsumerHeartbeat:
        group_id, member_id = self.one_of(*GROUPS), self.one_of(*MEMBERS)
        epoch, owned = self.plausible(group_id, member_id)
        if self.random.random() < 0.3:
            epoch = self.one_of(-3, -2, -1, -1, 0, 1, epoch - 1, epoch + 1, 99)
        if self.random.random() < 0.3:
            owned = self.one_of(None, {}, self.partitions())
        joins = epoch == 0 or self.random.random() < 0.2
        regex = self.one_of(*REGEXES) if joins else None
        return ConsumerHeartbeat(
            token=token,
            group_id=group_id,
            member_id=member_id,
            epoch=epoch,
            client_id="c",
            client_host="/h",
            fresh_id=f"fresh-{token}",
            may_lack_id=self.one_of(False, True),
            instance_id=self.one_of(*INSTANCES),
            rack_id=self.one_of(None, None, "", "r"),
            rebalance_timeout_ms=self.one_of(0, 1_000, 60_000) if joins else self.one_of(-1, -1, 500),
            topics=self.one_of((), ("foo",), ("foo", "bar"), ("none",)) if joins else self.one_of(None, None, ("bar",)),
            topic_regex=regex,
            regex_problem=problem(regex or ""),
            assignor=self.one_of(None, None, None, "range", "uniform", "?"),
            owned=owned,
        )

    def classic(self, token: int) -> Any:
        at = {"token": token, "group_id": self.one_of(*GROUPS), "member_id": self.one_of("", *MEMBERS)}
        instance_id = self.one_of(*INSTANCES)
        # Nobody waits for the record of a new classic group, so it is there even if that fails.
        match self.random.randrange(3 if self.fails else 4):
            case 0:
                return Heartbeat(**at, generation=self.one_of(0, 1, 2), instance_id=instance_id)
            case 1:
                return Sync(**at, generation=self.one_of(0, 1, 2), instance_id=instance_id)
            case 2:
                named = [Leaving(self.one_of("", *MEMBERS), self.one_of(*INSTANCES)) for _ in range(2)]
                return Leave(token=token, group_id=at["group_id"], members=tuple(named))
            case _:
                return Join(
                    **at,
                    client_id="c",
                    client_host="/h",
                    session_timeout_ms=5_000,
                    rebalance_timeout_ms=5_000,
                    protocol_type=self.one_of("consumer", "connect"),
                    protocols=RANGE,
                    fresh_id=f"fresh-{token}",
                    instance_id=instance_id,
                    must_return_with_id=self.one_of(False, True),
                )

    def administration(self, token: int) -> Any:
        group_id, member_id = self.one_of(*GROUPS), self.one_of("", *MEMBERS)
        match self.random.randrange(4):
            case 0:
                if not self.machine.consumer.in_use(group_id):
                    self.epochs.pop(group_id, None)  # the next group of this id begins anew
                return DeleteGroup(token=token, group_id=group_id)
            case 1:
                return DeleteOffsets(token=token, group_id=group_id, partitions=(("foo", 0), ("bar", 1)))
            case _:
                return Commit(
                    token=token,
                    group_id=group_id,
                    member_id=member_id,
                    generation=self.one_of(-1, self.plausible(group_id, member_id)[0]),
                    offsets=(OffsetToCommit(self.one_of("foo", "bar"), 0, token, -1, ""),),
                    absent_group_is_named=self.one_of(False, True),
                )

    def search(self) -> None:
        """Make a search for topics that a group asked for; it may have changed or ended since."""
        asked = self.searches.pop(0)
        found = self.one_of({}, *3 * (found_topics(asked, self.world.sizes, self.now.wall_ms),))
        self.step(partial(self.machine.consumer.matched, asked.group_id, found))

    def ask(self, token: int) -> None:
        if self.searches and self.random.random() < 0.5:
            self.search()
        kind = self.random.random()
        make = self.consumer_heartbeat if kind < 0.75 else self.classic if kind < 0.88 else self.administration
        self.perform(self.machine.handle(make(token), self.now))

    # -- what must be true ------------------------------------------------------------------------------------------

    def check(self) -> None:
        assert set(self.answers.values()) <= {1}
        groups = self.machine.consumer.groups
        for group_id in self.epochs.keys() - groups.keys():
            del self.epochs[group_id]
        for group_id, group in groups.items():
            check_owners(group)
            check_tables(group)
            self.epochs[group_id] = check_epochs(group, self.epochs.get(group_id, (0, 0)))

    def check_log(self) -> None:
        assert hard_state(Coordinator(0, dict(self.log)).machine.consumer) == hard_state(self.machine.consumer)


def live(seed: int, requests: int) -> None:
    at = Coordinator(seed)
    for token in range(1, requests):
        at.fails = at.random.random() < 0.1
        before = hard_state(at.machine.consumer)
        epochs = dict(at.epochs)
        for several in range(at.random.randrange(1, 3)):
            at.ask(10 * token + several)
        if at.fails:
            at.fail_all()
            assert hard_state(at.machine.consumer) == before
            at.epochs = epochs
        else:
            at.store_all()
        at.check()
        match at.random.randrange(12):
            case 0:
                at.advance(at.random.choice((100, 1_000, 4_000)))
                at.check()
            case 1:
                at.world.sizes["foo"] = at.random.randrange(1, 8)
                at.world.names_version += 1
                at.world.view = object()
            case 2:
                at.check_log()


@pytest.mark.parametrize("seed", range(12))
def test_random_requests_break_no_promise(seed: int) -> None:
    live(seed, 250)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 200))
def test_more_random_requests_break_no_promise(seed: int) -> None:
    live(seed, 1_500)
