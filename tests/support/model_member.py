"""One member for the deciding table: its machine, and in small what stands around it in a real one.

A member has up to four programs: *start* (register, listen, demand the first rebalance), *executor* (performs
batches), *delivery* (answers notifications and new sessions) and *commit*. Each is a generator that stands at
the one thing that it wants next: a `Call` to ZooKeeper, a `Pause`, or a `Wait`. Whoever holds the member says which
program goes on (`go_on`). What a lost connection does to a call, and that it is repeated in whatever session comes
next, is as in ZkClient's retryUntilConnected.

What it stands for: `zkconsumer.executor`, `watching`, `registration` and `offsets`, each in a dozen lines. Records
are offsets: a partition is endless, and reading one moves `consumed`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel.errors import RebalanceLabError
from kernel.zookeeper import paths
from tests.support.model_zookeeper import Call, ModelZooKeeper, Notice, Reply
from zkconsumer import effects
from zkconsumer.effects import Answer, Answered, Ask, Operation, Performed, Refusal, Request, StepFailed
from zkconsumer.payloads import offset_payload, registration_payload
from zkconsumer.rebalance import is_busy, step
from zkconsumer.state import Rebalance, Rules, State

if TYPE_CHECKING:
    from kernel.values import TopicPartition

GROUP = "g"


@dataclass(frozen=True, slots=True)
class Pause:
    """A moment at which others may go on. `timed` ones end when time passes, not when somebody works."""

    what: str
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Goes on when `ready` says so."""

    what: str
    ready: Callable[[], bool]


Wanted = Call | Pause | Wait
Program = Generator[Wanted, Reply, Any]


class Refused(RebalanceLabError):
    """A call was answered with an error that its caller has no answer to."""


@dataclass(eq=False, slots=True)
class Position:
    """A partition of the registry: what the next commit writes, and what the last one wrote."""

    partition: TopicPartition
    thread: str
    consumed: int
    checkpointed: int
    session: int  #: in which it was claimed
    epoch: int | None = None


@dataclass(slots=True)
class Listener:
    path: str
    children: bool
    trigger: str
    seen: int = -1


@dataclass(frozen=True, slots=True)
class Done:
    """A call that was answered; `owner` is the session of the node as it stood before, at the leader."""

    program: str
    step: str
    attempt: int  #: how many attempts had begun
    session: int
    call: Call
    reply: Reply
    owner: int | None


class ModelMember:
    """See the module. `handed` is told (partition, first, next) of everything that the application gets."""

    def __init__(
        self,
        zookeeper: ModelZooKeeper,
        name: str,
        topics: dict[str, int],
        rules: Rules,
        *,
        handed: Callable[[TopicPartition, int, int], None],
        fence: str = "none",
        server: int = 0,
    ) -> None:
        self.zookeeper = zookeeper
        self.name = name
        self.topics = topics
        self.machine = Rebalance(rules=rules)
        self.fence = fence
        self.session = zookeeper.open(server)
        self.alive = True
        self.registry: dict[TopicPartition, Position] = {}
        self.handing: dict[TopicPartition, Position] = {}  #: what the application may be handed now
        self.adopted: tuple[Position, ...] = ()  #: what the registry was made of last
        self.sessions = {self.session.number}
        self.cuts = 0
        self.lost_sessions = 0
        self.renewal_untold = False  #: a new session stands, and the machine does not know
        self.told: list[effects.Emit] = []
        self.done: list[Done] = []
        self.reports: dict[int, str | None] = {}
        self.refused_commits = 0
        self.listener_raises = False
        self._handed = handed
        self._batches: deque[tuple[effects.Effect, ...]] = deque()
        self._listeners: dict[str, Listener] = {}
        self._broken: set[str] = set()
        self._events: deque[Notice | str] = deque()
        self._step = ""
        self._tickets = 0
        self._programs: dict[str, tuple[Program, Wanted]] = {}
        for label, program in (("start", self._start()), ("executor", self._execute())):
            self._programs[label] = (program, next(program))

    @property
    def consumer_id(self) -> str:
        return self.machine.rules.consumer_id

    @property
    def closed(self) -> bool:
        return self.machine.state is State.CLOSED

    @property
    def connected(self) -> bool:
        return self.session.server is not None and not self.session.ended

    @property
    def gave_up(self) -> bool:
        """Its last rebalance failed and nothing came since: registered, and idle."""
        ended = [told.fields["outcome"] for told in self.told if told.kind == "rebalance_ended"]
        return self.machine.state is State.IDLE and bool(ended) and ended[-1] == "failed"

    @property
    def deaf(self) -> bool:
        """It waits for its id node to go, which its own living session made: for ever (KAFKA-1387)."""
        node = self.zookeeper.leader.nodes.get(paths.member_id(GROUP, self.consumer_id))
        waits = any(
            isinstance(wanted, Wait) and wanted.what == "its own node to go" for wanted in self.wants().values()
        )
        return waits and node is not None and node.owner == self.session.number

    @property
    def missed_a_broker(self) -> bool:
        """R3 found no broker, one came before R3a listened, and nobody looks at what the listening read."""
        ended = [told.fields["outcome"] for told in self.told if told.kind == "attempt_ended"]
        listened = [done for done in self.done if done.step == "R3" and done.call.op == "getChildren"][-1:]
        return (
            self.machine.state is State.IDLE
            and ended[-1:] == ["unavailable"]
            and any(done.reply.children for done in listened)
        )

    @property
    def attempts(self) -> int:
        return sum(told.kind == "attempt_started" for told in self.told)

    # -- what others do with it --------------------------------------------------------------------------------

    def wants(self) -> dict[str, Wanted]:
        """What each program stands at."""
        return {name: wanted for name, (_, wanted) in self._programs.items()}

    def ready(self) -> list[str]:
        """The programs that could go on now."""
        return [name for name, wanted in self.wants().items() if self._can(wanted)]

    def go_on(self, name: str) -> None:
        """One call, pause or wait of a program, and what follows up to the next one."""
        program, wanted = self._programs[name]
        assert self._can(wanted), f"{self.name}: {name} stands at {wanted}"
        reply = self._call(name, wanted) if isinstance(wanted, Call) else Reply()
        try:
            self._programs[name] = (program, program.send(reply))
        except StopIteration:
            del self._programs[name]

    def lose_answer(self, name: str) -> None:
        """The call of a program is done, and the connection breaks before the answer: it will be done again."""
        _, wanted = self._programs[name]
        assert isinstance(wanted, Call)
        self._call(name, wanted)
        self.cut()

    def close(self) -> None:
        self._tell(effects.CloseDemanded())

    def commit(self) -> None:
        """The application, or the timer, commits; nothing while a commit is under way."""
        if "commit" not in self._programs and self.alive and not self.closed:
            program = self._commit("commit")
            try:
                self._programs["commit"] = (program, next(program))
            except StopIteration:
                return

    def consume(self, partition: TopicPartition, records: int) -> None:
        """Hand out the next records of a partition that is fetched."""
        position = self.handing[partition]
        first = max(position.consumed, 0)
        position.consumed = first + records
        self._handed(partition, first, position.consumed)

    def crash(self) -> None:
        """The process is killed; its session lives on at the server."""
        self.alive = False
        self._programs.clear()
        self.handing.clear()
        self.zookeeper.disconnect(self.session)

    def cut(self) -> None:
        """The connection breaks, with every watch and whatever the server has sent and nobody has read."""
        if self.session.server is None:
            return
        self.cuts += 1
        self._broken |= {notice.path for notice in self.session.inbox}
        self.session.inbox.clear()
        self._broken |= self.zookeeper.disconnect(self.session)
        self._tell_state("Disconnected")

    def expire(self) -> None:
        """The server ends the session; this side learns of it when it reaches a server."""
        self.cut()
        self.lost_sessions += 1
        self.zookeeper.expire(self.session)

    def reach(self, server: int = 0) -> bool:
        """The connection stands again, in the same session or, when that is over, in a new one."""
        if self.session.server is not None or not self.alive or self.closed:
            return False
        if self.session.ended:
            self.session = self.zookeeper.open(server)
            self.sessions.add(self.session.number)
            self.renewal_untold = True
            self._events.append("renewed")
        elif self.zookeeper.connect(self.session, server):
            self._events.append("connected")
            self._tell_state("Reconnected")
        else:
            return False
        return True

    # -- programs ------------------------------------------------------------------------------------------------

    def _start(self) -> Program:
        yield from self._register()
        delivery = self._deliver()
        self._programs["delivery"] = (delivery, next(delivery))
        yield from self._listen(Listener(paths.member_ids(GROUP), children=True, trigger="members"))
        for topic in self.topics:
            yield from self._listen(Listener(paths.topic(topic), children=False, trigger="partitions"))
        yield from self._demand("start")

    def _register(self) -> Program:
        """As `zkconsumer.registration`: a node of another session is waited for."""
        path = paths.member_id(GROUP, self.consumer_id)
        payload = registration_payload(self.topics, self.session.number)
        while True:
            reply = yield from self._create(path, payload)
            if not reply.error:
                return
            there = yield Call("getData", path)
            if there.data == payload and not there.error:
                return
            yield Wait("its own node to go", lambda: path not in self.zookeeper.leader.nodes)

    def _execute(self) -> Program:
        while not self.closed:
            yield Wait("a batch", lambda: bool(self._batches))
            batch = self._batches.popleft()
            while batch:
                outcome = yield from self._perform_batch(batch)
                if not is_busy(self.machine):
                    break
                self.machine, batch = step(self.machine, outcome)
        self._programs = {"executor": self._programs["executor"]}

    def _perform_batch(self, batch: tuple[effects.Effect, ...]) -> Program:
        outcome: effects.Event = Performed()
        for effect in batch:
            try:
                outcome = yield from self._perform(effect)
            except RebalanceLabError as error:
                return StepFailed(str(error))
        return outcome

    def _perform(self, effect: effects.Effect) -> Program:
        match effect:
            case Ask(number, requests):
                self._step = number
                answers: tuple[Answer, ...] = ()
                for request in requests:
                    answers += ((yield from self._request(request)),)
                return Answered(answers)
            case effects.CommitOffsets():
                yield from self._commit("R4")
            case effects.WatchBrokers():
                yield from self._listen(Listener(paths.BROKER_IDS, children=True, trigger="brokers"))
            case effects.BackOff(ms):
                yield Pause(f"backs off {ms} ms", timed=True)
            case effects.StopFetchers() | effects.StopAutoCommit():
                yield Pause(type(effect).__name__)
            case effects.TellAssigned() | effects.TellRevoked():
                yield Pause("its listener")
                if self.listener_raises:
                    raise Refused("the listener raised")
            case effects.CloseSession():
                yield Pause("CloseSession")
                self.zookeeper.close(self.session)
            case _:
                self._at_once(effect)
        return Performed()

    def _deliver(self) -> Program:
        while True:
            yield Wait("a notification", self._has_events)
            happened = self._events.popleft()
            if isinstance(happened, Notice):
                listener = self._listeners[happened.path]
                yield from self._arm(listener)
                if happened.event in ("created", "children" if listener.children else "changed") or (
                    listener.children and happened.event == "deleted"
                ):
                    self._tell(effects.ChangeNotified(listener.trigger))
            elif happened == "renewed":
                self._broken.clear()
                self._tell(effects.SessionRenewed())
                self.renewal_untold = False
                yield from self._register()
                yield from self._demand("session")
                for listener in list(self._listeners.values()):
                    yield from self._arm(listener)
                    self._tell(effects.ChangeNotified(listener.trigger))
            else:
                broken, self._broken = self._broken, set()
                for listener in [listener for path, listener in self._listeners.items() if path in broken]:
                    seen = listener.seen
                    yield from self._arm(listener)
                    if listener.seen != seen:
                        self._tell(effects.ChangeNotified(listener.trigger))

    def _demand(self, trigger: str) -> Program:
        self._tickets += 1
        ticket = self._tickets
        self._tell(effects.RebalanceDemanded(trigger, ticket))
        yield Wait("its rebalance", lambda: ticket in self.reports)

    def _listen(self, listener: Listener) -> Program:
        self._listeners[listener.path] = listener
        yield from self._arm(listener, first=True)

    def _arm(self, listener: Listener, *, first: bool = False) -> Program:
        reply = yield Call("exists", listener.path, watch=True)
        listener.seen = -1
        if reply.stat is not None:
            listener.seen = reply.stat.cversion if listener.children else reply.stat.mzxid
        if listener.children:
            yield Call("getChildren", listener.path, watch=True)
        elif not first:
            yield Call("getData", listener.path, watch=True)

    # -- requests --------------------------------------------------------------------------------------------------

    def _request(self, request: Request) -> Program:
        """A request of the table; reads leave a watch where somebody listens."""
        if request.operation is Operation.CREATE:
            reply = yield from self._create(request.path, request.data)
        else:
            is_read = request.operation is not Operation.DELETE
            reply = yield Call(str(request.operation), request.path, watch=is_read and request.path in self._listeners)
        if reply.error in ("", "NoNode", "NodeExists"):
            return Answer(
                data=reply.data, children=reply.children, refusal=Refusal(reply.error) if reply.error else None
            )
        raise Refused(f"{request.path}: {reply.error}")

    def _create(self, path: str, data: bytes, *, ephemeral: bool = True) -> Program:
        """A create whose missing parents are made."""
        reply = yield Call("create", path, data, ephemeral=ephemeral)
        if reply.error == "NoNode":
            yield from self._create(paths.parent(path), b"", ephemeral=False)
            reply = yield Call("create", path, data, ephemeral=ephemeral)
        return reply

    def _commit(self, label: str) -> Program:
        """What changed, one after the other; the registry is read once."""
        for position in list(self.registry.values()):
            offset = position.consumed
            if offset == position.checkpointed:
                continue
            path = paths.offset(GROUP, position.partition.topic, position.partition.partition)
            reply = yield from self._update(path, offset_payload(offset))
            if reply.error:
                raise Refused(f"{label}: {path}: {reply.error}")
            position.checkpointed = offset

    def _update(self, path: str, data: bytes) -> Program:
        reply = yield Call("setData", path, data)
        if reply.error == "NoNode":
            reply = yield from self._create(path, data, ephemeral=False)
            if reply.error == "NodeExists":
                reply = yield Call("setData", path, data)
        return reply

    def _call(self, program: str, call: Call) -> Reply:
        node = self.zookeeper.leader.nodes.get(call.path)
        owner = None if node is None else node.owner
        reply = self.zookeeper.perform(self.session, call)
        step = self._step if program == "executor" else program
        self.done.append(Done(program, step, self.attempts, self.session.number, call, reply, owner))
        return reply

    def _can(self, wanted: Wanted) -> bool:
        if isinstance(wanted, Call):
            return self.connected
        return wanted.ready() if isinstance(wanted, Wait) else True

    def _has_events(self) -> bool:
        while self.session.inbox:
            self._events.append(self.session.inbox.popleft())
        return bool(self._events)

    # -- the machine -----------------------------------------------------------------------------------------------

    def _tell(self, event: effects.Event) -> None:
        """As `Executor.tell`."""
        was_busy = is_busy(self.machine)
        self.machine, wanted = step(self.machine, event)
        if was_busy or not is_busy(self.machine):
            for effect in wanted:
                assert isinstance(effect, effects.INSTANT), f"{event} made a second batch"
                self._at_once(effect)
        else:
            self._batches.append(wanted)

    def _tell_state(self, name: str) -> None:
        event = getattr(effects, name, None)
        if event is not None and self.machine.rules.stop_on_disconnect:
            self._tell(event())

    def _at_once(self, effect: effects.Effect) -> None:
        match effect:
            case effects.Emit():
                self.told.append(effect)
            case effects.Report(ticket, error):
                self.reports[ticket] = error
            case effects.ForgetOwned(topics):
                self.registry = {
                    tp: position
                    for tp, position in self.registry.items()
                    if topics is not None and tp.topic not in topics
                }
            case effects.ClearStreams(topics):
                self.handing = {
                    tp: position
                    for tp, position in self.handing.items()
                    if topics is not None and tp.topic not in topics
                }
            case effects.AdoptClaims(claims):
                self.registry = {
                    claim.topic_partition: Position(
                        claim.topic_partition, claim.thread, claim.offset, claim.offset, self.session.number
                    )
                    for claim in claims
                }
                self.adopted = tuple(self.registry.values())
            case effects.StartFetchers():
                self.handing = dict(self.registry)
            case effects.Warn() | effects.EndStreams():
                pass
            case _:
                raise AssertionError(f"the model does not know {effect}")
