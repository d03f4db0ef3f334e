"""What the coordinator answers to each request in each state of a group of the `consumer` design, by sending it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from coordinator.groups.errors import Error
from coordinator.groups.requests import Commit, DeleteGroup, DeleteOffsets, Heartbeat, Leave, Leaving, OffsetToCommit
from coordinator.groups.requests import Producer as TransactionalProducer
from docs.generators.requests_by_state import ANSWERED, NO_GROUP, WAITS, Answers
from tests.support.groups.consumer import owned_by_name
from tests.support.groups.consumer_partition import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STATIC = "i"
ALL = owned_by_name({"foo": range(6)})


def _emptied() -> Partition:
    at = _stable()
    at.beat("s", -1, instance_id=STATIC)
    at.beat("a", -1)
    return at


def _stable() -> Partition:
    """Two members, a and the static s, have three partitions each, and a has committed."""
    at = Partition()
    at.join("a")
    at.join("s", instance_id=STATIC)
    at.beat("a", 1)
    at.beat("a", 1, owned=owned_by_name({"foo": range(3)}))
    at.beat("s", 2, instance_id=STATIC)
    at.commit("a", 2)
    return at


def _reconciling() -> Partition:
    """Another member, b, has come, and waits for what a and s have to give up; a knows it."""
    at = _stable()
    at.join("b")
    at.beat("a", 2)
    return at


def _assigning() -> Partition:
    """Another member, b, has come and gone; nobody has sent a heartbeat since."""
    at = _stable()
    at.join("b")
    at.beat("b", -1)
    return at


STATES: Mapping[str, Callable[[], Partition]] = {
    NO_GROUP: Partition,
    "Empty": _emptied,
    "Assigning": _assigning,
    "Reconciling": _reconciling,
    "Stable": _stable,
}
OFFSETS = (OffsetToCommit("foo", 0, 7, -1, ""),)


def _in_transaction(at: Partition, epoch: int) -> Any:
    given = {"member_id": "a", "generation": epoch, "offsets": OFFSETS, "producer": TransactionalProducer(7, 0)}
    return at.ask(Commit, **given)


REQUESTS: Mapping[str, Callable[[Partition], Any]] = {
    "heartbeat that joins": lambda at: at.join("n"),
    "heartbeat that joins, without a subscription": lambda at: at.join("n", topics=None),
    "heartbeat that joins under the instance id of a running member": lambda at: at.join("n", instance_id=STATIC),
    "heartbeat of a member": lambda at: at.beat("a", 2),
    "heartbeat with the epoch before, and partitions that the member has": lambda at: at.beat("a", 1, owned={}),
    "heartbeat with an older epoch": lambda at: at.beat("a", 1),
    "heartbeat with a later epoch": lambda at: at.beat("a", 9),
    "heartbeat with an assignor that the broker does not have": lambda at: at.beat("a", 2, assignor="sticky"),
    "heartbeat of a stranger": lambda at: at.beat("x", 2),
    "heartbeat that leaves": lambda at: at.beat("a", -1),
    "heartbeat that leaves for a while, static": lambda at: at.beat("s", -2, instance_id=STATIC),
    "heartbeat that leaves for a while, not static": lambda at: at.beat("a", -2),
    "commit": lambda at: at.commit("a", 2),
    "commit with an older epoch": lambda at: at.commit("a", 1),
    "commit of a version before 9": lambda at: at.commit("a", 2, absent_group_is_named=False),
    "commit of a stranger": lambda at: at.commit("x", 2),
    "commit without a member": lambda at: at.commit("", -1),
    "txn commit of a member": lambda at: _in_transaction(at, 2),
    "txn commit with an older epoch": lambda at: _in_transaction(at, 1),
    "classic join": lambda at: at.classic_join(),
    "classic heartbeat": lambda at: at.ask(Heartbeat, member_id="a", generation=2),
    "classic leave of a member": lambda at: at.ask(Leave, members=(Leaving("a"),)),
    "delete group": lambda at: at.ask(DeleteGroup),
    "delete offset, subscribed": lambda at: at.ask(DeleteOffsets, partitions=(("foo", 0),)),
}
#: The rows that a figure names, with shorter names.
SHOWN: Mapping[str, str] = {
    "heartbeat that joins": "heartbeat that joins",
    "heartbeat that joins under the instance id of a running member": "one under a taken instance id",
    "heartbeat of a member": "heartbeat of a member",
    "heartbeat with an older epoch": "heartbeat with an older epoch",
    "heartbeat of a stranger": "heartbeat of a stranger",
    "commit": "OffsetCommit",
    "commit with an older epoch": "OffsetCommit with an older epoch",
    "commit without a member": "OffsetCommit without a member",
    "delete group": "DeleteGroups",
    "delete offset, subscribed": "OffsetDelete",
}


@cache
def answers() -> Answers:
    rows = {name: {state: _said(make(), send) for state, make in STATES.items()} for name, send in REQUESTS.items()}
    return Answers(rows, SHOWN)


def state_of(at: Partition) -> str:
    group = at.machine.consumer.find("g")
    if group is not None:
        return group.state.value
    return "a classic group" if "g" in at.machine.classic.groups else NO_GROUP


def _said(at: Partition, send: Callable[[Partition], Any]) -> str:
    """The answer in words, and the next state."""
    before = state_of(at)
    answer = send(at)
    moved = f" → {state_of(at)}" if state_of(at) != before else ""
    if answer is None:
        return f"{WAITS}{moved}"
    if isinstance(answer, Error):
        errors = [answer]
    else:
        parts = (*getattr(answer, "partitions", ()), *getattr(answer, "members", ()))
        errors = [getattr(answer, "error", Error.NONE), *(part.error for part in parts)]
    refused = dict.fromkeys(Error(int(error)).name for error in errors if error)
    return ", ".join(refused) if refused else f"{ANSWERED}{moved}"
