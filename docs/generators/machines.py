"""The state machines of both backends as values, read from the tables that run: what `machine_picture` draws and
`docs.generators.machine_page` writes.

A group's moves come from its `TRANSITIONS`, a member's from its `TABLE` of events, an attempt's steps of the 0.8
consumer from its rebalance table. Two machines have no table: what lies between two attempts of that consumer, and a
group of the `consumer` design, whose state follows from its epochs and members. `BETWEEN` and `CONSUMER_MOVES` say
their moves here, and tests compare them with what happens.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator.groups.classic import states as classic_states
from coordinator.groups.consumer.states import TRANSITIONS as RECONCILED
from coordinator.groups.consumer.states import ConsumerGroupState as G
from coordinator.groups.consumer.states import ConsumerMemberState as MemberOfGroup
from coordinator.groups.server import states as server_states
from coordinator.membership.classic.member import MemberState
from coordinator.membership.classic.table import TABLE as CLASSIC_TABLE
from coordinator.membership.consumer.member import ConsumerMemberState
from coordinator.membership.consumer.table import TABLE as CONSUMER_TABLE
from coordinator.membership.server.member import ServerMemberState
from coordinator.membership.server.table import TABLE as SERVER_TABLE
from docs.generators import consumer_requests
from docs.generators import requests_by_state as requests
from docs.generators.rebalance_table import ORIGINAL
from zkconsumer.rebalance.attempt import following
from zkconsumer.rebalance.state import RebalanceState as S
from zkconsumer.rebalance.table import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from enum import Enum

    from docs.generators.requests_by_state import Answers
    from zkconsumer.rebalance.steps import Step


class Move(NamedTuple):
    """Where a state leads, and for which reasons; a reason with a condition is `reason: condition`."""

    target: str
    reasons: tuple[str, ...]


def listed(reasons: Sequence[str]) -> str:
    """The reasons in one text. Those with a condition come last and end with semicolons, as conditions have commas."""
    plain = ", ".join(reason for reason in reasons if ": " not in reason)
    return "; ".join(([plain] if plain else []) + [reason for reason in reasons if ": " in reason])


class State(NamedTuple):
    """A state: what it is, a class of colour, and its moves. `facts` are further lines, each with a heading."""

    name: str
    says: str
    kind: str
    moves: tuple[Move, ...]
    note: str = ""
    facts: tuple[tuple[str, str], ...] = ()


class Machine(NamedTuple):
    """A machine. What moves every state to one other state for one reason is drawn as a line of its own, the `bus`."""

    name: str
    title: str
    says: str
    states: tuple[State, ...]
    #: (the reason, where it leads)
    bus: tuple[str, str]
    #: States that many others lead to, named and not drawn to.
    apart: frozenset[str] = frozenset()

    def state(self, name: str) -> State:
        return next(state for state in self.states if state.name == name)


#: The colour of a state, by name; both designs' groups have the same.
GROUP_KINDS = {
    "Empty": "k9",
    "PreparingRebalance": "k1",
    "CompletingRebalance": "k0",
    "Assigning": "k0",
    "Reconciling": "k1",
    "Stable": "k2",
    "Dead": "k7",
}
#: From top to bottom as a member goes through them, with the colour.
CLASSIC_MEMBER = {
    "UNJOINED": "k9",
    "SEEKING": "k6",
    "JOINING": "k1",
    "DECIDING": "k0",
    "SYNCING": "k0",
    "ASSIGNED": "k4",
    "RELEASING": "k5",
    "RESUMING": "k4",
    "STABLE": "k2",
    "REJOIN_NEEDED": "k3",
    "STOPPING": "k5",
    "UNSUBSCRIBING": "k7",
    "CLOSING": "k7",
    "LEFT": "k9",
    "FAILED": "k7",
}
SERVER_MEMBER = {
    "UNREGISTERED": "k9",
    "REGISTERING": "k6",
    "WAITING": "k1",
    "STARTING": "k4",
    "STARTED": "k2",
    "STOPPING": "k5",
    "CLOSING": "k7",
    "LEFT": "k9",
    "FAILED": "k7",
}
#: In the order of the figure.
CONSUMER_MEMBER = {
    "UNSUBSCRIBED": "k9",
    "JOINING": "k1",
    "RECONCILING": "k5",
    "ACKNOWLEDGING": "k4",
    "STABLE": "k2",
    "PREPARE_LEAVING": "k7",
    "FENCED": "k3",
    "STALE": "k3",
    "FATAL": "k7",
}
#: A member of a `consumer` group, as its coordinator sees it.
RECONCILED_KINDS = {"STABLE": "k2", "UNREVOKED_PARTITIONS": "k5", "UNRELEASED_PARTITIONS": "k1", "UNKNOWN": "k9"}
LAST_LEAVES = "the last member leaves"
#: Why the group's epoch grows without a heartbeat that could compute the target.
OUTDATED = (
    (G.ASSIGNING, "a member leaves"),
    (G.ASSIGNING, "a session ends"),
    (G.ASSIGNING, "a member takes too long to give partitions up"),
    (G.ASSIGNING, "other topics match a regular expression"),
)
#: The moves of a group of the `consumer` design.
CONSUMER_MOVES: Mapping[G, tuple[tuple[G, str], ...]] = {
    G.EMPTY: ((G.DEAD, "DeleteGroups or the last offset expires"), (G.STABLE, "a member joins and gets everything")),
    G.ASSIGNING: (
        (G.RECONCILING, "anybody's next heartbeat computes the target"),
        (G.STABLE, "the same when a member is alone"),
        (G.EMPTY, LAST_LEAVES),
    ),
    G.RECONCILING: (
        (G.STABLE, "the last member that was not there yet has its target"),
        *OUTDATED,
        (G.EMPTY, LAST_LEAVES),
    ),
    G.STABLE: (
        *OUTDATED,
        (G.RECONCILING, "a member joins"),
        (G.RECONCILING, "a member subscribes otherwise"),
        (G.RECONCILING, "a topic has changed"),
        (G.RECONCILING, "a static member leaves for a while"),
        (G.EMPTY, LAST_LEAVES),
    ),
    G.DEAD: ((G.STABLE, "a member joins and gets everything"),),
}
#: The moves of the 0.8 consumer between two attempts, and between two rebalances, without options.
BETWEEN: Mapping[S, tuple[tuple[S, str], ...]] = {
    S.IDLE: ((S.LISTING_CLUSTER, "a change, the first rebalance, a new session"), (S.CLOSING, "the shutdown")),
    S.GIVING_UP: ((S.BACKING_OFF, "fetchers stopped, offsets committed"), (S.IDLE, "stopping failed as well")),
    S.BACKING_OFF: (
        (S.LISTING_CLUSTER, "another attempt is left"),
        (S.IDLE, "that was the last attempt: registered and idle (KAFKA-4228)"),
    ),
    S.CLOSING: ((S.CLOSING_SESSION, "everything stopped, offsets committed"),),
    S.CLOSING_SESSION: ((S.CLOSED, "the session has ended, and with it all nodes"),),
    S.CLOSED: (),
}
FAILS = "a step fails"
MEMBER_SAYS = (
    "A reason is the event that the member receives; its condition follows where it may lead to several states. What "
    "a state does not name changes nothing there."
)
#: A member's table, by the name of its machine.
MEMBER_TABLES: Mapping[str, Mapping[Any, Mapping[type, Any]]] = {
    "classic-member": CLASSIC_TABLE,
    "server-member": SERVER_TABLE,
    "consumer-member": CONSUMER_TABLE,
}
#: Their states to which many lead: an arrow from each would hide the others.
APART: Mapping[str, frozenset[str]] = {
    "classic-member": frozenset({"UNJOINED", "UNSUBSCRIBING", "CLOSING", "LEFT", "FAILED"}),
    "server-member": frozenset({"CLOSING", "LEFT", "FAILED"}),
    "consumer-member": frozenset({"UNSUBSCRIBED", "PREPARE_LEAVING", "FATAL"}),
}
#: What follows a step when it jumps; the others just go on.
JUMPS: Mapping[tuple[S, S], str] = {
    (S.READING_BROKERS, S.AWAITING_BROKERS): "no broker",
    (S.AWAITING_BROKERS, S.IDLE): "counts as success",
    (S.RELEASING, S.RELEASING): "the next topic",
    (S.READING_MEMBERS, S.READING_MEMBERS): "a pattern needs the topics",
    (S.CLAIMING, S.CHECKING_CLAIM): "the node exists",
    (S.COUNTING, S.CLAIMING): "the next partition",
    (S.COUNTING, S.ROLLING_BACK): "there was a conflict",
    (S.STARTING, S.IDLE): "owns its partitions",
}


def zookeeper_rebalance() -> Machine:
    """The steps of an attempt without options, and what is between attempts."""
    rows = table(ORIGINAL)
    documented = comments(S)
    idle, *after = BETWEEN
    states = [
        _between(idle, documented),
        *(_step(rows, state, step) for state, step in rows.items()),
        *(_between(state, documented) for state in after),
    ]
    return Machine(
        "zookeeper-rebalance",
        "A rebalance of the 0.8 consumer",
        "R1 to R12 are the steps of one attempt; the requests are those to ZooKeeper.",
        tuple(states),
        (FAILS, S.GIVING_UP.name),
        frozenset({"CLOSING", "IDLE"}),
    )


def consumer_group() -> Machine:
    documented, answers = comments(G), consumer_requests.answers()
    states = []
    for state, moves in CONSUMER_MOVES.items():
        facts = answers.by_answer(requests.NO_GROUP if state is G.DEAD else state.value)
        found = _moves((target.value, reason) for target, reason in moves)
        states.append(State(state.value, documented[state.name], GROUP_KINDS[state.value], found, facts=facts))
    return Machine(
        "consumer-group",
        "A group of the consumer design, as its coordinator sees it",
        "Kafka's own names. The state is not stored: it follows from the epochs and from the members.",
        tuple(states),
        (LAST_LEAVES, G.EMPTY.value),
    )


def reconciled_members() -> Machine:
    documented = comments(MemberOfGroup)
    states = []
    for state in MemberOfGroup:
        moves = [Move(target.name, (finding.value,)) for finding, target in RECONCILED[state].items()]
        states.append(State(state.name, documented[state.name], RECONCILED_KINDS[state.name], tuple(moves)))
    return Machine(
        "consumer-reconciliation",
        "A member of a consumer group, as its coordinator sees it",
        "A reason is what a comparison of the member with its target finds; the next state follows from it alone.",
        tuple(states),
        ("it has its target", "STABLE"),
    )


def machines() -> tuple[Machine, ...]:
    moved = ("coordinator moved", "Dead")
    return (
        Machine(
            "classic-group",
            "A classic group, as its coordinator sees it",
            "The designs eager, static, cooperative and delayed; Kafka's own names of the states.",
            _group(classic_states.GroupState, classic_states.TRANSITIONS, requests.classic()),
            moved,
        ),
        Machine(
            "server-group",
            "A group of the server design, as its coordinator sees it",
            "The states have the names of Kafka's; what moves them is a watch and the members' acknowledgements.",
            _group(server_states.ServerGroupState, server_states.TRANSITIONS, requests.server()),
            moved,
        ),
        consumer_group(),
        reconciled_members(),
        _members("classic-member", "A member of a classic group", MemberState, CLASSIC_MEMBER, "FAILED"),
        _members("server-member", "A member of the server design", ServerMemberState, SERVER_MEMBER, "FAILED"),
        _members("consumer-member", "A member of a consumer group", ConsumerMemberState, CONSUMER_MEMBER, "FATAL"),
        zookeeper_rebalance(),
    )


def _members(name: str, title: str, states: type[Enum], order: Mapping[str, str], refused: str) -> Machine:
    return Machine(
        name, title, MEMBER_SAYS, _member(states, MEMBER_TABLES[name], order), ("Refused", refused), APART[name]
    )


# -- from the tables ---------------------------------------------------------------------------------------------------


def comments(states: type[Enum]) -> Mapping[str, str]:
    """What the source says about each value of an enumeration: `#:` behind it, or on the lines above."""
    found = {}
    pattern = r"((?:^    #: .+\n)*)^    ([A-Z_]+) = (?:auto\(\)|\"\w+\"|\d+)(?:  #: (.+))?$"
    for above, name, behind in re.findall(pattern, inspect.getsource(states), re.MULTILINE):
        found[name] = " ".join(re.findall(r"#: (.+)", above)) or behind
    return found


def _moves(reasons: Iterable[tuple[str, str]]) -> tuple[Move, ...]:
    """By target, from (target, reason)."""
    by_target: dict[str, list[str]] = {}
    for target, reason in reasons:
        by_target.setdefault(target, []).append(reason)
    return tuple(Move(target, tuple(each)) for target, each in by_target.items())


def _group(states: type[Enum], transitions: Mapping[Any, Mapping[Any, Any]], answers: Answers) -> tuple[State, ...]:
    documented = comments(states)
    found = []
    for state in states:
        moves = _moves((target.value, trigger.value) for trigger, target in transitions[state].items())
        facts = answers.by_answer(state.value)
        found.append(State(state.value, documented[state.name], GROUP_KINDS[state.value], moves, facts=facts))
    return tuple(found)


def _member(states: type[Enum], rows: Mapping[Any, Mapping[Any, Any]], order: Mapping[str, str]) -> tuple[State, ...]:
    documented = comments(states)
    by_name = {state.name: row for state, row in rows.items()}
    found = []
    for name, kind in order.items():
        reasons = (
            (target.name, event.__name__ + (f": {cell.when[target]}" if cell.when else ""))
            for event, cell in by_name[name].items()
            for target in cell.leads_to
        )
        moves = _moves(sorted(reasons, key=lambda each: (list(order).index(each[0]), each[1])))
        found.append(State(name, documented[name], kind, moves))
    return tuple(found)


def _step(rows: Mapping[S, Step], state: S, step: Step) -> State:
    targets = dict.fromkeys(([following(rows, state)] if step.goes_on else []) + list(step.jumps))
    moves = [Move(target.name, _reasons(state, target)) for target in targets]
    moves.append(Move(S.GIVING_UP.name, (FAILS,)))
    asked = step.requests.removeprefix("none: ")
    facts = (("asks", asked),) if asked else ()
    return State(state.name, step.purpose, f"p-{step.phase}", tuple(moves), f"{step.number} {step.phase}", facts)


def _reasons(state: S, target: S) -> tuple[str, ...]:
    reason = JUMPS.get((state, target), "")
    return (reason,) if reason else ()


def _between(state: S, documented: Mapping[str, str]) -> State:
    says = re.split(r"; then |, until ", documented[state.name])[0]
    moves = tuple(Move(target.name, (reason,)) for target, reason in BETWEEN[state])
    return State(state.name, says, "p-backoff" if "OFF" in state.name or "UP" in state.name else "k9", moves)


def events_of(machine: Machine) -> Sequence[type]:
    """The events that a member's machine names, by name."""
    rows: Iterable[Mapping[type, object]] = MEMBER_TABLES[machine.name].values()
    return sorted({event for row in rows for event in row}, key=lambda event: event.__name__)
