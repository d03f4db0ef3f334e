"""A member of the classic protocol: JoinGroup, SyncGroup, heartbeats, and the leader's work.

As `coordinator.client.classic.stream`, with its state machine, its join metadata and its leader.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from comparison.simulation.deciding.member import GROUP, IDLE_POLLS_PER_INTERVAL, TOPIC, CountedMember
from coordinator.client.classic.group_leader import GroupLeader
from coordinator.client.classic.stream import BUSY_IN_POLLS, LOGIC
from coordinator.client.join_metadata import JoinMetadata
from coordinator.groups.requests import Heartbeat, Join, Protocol, Sync
from coordinator.membership.classic import effects, events
from coordinator.membership.classic.member import Member
from coordinator.membership.effects import Lose, Revoke
from coordinator.membership.events import Resumed, Stopped
from coordinator.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from kernel.clock import NS_PER_MS
from kernel.random_ids import fresh_id
from kernel.wire.errors import error_name

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from comparison.simulation.deciding.member import Surroundings
    from coordinator.client.link import ClassicContext
    from coordinator.client.settings import CoordinatorConsumerConfig
    from coordinator.groups.answers import HeartbeatAnswer, JoinAnswer, SyncAnswer
    from coordinator.membership.effects import Effect


class ClassicMember(CountedMember):
    """Of `eager`, `static`, `cooperative` and `delayed`."""

    _routine = effects.SendHeartbeat

    def __init__(self, name: str, config: CoordinatorConsumerConfig, around: Surroundings) -> None:
        settings = config.member
        member = Member(settings=settings, topics=frozenset({TOPIC}))
        idle_ns = settings.max_poll_interval_ms * NS_PER_MS // IDLE_POLLS_PER_INTERVAL
        super().__init__(name, member, LOGIC, around, idle_ns)
        self._config = config
        self._metadata = JoinMetadata(config.partition_assignment_strategy)
        self._leader = GroupLeader(_leaders_context(config, around))
        self._is_busy = False

    def _takes_polls(self) -> bool:
        return not self._is_busy or self.member.state in BUSY_IN_POLLS

    def _perform_own(self, effect: Effect) -> None:
        match effect:
            case Lose():
                pass  # the listener has nothing to do
            case Revoke():
                self._is_busy = True
                self._heap.at(self._heap.now_ns, self._stopped)
            case effects.Assign():
                member = self.member
                self._metadata = self._metadata.after(member.protocol, member.owned, member.generation)
                self._is_busy = True
                if effect.partitions:
                    self._count("OffsetFetch")
                    self._connection.round_trips(1, lambda: self._resumed(effect.stamp))
                else:
                    self._heap.at(self._heap.now_ns, self._resumed, effect.stamp)
            case effects.RunAssignor():
                self._soon(events.Decided(effect.stamp, self._decided(effect)))
            case _:
                self._request(effect)

    def _stopped(self) -> None:
        self._is_busy = False
        self.feed(Stopped())

    def _resumed(self, stamp: int) -> None:
        self._is_busy = False
        self.feed(Resumed(stamp))

    def _decided(self, effect: effects.RunAssignor) -> Mapping[str, bytes]:
        """The leader's work, which takes no time."""
        stamp = effect.stamp
        deciding = self._leader.decide(effect, self.member.generation, wanted=lambda: self.member.stamp == stamp)
        return cast("Mapping[str, bytes]", _result(deciding))

    # -- requests -----------------------------------------------------------------------------------------------------

    def _request(self, effect: Effect) -> None:
        sent_ns, config, instance_id = self._heap.now_ns, self._config, self._config.group_instance_id
        match effect:
            case effects.SendJoin():
                protocols = self._metadata.protocols((TOPIC,), self.member.generation, self.member.owned)
                offered = tuple(Protocol(name, metadata) for name, metadata in protocols.items())
                fresh = "" if effect.member_id else fresh_id(self._around.random)
                self._ask(
                    "JoinGroup",
                    lambda token: Join(
                        token,
                        GROUP,
                        effect.member_id,
                        config.client_id,
                        "/127.0.0.1",
                        config.session_timeout_ms,
                        config.max_poll_interval_ms,
                        CONSUMER_PROTOCOL_TYPE,
                        offered,
                        fresh,
                        instance_id,
                        True,
                        True,
                    ),
                    lambda answer: self._joined(effect.stamp, sent_ns, answer),
                )
            case effects.SendSync():
                assignments = tuple(effect.assignments.items())
                member_id, generation = effect.identity
                self._ask(
                    "SyncGroup",
                    lambda token: Sync(
                        token,
                        GROUP,
                        member_id,
                        generation,
                        instance_id,
                        CONSUMER_PROTOCOL_TYPE,
                        effect.protocol,
                        True,
                        assignments,
                    ),
                    lambda answer: self._synced(effect, sent_ns, answer),
                )
            case effects.SendHeartbeat():
                member_id, generation = effect.identity
                self._ask(
                    "Heartbeat",
                    lambda token: Heartbeat(
                        token=token,
                        group_id=GROUP,
                        member_id=member_id,
                        instance_id=instance_id,
                        generation=generation,
                    ),
                    lambda answer: self._heard(effect.stamp, sent_ns, answer),
                )
            case _:
                raise AssertionError(f"unknown effect {effect}")

    def _joined(self, stamp: int, sent_ns: int, answer: JoinAnswer) -> None:
        error = error_name(answer.error)
        if error == "MEMBER_ID_REQUIRED":
            self.feed(events.MemberIdGiven(stamp, answer.member_id))
        elif error:
            self._refused("JoinGroup", error, stamp=stamp, sent_ns=sent_ns)
        else:
            members = tuple(
                events.GroupMember(each.member_id, each.instance_id, each.subscription) for each in answer.members
            )
            self.feed(
                events.Joined(
                    stamp,
                    answer.member_id,
                    answer.generation,
                    answer.protocol_name or "",
                    answer.leader,
                    members,
                    answer.skip_assignment,
                )
            )

    def _synced(self, effect: effects.SendSync, sent_ns: int, answer: SyncAnswer) -> None:
        if error := error_name(answer.error):
            self._refused("SyncGroup", error, stamp=effect.stamp, sent_ns=sent_ns)
        else:
            self.feed(self._leader.received(effect, answer.assignment))

    def _heard(self, stamp: int, sent_ns: int, answer: HeartbeatAnswer) -> None:
        if error := error_name(answer.error):
            self._refused("Heartbeat", error, stamp=stamp, sent_ns=sent_ns)
        else:
            self.feed(events.HeartbeatAnswered(stamp, sent_ns))


def _leaders_context(config: CoordinatorConsumerConfig, around: Surroundings) -> ClassicContext:
    """What a leader uses of its consumer: known metadata, the time, and threads on which work is done at once."""
    sizes = {TOPIC: around.partitions}
    runtime = SimpleNamespace(
        threads=SimpleNamespace(compute=_computed), clock=SimpleNamespace(monotonic_ns=lambda: around.heap.now_ns)
    )
    client = SimpleNamespace(metadata=SimpleNamespace(sizes=lambda: sizes))
    return cast("ClassicContext", SimpleNamespace(config=config, runtime=runtime, client=client))


async def _computed(work: Callable[[], Any], _name: str) -> Any:
    return work()


def _result(working: Coroutine[Any, Any, object]) -> object:
    """The result of a coroutine that never waits."""
    try:
        working.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for something")
