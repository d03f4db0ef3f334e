"""What a coordinator answers to each request in each state of a group, in both designs.

The classic answers are the error table of the tests, `tests/coordinator/groups/error_table.txt`, of which every cell is
a test. Those of the `server` design come from its machine: each request is sent to a group in each state.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from coordinator.groups.errors import Error
from coordinator.groups.requests import Commit, DeleteGroup, DeleteOffsets, Join, OffsetToCommit
from coordinator.protocol.server.commands import Command
from coordinator.protocol.server.errors import ServerError
from tests.support.groups.classic import RANGE
from tests.support.groups.error_table import COLUMNS, cells
from tests.support.groups.server import GROUP, Question, Served

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from enum import IntEnum

ERROR_TABLE = Path(__file__).parents[2] / "tests" / "coordinator" / "groups" / "error_table.txt"
WAITS, ANSWERED = "waits", "answered"
NO_GROUP = "no group"


class Answers(NamedTuple):
    """{request: {state: answer}}, where a state is Kafka's name or `NO_GROUP`; and the rows that a figure names."""

    rows: Mapping[str, Mapping[str, str]]
    #: {the request of the rows: its name in the figure}
    shown: Mapping[str, str]

    def by_answer(self, state: str) -> tuple[tuple[str, str], ...]:
        """(answer, the requests that get it in this state) for a figure: first what waits and what is answered."""
        found: dict[str, list[str]] = {}
        for request, name in self.shown.items():
            found.setdefault(self.rows[request][state].partition(" → ")[0], []).append(name)
        first = [answer for answer in found if answer in (WAITS, ANSWERED)]
        refusals = [answer for answer in found if answer not in first]
        return tuple((answer, ", ".join(found[answer])) for answer in (*sorted(first), *refusals))


# -- classic groups ----------------------------------------------------------------------------------------------------

#: What a member of the present generation may send, by the rows of the error table.
CLASSIC_SHOWN = {
    "join new, v3": "JoinGroup of a new member",
    "join leader, same metadata": "unchanged JoinGroup of the leader",
    "join follower, same metadata": "unchanged JoinGroup of a follower",
    "sync leader": "SyncGroup of the leader",
    "sync follower": "SyncGroup of a follower",
    "heartbeat": "Heartbeat",
    "leave": "LeaveGroup",
    "commit": "OffsetCommit",
    "commit without generation": "OffsetCommit without a member",
    "txn commit of a member": "TxnOffsetCommit",
    "delete group": "DeleteGroups",
    "delete offset, subscribed": "OffsetDelete",
}


@cache
def classic() -> Answers:
    """The error table in words."""
    names = {column: NO_GROUP if column == "absent" else state for column, (state, _) in COLUMNS.items()}
    rows: dict[str, dict[str, str]] = {}
    for cell in cells(ERROR_TABLE):
        rows.setdefault(cell.request, {})[names[cell.state]] = _in_words(cell.expected)
    return Answers(rows, CLASSIC_SHOWN)


def _in_words(expected: str) -> str:
    """The answer and the next state of a cell of the error table: `27; a lives`, `0 -> Dead; group removed`."""
    answer, _, state = expected.partition(";")[0].partition(" -> ")
    numbers = answer.split(maxsplit=1)[0]
    if numbers == "parked":
        said = WAITS
    else:
        said = ", ".join(dict.fromkeys(ANSWERED if n == "0" else Error(int(n)).name for n in numbers.split("+")))
    return f"{said} → {state}" if state else said


# -- groups of the server design ---------------------------------------------------------------------------------------


def _running(*members: str) -> Served:
    world = Served()
    world.register(*members)
    world.settle(*members)
    return world


def _emptied() -> Served:
    world = _running("a", "b")
    world.unregister("a", "b")
    return world


def _stopping() -> Served:
    """A member has come; a and b are commanded to stop, and only b has acknowledged it."""
    world = _running("a", "b")
    world.register("c")
    world.obey("b")
    return world


def _starting() -> Served:
    """The next generation is stored, and b has not confirmed it yet."""
    world = _stopping()
    world.obey("a")
    world.obey("a")
    world.ask("c")
    return world


def _being_deleted() -> Served:
    """Deleted, which is not stored yet."""
    world = _emptied()
    world.holding = True
    world.request(lambda token: DeleteGroup(token=token, group_id=GROUP))
    return world


SERVER_STATES: Mapping[str, Callable[[], Served]] = {
    NO_GROUP: Served,
    "Empty": _emptied,
    "PreparingRebalance": _stopping,
    "CompletingRebalance": _starting,
    "Stable": lambda: _running("a", "b"),
    "Dead": _being_deleted,
}
SERVER_REQUESTS: Mapping[str, Callable[[Served], Question]] = {
    "AwaitCommand of a member that runs its generation": lambda w: w.ask("a", stopped=-1),
    "AwaitCommand that acknowledges a stop": lambda w: w.ask("a", stopped=w.player("a").generation),
    "AwaitCommand of a registered member without a generation": lambda w: w.ask("b", generation=-1, stopped=-1),
    "AwaitCommand of a member whose id is not in ZooKeeper": lambda w: w.ask("x"),
    "AwaitCommand with a later generation": lambda w: w.ask("a", generation=9),
    "AwaitCommand that requires another strategy": lambda w: w.ask("a", strategy="sticky"),
    "AwaitCommand that requires an unknown strategy": lambda w: w.ask("a", strategy="none such"),
    "CommitOwned by the owner": lambda w: _commit(w, "a", owned=True),
    "CommitOwned of another member's partition": lambda w: _commit(w, "a", owned=False),
    "CommitOwned of an earlier generation": lambda w: _commit(w, "a", owned=True, generation=0),
    "CommitOwned by a stranger": lambda w: _commit(w, "x", owned=False),
    "JoinGroup": lambda w: w.request(_join),
    "OffsetCommit": lambda w: w.request(
        lambda token: Commit(
            token=token, group_id=GROUP, member_id="", generation=-1, offsets=(OffsetToCommit("t", 0, 5, -1, ""),)
        )
    ),
    "DeleteGroups": lambda w: w.request(lambda token: DeleteGroup(token=token, group_id=GROUP)),
    "OffsetDelete": lambda w: w.request(
        lambda token: DeleteOffsets(token=token, group_id=GROUP, partitions=(("t", 0),))
    ),
}
SERVER_SHOWN = {
    "AwaitCommand of a member that runs its generation": "AwaitCommand of a running member",
    "AwaitCommand that acknowledges a stop": "AwaitCommand after a stop",
    "AwaitCommand of a registered member without a generation": "AwaitCommand of a new member",
    "CommitOwned by the owner": "CommitOwned by the owner",
    "CommitOwned of another member's partition": "CommitOwned of another's partition",
    "JoinGroup": "JoinGroup",
    "OffsetCommit": "OffsetCommit",
    "DeleteGroups": "DeleteGroups",
    "OffsetDelete": "OffsetDelete",
}


def _join(token: int) -> Join:
    return Join(
        token=token,
        group_id=GROUP,
        member_id="",
        client_id="c",
        client_host="/127.0.0.1",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=RANGE,
        fresh_id="c-1",
        must_return_with_id=False,
    )


def _commit(world: Served, member: str, *, owned: bool, generation: int | None = None) -> Question:
    has = world.player("a").owned
    partition = next(f"t-{n}" for n in range(4) if (("t", n) in has) is owned) if has or not owned else "t-0"
    return world.commit(member, {partition: 5}, generation=generation)


@cache
def server() -> Answers:
    """By sending each request to a group in each state."""
    rows = {
        request: {state: _said(make(), request, send) for state, make in SERVER_STATES.items()}
        for request, send in SERVER_REQUESTS.items()
    }
    return Answers(rows, SERVER_SHOWN)


def _said(world: Served, request: str, send: Callable[[Served], Question]) -> str:
    """The answer in words, and the next state."""
    before = world.state
    question = send(world)
    moved = f" → {world.state}" if world.state != before else ""
    world.write_all()  # of the group that is being deleted
    answer = question.answer
    if answer is None:
        return f"{WAITS}{moved}"
    errors = [
        getattr(answer, "error", Error.NONE),
        *(part.error for part in getattr(answer, "partitions", ()) if hasattr(part, "error")),
    ]
    names: type[IntEnum] = ServerError if request.startswith(("AwaitCommand", "CommitOwned")) else Error
    refused = dict.fromkeys(names(int(error)).name for error in errors if error)
    if refused:
        return ", ".join(refused)
    command = getattr(answer, "command", Command.NOTHING)
    return f"{command.name if command else ANSWERED}{moved}"
