"""What all counted members share: the step, its timer, polls, and finding the coordinator.

As `coordinator.client.member_runner`, whose state machines, reactions and logic they have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator.membership import effects, events

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from comparison.simulation.deciding.coordinator import CountedCoordinator
    from comparison.simulation.deciding.heap import EventHeap
    from comparison.simulation.deciding.ledger import Ledger
    from comparison.simulation.deciding.member_ids import MemberIds
    from coordinator.client.member_runner import MemberLogic

GROUP, TOPIC, COORDINATOR_ID = "group", "orders", 2
#: Until a member has its first metadata: a connection, versions, and metadata twice, before and after it subscribes.
_START_ROUND_TRIPS = 4
#: FindCoordinator, a connection to whom it names, and the versions there.
_FIND_ROUND_TRIPS = 3
#: With nothing to do a member polls for no other reason than max.poll.interval.ms.
IDLE_POLLS_PER_INTERVAL = 3


class Surroundings(NamedTuple):
    """What the members of a group share."""

    heap: EventHeap
    ledger: Ledger
    coordinator: CountedCoordinator
    ids: MemberIds
    random: Random
    partitions: int
    connect: Callable[[], Any]  #: a connection to a broker


class CountedMember(ABC):
    """One member, of a process of its own."""

    #: The effect that recurs while nothing happens, and leaves a poll nothing to do.
    _routine: type[effects.Effect]

    def __init__(self, name: str, member: Any, logic: MemberLogic[Any], around: Surroundings, idle_ns: int) -> None:
        """`idle_ns` is the most time between two polls."""
        self.name = name
        self.member = member
        self.is_alive = True
        self._logic = logic
        self._around = around
        self._heap = around.heap
        self._idle_ns = idle_ns
        self._connection = around.connect()
        self._finding = 0
        self._armed_ns: int | None = None
        self._polls = 0

    # -- what the group does with it ----------------------------------------------------------------------------------

    def start(self) -> None:
        self._connection.round_trips(_START_ROUND_TRIPS, self._started)

    def _started(self) -> None:
        """It knows the topics, and is about to subscribe."""
        self._wake()

    def kill(self) -> None:
        """End its process: nothing of it runs any more."""
        self.is_alive = False
        self._connection.is_open = False
        self._around.ids.lose(self.member.member_id)
        self._around.ledger.gone(self.member.owned)

    # -- the machine --------------------------------------------------------------------------------------------------

    def feed(self, event: events.Event) -> None:
        """Step the member, perform the effects, set the timer, and poll again if something has changed."""
        if not self.is_alive:
            return
        before = self.member
        self.member, wanted = self._logic.step(before, event, self._heap.now_ns)
        for effect in wanted:
            self._perform(effect)
        self._arm()
        if before.state is not self.member.state or self._calls_for_poll(event, wanted):
            self._wake()

    def _calls_for_poll(self, event: events.Event, wanted: Sequence[effects.Effect]) -> bool:
        return not isinstance(event, events.Polled) and any(type(effect) is not self._routine for effect in wanted)

    def _soon(self, event: events.Event) -> None:
        """Feed it after the effects that are being performed."""
        self._heap.at(self._heap.now_ns, self.feed, event)

    def _perform(self, effect: effects.Effect) -> None:
        match effect:
            case effects.Emit():
                self._around.ledger.take(effect, self.name)
            case effects.FindCoordinator():
                self._count("FindCoordinator")
                self._connection.is_open = False
                self._connection = self._around.connect()
                self._connection.round_trips(
                    _FIND_ROUND_TRIPS, lambda: self.feed(events.CoordinatorFound(COORDINATOR_ID))
                )
            case effects.AbandonCoordinator():
                self._connection.is_open = False
            case effects.CommitPositions():
                pass  # nothing was delivered
            case effects.Fail():
                raise AssertionError(f"{self.name} was refused: {effect}")
            case _:
                self._perform_own(effect)

    @abstractmethod
    def _perform_own(self, effect: effects.Effect) -> None:
        """Perform an effect of the design."""

    def _count(self, api: str) -> None:
        self._around.ledger.requests[api] += 1

    def _ask(self, api: str, request: Callable[[int], Any], answered: Callable[[Any], None]) -> None:
        """Send a request, which is counted, to the coordinator."""
        self._count(api)
        connection = self._connection
        connection.send(self._around.coordinator.ask, request, lambda answer: connection.answer(answered, answer))

    def _refused(self, api: str, error: str, *, stamp: int, sent_ns: int) -> None:
        event = self._logic.reaction(api, error, stamp=stamp, sent_ns=sent_ns)
        if event is not None:
            self.feed(event)

    def _arm(self) -> None:
        due_ns = self._logic.deadline(self.member)
        if due_ns != self._armed_ns:
            self._armed_ns = due_ns
            if due_ns is not None:
                self._heap.at(due_ns, self._due, due_ns)

    def _due(self, due_ns: int) -> None:
        if due_ns == self._armed_ns:
            self._armed_ns = None
            self.feed(events.Ticked())

    # -- polls --------------------------------------------------------------------------------------------------------

    def _wake(self, after_ns: int = 0) -> None:
        """Poll now, or after a while unless something wakes it before."""
        self._polls += 1
        self._heap.at(self._heap.now_ns + after_ns, self._poll, self._polls)

    def _poll(self, number: int) -> None:
        if number != self._polls or not self.is_alive:
            return
        due_ns = self._logic.deadline(self.member)
        if due_ns is not None and due_ns <= self._heap.now_ns:
            self.feed(events.Ticked())
        if self._takes_polls():
            self.feed(events.Polled())
        self._polled()
        if number == self._polls:
            self._wake(self._idle_ns)

    def _takes_polls(self) -> bool:
        return True

    def _polled(self) -> None:  # noqa: B027  # most designs have nothing to do
        """Begin what waits for a poll."""
