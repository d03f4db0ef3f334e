"""Groups of lean members over `lean_sockets`: connect, form, let one more join, heartbeat, leave.

Checked throughout: error codes, that all members are in one generation, that the leader got the ids of all members, and
that each member got the assignment that the leader sent for it.
"""

from __future__ import annotations

import itertools
import struct
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench import lean
from kernel.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.lean import Member
    from bench.lean_sockets import Connection, Sockets

FINDING_S = CREATED_S = 60.0
#: A measure gives up after this long without any answer.
SILENCE_S = 120.0
COMING_MAX = 200
_PAUSE_S = 0.02


@dataclass(slots=True)
class Course:
    """Times of a group's forming, by `time.monotonic()`."""

    started: float  #: the first JoinGroup
    joined_last: float = 0.0  #: the last JoinGroup with a member id was sent
    answered_first: float = 0.0  #: the first JoinGroup was answered with a generation
    ended: float = 0.0  #: the last answer to SyncGroup
    joins: int = 0  #: JoinGroups with a member id
    coming: Iterator[Connection] = field(default_factory=lambda: iter(()))  #: connections whose members have no id yet

    @property
    def seconds(self) -> float:
        return self.ended - self.started

    def delay_s(self, delay_s: float) -> float:
        """The actual length of an initial delay of `delay_s`, which every join within it extends.

        If a slow broker sees the last JoinGroup only in a later delay, that time is the broker's own.
        """
        if delay_s == 0:
            return 0.0
        renewed = int((self.joined_last - self.started) / delay_s) + 1 if self.joins > 1 else 0
        passed = int((self.answered_first - self.started) / delay_s)
        return delay_s * min(1 + renewed, passed)


def find_coordinator(sockets: Sockets, port: int, group: str, *, here: bool = True) -> None:
    """Wait for a coordinator: the first request creates the offsets topic, which is then loaded.

    With `here` it has to be this broker, and ready.
    """
    frame = lean.find(group, "bench")
    ((connection, answer),) = sockets.connect(port, [frame])
    deadline = time.monotonic() + FINDING_S
    while (error := lean.find_error(answer)) != lean.NONE:
        if error not in lean.RETRIED or time.monotonic() > deadline:
            raise RuntimeError(f"FindCoordinator of {group}: error {error}")
        time.sleep(_PAUSE_S)
        answer = sockets.ask(connection, frame)
    if here:
        stranger = lean.Member("bench", group, 0)
        _until_asked(sockets, connection, stranger, sockets.ask(connection, stranger.heartbeat()))
    sockets.drop([connection])


def _until_asked(sockets: Sockets, connection: Connection, member: Member, answer: bytes) -> None:
    """Wait until the group answers that the member is unknown; `answer` is that to its first heartbeat."""
    deadline = time.monotonic() + FINDING_S
    while (error := heartbeat_error(answer)) not in lean.UNKNOWN:
        # NONE: the group is loading.
        if error not in {*lean.RETRIED, lean.NONE} or time.monotonic() > deadline:
            raise RuntimeError(f"heartbeat of an unknown member in {member.group}: error {error}")
        time.sleep(_PAUSE_S)
        answer = sockets.ask(connection, member.heartbeat())


def connect(sockets: Sockets, port: int, members: Sequence[Member]) -> list[Connection]:
    """Open a connection per member. Its first request is a heartbeat, of a member still unknown."""
    made = sockets.connect(port, [member.heartbeat() for member in members])
    for member, (connection, answer) in zip(members, made, strict=True):
        connection.data = member
        if heartbeat_error(answer) not in lean.UNKNOWN:  # the coordinator was not ready; it may be now
            _until_asked(sockets, connection, member, sockets.ask(connection, member.heartbeat()))
    return [connection for connection, _ in made]


def heartbeat_error(answer: bytes) -> int:
    return int(struct.unpack_from(">h", answer, 13)[0])


def settle(sockets: Sockets, connections: Sequence[Connection]) -> Course:
    """Let every connection's member join and sync. Raises RuntimeError on any unexpected answer.

    At most `COMING_MAX` members wait for their ids at a time: with thousands, the initial delay of those that have one
    would be over before the broker gets to the others.
    """
    course = Course(time.monotonic(), coming=iter(connections))
    for connection in itertools.islice(course.coming, COMING_MAX):
        _join(connection, course)
    _follow(sockets, connections, course)
    return course


def rebalance(sockets: Sockets, connections: Sequence[Connection], joiner: Connection) -> Course:
    """Let one more join; the others learn of it by a heartbeat, as soon as it shows, and rejoin."""
    member: Member = joiner.data
    course = Course(time.monotonic())
    answer = lean.joined(sockets.ask(joiner, member.join()))
    if answer.error != lean.MEMBER_ID_REQUIRED:
        raise RuntimeError(f"JoinGroup of {member.name}: error {answer.error}")
    member.member_id = answer.member_id
    _join(joiner, course)
    first = connections[0]
    while heartbeat_error(sockets.ask(first, first.data.heartbeat())) == lean.NONE:
        time.sleep(_PAUSE_S)
    for connection in connections:
        connection.data.awaits = lean.HEARTBEAT
        connection.send(connection.data.heartbeat())
    _follow(sockets, [*connections, joiner], course)
    return course


def _join(connection: Connection, course: Course) -> None:
    member: Member = connection.data
    member.awaits = lean.JOIN
    if member.member_id:
        course.joins += 1
        course.joined_last = time.monotonic()
    connection.send(member.join())


def _follow(sockets: Sockets, connections: Sequence[Connection], course: Course) -> None:
    """Handle answers until all have synced, then check."""
    members: list[Member] = [connection.data for connection in connections]
    given: dict[str, bytes] = {}
    left = len(connections)
    while left:
        for connection, answer in sockets.answers(SILENCE_S):
            member: Member = connection.data
            if member.awaits == lean.SYNC:
                left -= _synced(member, answer)
            elif member.awaits == lean.JOIN:
                _joined(connection, answer, members, given, course)
            else:
                if answer != member.heartbeat_answer(lean.REBALANCE_IN_PROGRESS):
                    raise RuntimeError(f"heartbeat of {member.name} in a rebalance: error {heartbeat_error(answer)}")
                _join(connection, course)
    course.ended = time.monotonic()
    _check(members, given)


def _joined(
    connection: Connection, answer: bytes, members: list[Member], given: dict[str, bytes], course: Course
) -> None:
    member: Member = connection.data
    said = lean.joined(answer)
    if said.error == lean.MEMBER_ID_REQUIRED:
        member.member_id = said.member_id
        _join(connection, course)
        for another in itertools.islice(course.coming, 1):
            _join(another, course)
        return
    if said.error != lean.NONE:
        raise RuntimeError(f"JoinGroup of {member.name}: error {said.error}")
    course.answered_first = course.answered_first or time.monotonic()
    member.member_id, member.generation = said.member_id, said.generation
    mine: dict[str, bytes] = {}
    if said.members:
        numbers = {m.member_id: m.number for m in members if m.group == member.group}
        mine = {member_id: lean.assignment_of(numbers[member_id]) for member_id in said.members}
        if len(mine) != len(numbers):
            raise RuntimeError(
                f"the leader of {member.group} got {len(mine)} member ids of {len(numbers)}: nobody "
                "joined for an initial delay, because something else keeps this machine busy"
            )
        given.update(mine)
    member.awaits = lean.SYNC
    connection.send(member.sync(mine))


def _synced(member: Member, answer: bytes) -> int:
    error, member.assignment = lean.synced(answer)
    if error != lean.NONE:
        raise RuntimeError(f"SyncGroup of {member.name}: error {error}")
    member.awaits = lean.NONE
    return 1


def _check(members: list[Member], given: dict[str, bytes]) -> None:
    generations: dict[str, set[int]] = {}
    for member in members:
        generations.setdefault(member.group, set()).add(member.generation)
        if member.assignment != given.get(member.member_id):
            raise RuntimeError(f"{member.name} was given {member.assignment!r}, which its leader did not send")
    torn = [group for group, seen in generations.items() if len(seen) != 1]
    if torn:
        raise RuntimeError(f"not in one generation: {', '.join(torn[:3])}")
    if len({member.member_id for member in members}) != len(members):
        raise RuntimeError("two members have the same id")


def create_topic(sockets: Sockets, connection: Connection, topic: str, partitions: int) -> None:
    if (error := lean.created_error(sockets.ask(connection, lean.create_topic(topic, partitions)))) != lean.NONE:
        raise RuntimeError(f"CreateTopics of {topic}: error {error}")


def commit(sockets: Sockets, connections: Sequence[Connection], topic: str, each: int, offsets: Sequence[int]) -> None:
    """Let every member commit its offset for its `each` partitions; repeat while the broker does not know them all."""
    members: list[Member] = [connection.data for connection in connections]
    frames = [m.commit(topic, m.partitions(each), offset) for m, offset in zip(members, offsets, strict=True)]
    good = [member.commit_answer(topic, member.partitions(each)) for member in members]
    wait_until(
        lambda: ask_each(sockets, connections, frames) == good, CREATED_S, "every commit to be accepted", every_s=0.2
    )


def beat(sockets: Sockets, connections: Sequence[Connection]) -> None:
    """Send one heartbeat of each member of a stable group."""
    frames = [connection.data.heartbeat() for connection in connections]
    for connection, answer in zip(connections, ask_each(sockets, connections, frames), strict=True):
        if answer != connection.data.heartbeat_answer(lean.NONE):
            raise RuntimeError(f"heartbeat of {connection.data.name}: error {heartbeat_error(answer)}")


def leave(sockets: Sockets, connections: Sequence[Connection]) -> None:
    """Let all members leave, one request per group, so that no session is left to expire; then disconnect."""
    by_group: dict[str, list[Connection]] = {}
    for connection in connections:
        by_group.setdefault(connection.data.group, []).append(connection)
    for group, its in by_group.items():
        answer = sockets.ask(its[0], lean.leave(group, (c.data.member_id for c in its), "bench"), timeout_s=SILENCE_S)
        if any(errors := lean.left(answer)):
            raise RuntimeError(f"LeaveGroup of {group}: errors {sorted(set(errors))}")
    sockets.drop(connections)


def ask_each(sockets: Sockets, connections: Sequence[Connection], frames: Sequence[bytes]) -> list[bytes]:
    """Send one request on each connection, all at once; return the answers in the order of the connections."""
    places = {connection: place for place, connection in enumerate(connections)}
    answers = [b""] * len(connections)
    for connection, frame in zip(connections, frames, strict=True):
        connection.send(frame)
    left = len(connections)
    while left:
        for connection, answer in sockets.answers(SILENCE_S):
            answers[places[connection]] = answer
            left -= 1
    return answers


def heartbeats_in_turn(sockets: Sockets, connections: Sequence[Connection], seconds: float, every_s: float) -> int:
    """Send a heartbeat of every member each `every_s`, evenly spread; return how many were answered. Raises if one is
    unanswered when the next is due."""
    frames = [connection.data.heartbeat() for connection in connections]
    good = {connection: connection.data.heartbeat_answer(lean.NONE) for connection in connections}
    count, pause_s = len(connections), every_s / len(connections)
    started = time.monotonic()
    due = answered = 0
    while True:
        now = time.monotonic() - started
        while due * pause_s <= now < seconds:
            connections[due % count].send(frames[due % count])
            due += 1
        if now >= seconds and answered == due:
            return answered
        if now > seconds + SILENCE_S:
            raise RuntimeError(f"{due - answered} heartbeats got no answer")
        for connection, answer in sockets.answers_so_far(min(max(due * pause_s - now, 0.0005), 0.05)):
            if answer != good[connection]:
                raise RuntimeError(f"heartbeat of {connection.data.name}: error {heartbeat_error(answer)}")
            answered += 1
        if due - answered > count:
            raise RuntimeError("heartbeats are answered more slowly than they are sent")
