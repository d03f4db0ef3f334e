"""Random lives of a group: members join, heartbeat, revoke late, lose answers, leave, fall silent; topics change."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.groups.consumer.searching import BETWEEN_SEARCHES_MS
from coordinator.groups.consumer.states import ConsumerGroupState
from coordinator.groups.errors import Error
from coordinator.groups.partitions import each, overlap
from tests.coordinator.groups.consumer.consumer_invariants import check_epochs, check_owners, check_tables, hard_state
from tests.support.groups.consumer import SETTINGS, World, by_name, owned_by_name
from tests.support.properties import examples

NAMES = ("a", "b", "c", "d", "e")
TOPICS = ("foo", "bar", "new")
REGEXES = ("", "", "fo+", "ba.|new", ".*")
#: Members that hang for longer than a session have been removed; the others do not.
PATIENT = replace(SETTINGS, session_timeout_ms=3_000, members_max=4)


@dataclass
class Client:
    """A consumer as the new Java one behaves: it revokes what is not in its assignment, then takes the rest."""

    name: str
    world: World
    topics: tuple[str, ...]
    regex: str  #: empty: none
    assignor: str | None
    instance: str | None
    epoch: int = 0
    owns: dict[str, set[int]] = field(default_factory=dict)
    told: dict[str, set[int]] | None = None  #: an assignment that it has not taken yet
    fresh: bool = True  #: its next heartbeat tells everything

    def beat(self, lose: bool = False) -> Error:
        subscription = {"topics": self.topics, "topic_regex": self.regex}
        told = {"rebalance_timeout_ms": 2_000, **subscription, "assignor": self.assignor} if self.fresh else {}
        owned = {} if self.epoch == 0 else {topic: sorted(numbers) for topic, numbers in self.owns.items()}
        token = self.world.send(self.name, self.epoch, instance_id=self.instance, owned=owned_by_name(owned), **told)
        answer = self.world.answers[token]
        if lose:
            self.fresh = True
            return Error.NONE
        if answer.error is Error.NONE:
            self.epoch, self.fresh = answer.epoch, False
            if answer.assignment is not None:
                self.told = {topic: set(numbers) for topic, numbers in (by_name(answer.assignment) or {}).items()}
        elif answer.error in (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID, Error.GROUP_ID_NOT_FOUND):
            self.epoch, self.owns, self.told, self.fresh = 0, {}, None, True
        else:
            assert answer.error in (Error.GROUP_MAX_SIZE_REACHED, Error.UNRELEASED_INSTANCE_ID), answer
        return answer.error

    def subscribed(self) -> set[str]:
        """The names of its topics, those that do not exist included."""
        return {*self.topics, *filter(re.compile(self.regex).fullmatch, self.world.sizes)}

    def reconcile(self) -> None:
        if self.told is not None:
            self.owns, self.told = self.told, None


class Life:
    def __init__(self) -> None:
        self.world = World({"foo": 6, "bar": 3}, PATIENT)
        self.clients: dict[str, Client] = {}
        self.epochs: dict[str, int] = {}
        self.group_epochs = (0, 0)
        self.births = 0

    def act(self, draw: st.DataObject) -> None:
        what = draw.draw(
            st.sampled_from(
                (
                    *("start", "beat", "beat", "beat", "lose", "reconcile", "reconcile", "change", "leave", "crash"),
                    *("grow", "wait", "search", "failover"),
                )
            )
        )
        client = self.clients.get(draw.draw(st.sampled_from(NAMES)))
        if what == "start":
            self.start(draw)
        elif what == "grow":
            topic = draw.draw(st.sampled_from(TOPICS))
            self.world.names_version += topic not in self.world.sizes
            self.world.sizes[topic] = self.world.sizes.get(topic, 0) + 1
            self.world.view = object()
        elif what == "wait":
            self.world.advance(draw.draw(st.sampled_from((100, 900, 2_500))))
        elif what == "search":
            self.world.search()
        elif what == "failover":
            self.fail_over()
        elif client is not None:
            self.of_client(what, client, draw)

    def start(self, draw: st.DataObject) -> None:
        slot = draw.draw(st.sampled_from(NAMES))
        if slot not in self.clients:
            self.births += 1
            topics = tuple(draw.draw(st.sets(st.sampled_from(TOPICS))))
            regex = draw.draw(st.sampled_from(REGEXES))
            instance = draw.draw(st.sampled_from((None, None, f"i-{slot}")))
            assignor = draw.draw(st.sampled_from((None, "range", "uniform")))
            self.clients[slot] = Client(f"{slot}{self.births}", self.world, topics, regex, assignor, instance)

    def of_client(self, what: str, client: Client, draw: st.DataObject) -> None:
        if what in ("beat", "lose"):
            client.beat(lose=what == "lose")
        elif what == "reconcile":
            client.reconcile()
        elif what == "change":
            client.topics, client.fresh = tuple(draw.draw(st.sets(st.sampled_from(TOPICS)))), True
            client.regex = draw.draw(st.sampled_from(REGEXES))
        else:
            del self.clients[client.name[0]]
            if what == "leave" and client.epoch > 0:
                self.world.send(client.name, -1 if client.instance is None else -2, instance_id=client.instance)

    def fail_over(self) -> None:
        other = self.world.successor()
        other.epochs, other.answers = {}, dict(self.world.answers)
        other._tokens, other.names_version = self.world._tokens, self.world.names_version
        assert hard_state(other.groups) == hard_state(self.world.groups)
        self.world = other
        for client in self.clients.values():
            client.world = other

    def check(self) -> None:
        group = self.world.groups.groups.get("g")
        if group is None:
            return
        check_owners(group)
        check_tables(group)
        self.group_epochs = check_epochs(group, self.group_epochs)
        for member in group.members.values():
            assert member.epoch == -2 or member.epoch >= self.epochs.get(member.id, 0)
            self.epochs[member.id] = max(member.epoch, 0)
        for client in self.clients.values():
            member_of_it = group.members.get(client.name)
            if member_of_it is not None and client.epoch == member_of_it.epoch and client.told is None:
                # What it delivers from is its own until it says that it gave it up.
                mine = owned_by_name(client.owns) or {}
                others = [m for m in group.members.values() if m.id != client.name]
                assert not any(overlap(mine, m.assigned) for m in others)

    def settle(self) -> None:
        """Everybody who is left behaves, until searches are due again and for some heartbeats more."""
        self.world.advance(PATIENT.session_timeout_ms)
        rounds = 2 + BETWEEN_SEARCHES_MS // 1_000 + 12
        for number in range(2 * rounds):
            if number == rounds:  # until an epoch of its own, one who joins after a search is taken for like the others
                self.world.sizes = {topic: size + 1 for topic, size in self.world.sizes.items()}
                self.world.view = object()
            for client in self.clients.values():
                client.beat()
                client.reconcile()
                self.check()
            self.world.search()
            self.world.advance(1_000)
        group = self.world.groups.groups.get("g")
        if not self.clients:
            assert group is None or group.state is ConsumerGroupState.EMPTY
            return
        assert group is not None
        inside = [client for client in self.clients.values() if client.epoch > 0]
        assert len(inside) == min(len(self.clients), PATIENT.members_max)
        assert group.state is ConsumerGroupState.STABLE
        delivered = [place for client in inside for place in each(owned_by_name(client.owns) or {})]
        subscribed = {topic for client in inside for topic in client.subscribed()}
        assert len(delivered) == len(set(delivered)) == sum(self.world.sizes.get(topic, 0) for topic in subscribed)
        for client in inside:
            assert set(client.owns) <= client.subscribed()


@settings(max_examples=examples(60))
@given(st.data())
def test_group_never_gives_a_partition_to_two_and_settles(data: st.DataObject) -> None:
    life = Life()
    for _ in range(data.draw(st.integers(0, 40))):
        life.act(data)
        life.check()
    life.fail_over()
    life.settle()


@pytest.mark.long
@settings(max_examples=examples(500))
@given(st.data())
def test_group_never_gives_a_partition_to_two_in_long_lives(data: st.DataObject) -> None:
    life = Life()
    for _ in range(data.draw(st.integers(20, 120))):
        life.act(data)
        life.check()
    life.fail_over()
    life.settle()
