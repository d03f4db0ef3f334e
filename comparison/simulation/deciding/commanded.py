"""A member of the `server` design: an id in ZooKeeper, and commands that it awaits.

As `coordinator.client.server.stream`, with its state machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.simulation.deciding.member import GROUP, TOPIC, CountedMember
from coordinator.client.server.calls import error_name
from coordinator.client.server.stream import LOGIC, command_event
from coordinator.groups.server.requests import Await
from coordinator.membership.effects import Lose, Revoke
from coordinator.membership.events import Resumed, Stopped
from coordinator.membership.server import effects, events
from coordinator.membership.server.member import ServerMember
from coordinator.membership.server.reactions import AWAIT
from coordinator.protocol.server.commands import AwaitCommand
from kernel.clock import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from comparison.simulation.deciding.heap import Connection
    from comparison.simulation.deciding.member import Surroundings
    from coordinator.client.server.settings import ServerConsumerConfig
    from coordinator.membership.effects import Effect
    from coordinator.protocol.server.commands import CommandAnswer

#: It does nothing in a poll but commit.
_IDLE_NS = 3_600 * NS_PER_S
#: The first AwaitCommand has to open its connection, and to ask for the versions.
_OPEN_ROUND_TRIPS = 2


class CommandedMember(CountedMember):
    """Of `server`."""

    _routine = effects.SendAwaitCommand

    def __init__(
        self,
        name: str,
        config: ServerConsumerConfig,
        around: Surroundings,
        connect_to_zookeeper: Callable[[], Connection],
        session: int,
    ) -> None:
        super().__init__(name, ServerMember(settings=config.member), LOGIC, around, _IDLE_NS)
        self._config = config
        self._zookeeper = connect_to_zookeeper()
        self._commands: Connection | None = None
        self._session = session

    def _started(self) -> None:
        begun = events.SessionBegun(self._session, self._config.session_timeout_ms)
        self._zookeeper.round_trips(1, lambda: self.feed(begun))

    def _perform_own(self, effect: Effect) -> None:
        match effect:
            case Lose():
                pass  # the listener has nothing to do
            case effects.CancelAwait():
                if self._commands is not None:
                    self._commands.is_open = False
                    self._commands = None
            case Revoke():
                self._soon(Stopped())
            case effects.StartDelivery():
                self._soon(Resumed(effect.stamp))
            case effects.SendAwaitCommand():
                self._await_command(effect)
            case effects.Register():
                self._register(effect)
            case _:
                raise AssertionError(f"unknown effect {effect}")

    def _register(self, effect: effects.Register) -> None:
        # Members are in the order of their ids, which is that of their starts: who joins is the last.
        now_ms, timeout_ms = self._heap.now_ns // NS_PER_MS, self._config.session_timeout_ms
        member_id = f"{GROUP}_simulated-{now_ms}-{self._session:08x}"
        self._around.ledger.znode_operations["writes"] += 1

        def create() -> None:
            self._around.ids.create(member_id, (TOPIC,), timeout_ms)
            self._zookeeper.answer(self.feed, events.Registered(effect.stamp, member_id))

        self._zookeeper.send(create)

    def _await_command(self, effect: effects.SendAwaitCommand) -> None:
        asked = AwaitCommand(
            group_id=GROUP,
            member_id=effect.member_id,
            generation=effect.generation,
            stopped=effect.stopped,
            strategy=self._config.partition_assignment_strategy,
            topics=(TOPIC,),
            wait_ms=self._config.command_wait_ms,
        )
        connection, sent_ns = self._commands, self._heap.now_ns
        before = 0 if connection is not None else _OPEN_ROUND_TRIPS
        if connection is None:
            connection = self._commands = self._around.connect()
        self._count(AWAIT)

        def request(token: int) -> Await:
            return Await(token=token, asked=asked, client_id=self._config.client_id, client_host="127.0.0.1")

        def answered(answer: CommandAnswer) -> None:
            connection.answer(self._commanded, effect.stamp, sent_ns, answer)

        connection.round_trips(before, lambda: connection.send(self._around.coordinator.ask, request, answered))

    def _commanded(self, stamp: int, sent_ns: int, answer: CommandAnswer) -> None:
        if error := error_name(answer.error):
            self._refused(AWAIT, error, stamp=stamp, sent_ns=sent_ns)
        else:
            self.feed(command_event(stamp, answer))
