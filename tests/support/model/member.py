"""A model of one member around the real machine: each part of a member in a dozen lines.

A member has up to four programs, and one for each reminder: *start* (register, listen, demand the first rebalance),
*executor* (performs batches), *delivery* (handles notifications and new sessions) and *commit*. Each is a generator
that yields its next action: a `Call` to ZooKeeper, a `Pause`, or a `Wait`. The test chooses which program continues
(`go_on`). Calls are retried after a lost connection, even in a later session, as by ZkClient's retryUntilConnected.
Records are offsets: a partition has no end, and reading moves `consumed`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kernel.errors import RebalanceLabError
from kernel.values import NO_OFFSET, TopicPartition
from kernel.zookeeper import paths
from tests.support.model.offsets import Commits, Position, Stored, ensure_path
from tests.support.model.zookeeper import Call, ModelZooKeeper, Notice, Reply
from zkconsumer.rebalance import effects
from zkconsumer.rebalance.config import RebalanceConfig
from zkconsumer.rebalance.effects import (
    Answered,
    Ask,
    OffsetsFetched,
    Operation,
    Performed,
    Refusal,
    Request,
    Response,
    StepFailed,
)
from zkconsumer.rebalance.machine import is_busy, step
from zkconsumer.rebalance.state import Rebalance, RebalanceState
from zkconsumer.znodes.filters import matching
from zkconsumer.znodes.payloads import STATIC, registration_payload

GROUP = "g"


@dataclass(frozen=True, slots=True)
class Pause:
    """A point at which other programs may continue. `timed` pauses end when time passes."""

    what: str
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Waits until `ready` returns true."""

    what: str
    ready: Callable[[], bool]


Wanted = Call | Pause | Wait
Program = Generator[Wanted, Reply, Any]
Topics = tuple[str, ...]


class Refused(RebalanceLabError):
    """A call failed with an error that its caller does not handle, or a listener raised."""


@dataclass(slots=True)
class Listener:
    """The listener of one path; `on_change` is a program."""

    path: str
    children: bool
    on_change: Callable[[], Program]
    there: bool = False

    @property
    def changes(self) -> tuple[str, ...]:
        """The events that count as a change."""
        return ("children", "created", "deleted") if self.children else ("changed", "created")


@dataclass(frozen=True, slots=True)
class Done:
    """An answered call; `owner` is the session of the node before the call, at the leader."""

    program: str
    step: str
    attempt: int  #: the number of attempts begun by then
    session: int
    call: Call
    reply: Reply
    owner: int | None
    at: int  #: its number among the calls of all members


@dataclass(frozen=True, slots=True)
class Adopted:
    """A partition added to the registry, and the committed offset at that moment."""

    partition: TopicPartition
    offset: int
    committed: int
    done: int  #: the number of its member's calls by then


@dataclass(frozen=True, kw_only=True)
class MemberOptions:
    """A member's subscription and its options. `wanted` is {topic: streams}, or {pattern: streams}."""

    wanted: Mapping[str, int]
    config: RebalanceConfig
    pattern: str = STATIC
    fence: str = "none"
    stored: Stored = field(default_factory=dict)
    #: Called with (partition, first, next) for every delivery to the application.
    handed: Callable[[TopicPartition, int, int], None] = lambda *_: None


class ModelMember:
    def __init__(self, zookeeper: ModelZooKeeper, name: str, options: MemberOptions, *, server: int = 0) -> None:
        self.zookeeper = zookeeper
        self.name = name
        self.options = options
        self.machine = Rebalance(config=options.config)
        self.session = zookeeper.open(server)
        self.alive = True
        self.registry: dict[TopicPartition, Position] = {}
        self.handing: dict[TopicPartition, Position] = {}  #: what may be delivered to the application now
        self.adopted: tuple[Position, ...] = ()  #: the claims last adopted into the registry
        self.sessions = {self.session.number}
        self.cuts = 0
        self.lost_sessions = 0
        self.renewal_unnoticed = False  #: there is a new session that the machine does not know of
        self.emitted: list[effects.Emit] = []
        self.done: list[Done] = []
        self.adoptions: list[Adopted] = []
        self.attempts_began_at: list[int] = []  #: the newest zxid at the time
        self.reports: dict[int, str | None] = {}
        self.listener_raises = False
        self._commits = Commits(GROUP, options.config.offsets_from, options.fence, options.stored)
        self._committing = False
        self._matched: Topics = ()
        self._ever_matched: Topics = ()
        self._batches: deque[tuple[effects.Effect, ...]] = deque()
        self._listeners: dict[str, Listener] = {}
        self._broken: dict[str, int] = {}  #: paths with lost watches, and the last zxid seen by then
        self._events: deque[Notice | str] = deque()
        self._step = ""
        self._tickets = 0
        self._programs: dict[str, tuple[Program, Wanted]] = {}
        self._begin("start", self._start())
        self._begin("executor", self._execute())

    @property
    def consumer_id(self) -> str:
        return self.machine.config.consumer_id

    @property
    def closed(self) -> bool:
        return self.machine.state is RebalanceState.CLOSED

    @property
    def connected(self) -> bool:
        return self.session.server is not None and not self.session.ended

    @property
    def gave_up(self) -> bool:
        """Whether its last rebalance failed with nothing new since: it is registered and idle."""
        ended = [event.fields["outcome"] for event in self.emitted if event.kind == "rebalance_ended"]
        return self.machine.state is RebalanceState.IDLE and bool(ended) and ended[-1] == "failed"

    @property
    def missed_a_broker(self) -> bool:
        """Whether R3 found no broker, and one registered before R3a listened, whose reads ignore it."""
        ended = [event.fields["outcome"] for event in self.emitted if event.kind == "attempt_ended"]
        listened = [done for done in self.done if done.step == "R3" and done.call.op == "getChildren"][-1:]
        found = any(done.reply.children for done in listened)
        return self.machine.state is RebalanceState.IDLE and ended[-1:] == ["unavailable"] and found

    # -- controlled by the test --------------------------------------------------------------------------------

    def wants(self) -> dict[str, Wanted]:
        """The next action of each program."""
        return {name: wanted for name, (_, wanted) in self._programs.items()}

    def ready(self) -> list[str]:
        """The programs that can continue now."""
        return [name for name, wanted in self.wants().items() if self._can(wanted)]

    def ready_now(self) -> list[str]:
        """Those that can continue without time passing."""
        return [name for name in self.ready() if not getattr(self.wants()[name], "timed", False)]

    def go_on(self, name: str) -> None:
        """Perform a program's next call, pause or wait, and run it up to the following one."""
        program, wanted = self._programs[name]
        assert self._can(wanted), f"{self.name}: {name} is at {wanted}"
        reply = self._call(name, wanted) if isinstance(wanted, Call) else Reply()
        self._has_events()  # the server sent notifications before the answer
        try:
            following = program.send(reply)
        except StopIteration:
            self._programs.pop(name, None)
        else:
            self._programs[name] = (program, following)

    def lose_answer(self, name: str) -> None:
        """Perform a program's call, and break the connection before the answer: it will be repeated."""
        _, wanted = self._programs[name]
        assert isinstance(wanted, Call)
        seen = self.session.seen
        self._call(name, wanted)
        self.session.seen = seen  # the zxid of an answer that is lost is not seen, nor are notifications before it
        self.cut()

    def close(self) -> None:
        self._post(effects.CloseDemanded())

    def commit(self) -> None:
        """A commit by the application or the timer; ignored while an earlier one is in flight."""
        if "commit" not in self._programs and self.alive and not self.closed:
            self._begin("commit", self._commit_all())

    def consume(self, partition: TopicPartition, records: int) -> None:
        """Deliver the next records of a fetched partition."""
        position = self.handing[partition]
        first = max(position.consumed, 0)
        position.consumed = first + records
        self.options.handed(partition, first, position.consumed)

    def crash(self) -> None:
        """Kill the process; its session remains at the server."""
        self.alive = False
        self._programs.clear()
        self.handing.clear()
        self.zookeeper.disconnect(self.session)

    def cut(self) -> None:
        """Break the connection: watches and unread notifications are lost."""
        if self.session.server is None:
            return
        self.cuts += 1
        unread = {notice.path for notice in self.session.inbox}
        self.session.inbox.clear()
        for path in sorted(unread | self.zookeeper.disconnect(self.session)):
            self._broken.setdefault(path, self.session.seen)
        self._post(effects.Disconnected())

    def expire(self) -> None:
        """Expire the session at the server; the member finds out when it reaches one."""
        self.cut()
        self.lost_sessions += 1
        self.zookeeper.expire(self.session)

    def reach(self, server: int = 0) -> bool:
        """Reconnect, in the same session or, if that has ended, in a new one."""
        if self.session.server is not None or not self.alive or self.closed:
            return False
        if self.session.ended:
            self.session = self.zookeeper.open(server)
            self.sessions.add(self.session.number)
            self.renewal_unnoticed = True
            self._events.append("renewed")
        elif self.zookeeper.connect(self.session, server):
            self._events.append("connected")
            self._post(effects.Reconnected())
        else:
            return False
        return True

    # -- the start -------------------------------------------------------------------------------------------------

    def _start(self) -> Program:
        wildcard = self.options.pattern != STATIC
        if wildcard:
            self._matched = yield from self._matching_now()
        yield from self._register()
        self._begin("delivery", self._deliver())
        failure = yield from self._watch_and_rebalance("start")
        if wildcard and failure is None:
            folder = Listener(paths.BROKER_TOPICS, children=True, on_change=self._topics_changed)
            if (yield Call("exists", folder.path, watch=folder.path in self._listeners)).stat is None:
                yield from ensure_path(folder.path)
            yield from self._listen(folder)
            yield from self._topics_changed()

    def _register(self) -> Program:
        """As `zkconsumer.member.registration`: waits while another session has the node."""
        path = paths.member_id(GROUP, self.consumer_id)
        payload = registration_payload(self.options.wanted, self.session.number, self.options.pattern)
        while True:
            reply = yield from self._create(Call("create", path, payload, ephemeral=True))
            if not reply.error:
                return
            there = yield Call("getData", path)
            if there.stat is not None and (there.data == payload or there.stat.owner == self.session.number):
                return
            yield Wait("its own node to go", lambda: path not in self.zookeeper.leader.nodes)

    def _watch_and_rebalance(self, trigger: str) -> Program:
        topics: Topics = tuple(self.options.wanted)
        if self.options.pattern != STATIC:
            now = yield from self._matching_now()
            topics = self._ever_matched = tuple(dict.fromkeys((*self._ever_matched, *now)))
        yield from self._listen(
            Listener(paths.member_ids(GROUP), children=True, on_change=lambda: self._changed("members"))
        )
        for topic in topics:
            yield from self._listen(
                Listener(paths.topic(topic), children=False, on_change=lambda: self._changed("partitions"))
            )
        return (yield from self._demand(trigger))

    def _matching_now(self) -> Program:
        (pattern,) = self.options.wanted
        path = paths.BROKER_TOPICS
        reply = yield Call("getChildren", path, watch=path in self._listeners)
        return matching(self.options.pattern, pattern, reply.children, exclude_internal=True)

    def _topics_changed(self) -> Program:
        now = yield from self._matching_now()
        before, self._matched = self._matched, now
        if set(now) != set(before):
            yield from self._watch_and_rebalance("topics")

    # -- the executor ------------------------------------------------------------------------------------------------

    def _execute(self) -> Program:
        while not self.closed:
            yield Wait("a batch", lambda: bool(self._batches))
            batch = self._batches.popleft()
            while batch:
                outcome = yield from self._perform_batch(batch)
                if not is_busy(self.machine):
                    break
                self.machine, batch = step(self.machine, outcome)
        self._programs.clear()

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
                answers: tuple[Response, ...] = ()
                for request in requests:
                    answers += ((yield from self._request(request)),)
                return Answered(answers)
            case effects.ReadStoredOffsets(partitions):
                yield Pause("OffsetFetch")
                return OffsetsFetched({tp: self.options.stored[tp] for tp in partitions if tp in self.options.stored})
            case effects.CommitOffsets():
                yield from self._commit_all()
            case effects.WatchBrokers():
                brokers = Listener(paths.BROKER_IDS, children=True, on_change=lambda: self._changed("brokers"))
                yield from self._listen(brokers)
            case effects.BackOff(ms):
                yield Pause(f"backs off {ms} ms", timed=True)
            case effects.StopFetchers() | effects.StopAutoCommit():
                yield Pause(type(effect).__name__)
            case effects.StartFetchers() | effects.ResumeFetchers():
                yield Pause(type(effect).__name__)
                self.handing = dict(self.registry)
            case effects.NotifyAssigned() | effects.NotifyRevoked():
                yield Pause("its listener")
                if self.listener_raises and self.machine.config.listener_in_attempt:
                    raise Refused("the listener raised")
            case effects.CloseSession():
                yield Pause("CloseSession")
                self.zookeeper.close(self.session)
            case _:
                self._at_once(effect)
        return Performed()

    def _request(self, request: Request) -> Program:
        """Perform a request of the table; reads of paths with a listener leave a watch."""
        is_read = request.operation in (Operation.GET_DATA, Operation.GET_CHILDREN, Operation.EXISTS)
        call = Call(
            str(request.operation),
            request.path,
            request.data,
            request.version,
            ephemeral=request.operation is Operation.CREATE and not request.persistent,
            watch=is_read and request.path in self._listeners,
            only_in=request.session,
        )
        if request.operation is Operation.CREATE:
            reply = yield from self._create(call)
        else:
            reply = yield call
        if reply.error and reply.error not in tuple(Refusal):
            raise Refused(f"{request.path}: {reply.error}")
        return Response(
            data=reply.data,
            children=reply.children,
            refusal=Refusal(reply.error) if reply.error else None,
            version=0 if reply.stat is None else reply.stat.version,
            owner=0 if reply.stat is None else reply.stat.owner,
            session=self.session.number,
        )

    def _create(self, call: Call) -> Program:
        """Create a node and its missing parents."""
        reply = yield call
        if reply.error == "NoNode":
            yield from ensure_path(paths.parent(call.path))
            reply = yield call
        return reply

    def _commit_all(self) -> Program:
        """Commit all changed positions, one after the other, from a snapshot of the registry. One commit at a time."""
        yield Wait("the other commit", lambda: not self._committing)
        self._committing = True
        try:
            for position in list(self.registry.values()):
                yield from self._commits.commit(position)
        finally:
            self._committing = False

    # -- notifications and sessions ----------------------------------------------------------------------------------

    def _deliver(self) -> Program:
        while True:
            yield Wait("a notification", self._has_events)
            happened = self._events.popleft()
            if isinstance(happened, Notice):
                listener = self._listeners[happened.path]
                yield from self._arm(listener)
                if happened.event in listener.changes:
                    yield from listener.on_change()
            elif happened == "renewed":
                yield from self._in_a_new_session()
            else:
                yield from self._connected_again()

    def _in_a_new_session(self) -> Program:
        self._broken.clear()
        self._post(effects.SessionRenewed())
        self.renewal_unnoticed = False
        yield from self._register()
        yield from self._demand("session")
        if paths.BROKER_TOPICS in self._listeners:
            yield from self._listen(self._listeners[paths.BROKER_TOPICS])
        for listener in sorted(self._listeners.values(), key=lambda listener: not listener.children):
            yield from self._arm(listener)
            yield from listener.on_change()

    def _connected_again(self) -> Program:
        """Find the events that the server would have sent for lost watches, given the last zxid seen."""
        while self._broken:
            path = next(iter(self._broken))
            seen, listener = self._broken.pop(path), self._listeners[path]
            was_there = listener.there
            if listener.children:
                yield Call("getChildren", path, watch=True)
            stat = (yield Call("exists", path, watch=True)).stat
            listener.there = stat is not None
            if stat is None:
                event = "deleted" if was_there else ""
            elif not was_there:
                event = "created"
            elif listener.children:
                event = "children" if stat.pzxid > seen else ""
            else:
                event = "changed" if stat.mzxid > seen else ""
            if event in listener.changes:
                yield from listener.on_change()

    def _demand(self, trigger: str) -> Program:
        self._tickets += 1
        ticket = self._tickets
        self._post(effects.RebalanceDemanded(trigger, ticket))
        yield Wait("its rebalance", lambda: ticket in self.reports)
        return self.reports[ticket]

    def _listen(self, listener: Listener) -> Program:
        self._listeners[listener.path] = listener
        yield from self._arm(listener, data=False)

    def _arm(self, listener: Listener, *, data: bool = True) -> Program:
        listener.there = (yield Call("exists", listener.path, watch=True)).stat is not None
        if listener.children:
            yield Call("getChildren", listener.path, watch=True)
        elif data:
            yield Call("getData", listener.path, watch=True)

    def _changed(self, trigger: str) -> Program:
        self._post(effects.ChangeNotified(trigger))
        return
        yield  # makes this a generator, like other programs

    def _has_events(self) -> bool:
        while self.session.inbox:
            notice = self.session.inbox.popleft()
            self.session.seen = max(self.session.seen, notice.zxid)
            self._events.append(notice)
        return bool(self._events)

    # -- internals ---------------------------------------------------------------------------------------------------

    def _begin(self, name: str, program: Program) -> None:
        try:
            self._programs[name] = (program, next(program))
        except StopIteration:
            return

    def _can(self, wanted: Wanted) -> bool:
        if isinstance(wanted, Call):
            return self.connected
        return wanted.ready() if isinstance(wanted, Wait) else True

    def _call(self, program: str, call: Call) -> Reply:
        if call.only_in not in (0, self.session.number):
            return Reply(error="SessionExpired")
        node = self.zookeeper.leader.nodes.get(call.path)
        owner = None if node is None else node.owner
        reply = self.zookeeper.perform(self.session, call)
        step = self._step if program == "executor" else program
        at, attempts = self.zookeeper.performed, sum(event.kind == "attempt_started" for event in self.emitted)
        self.done.append(Done(program, step, attempts, self.session.number, call, reply, owner, at))
        return reply

    def _post(self, event: effects.Event) -> None:
        """As `Executor.post`."""
        was_busy = is_busy(self.machine)
        self.machine, wanted = step(self.machine, event)
        if was_busy or not is_busy(self.machine):
            for effect in wanted:
                assert isinstance(effect, effects.INSTANT), f"{event} made a second batch"
                self._at_once(effect)
        else:
            # The executor was idle: it starts before any other program continues.
            self._batches.append(wanted)
            self.go_on("executor")

    def _remind(self, token: int) -> Program:
        yield Pause("a reminder", timed=True)
        self._post(effects.Reminded(token))

    def _at_once(self, effect: effects.Effect) -> None:
        match effect:
            case effects.Emit(kind):
                self.emitted.append(effect)
                if kind == "attempt_started":
                    self.attempts_began_at.append(len(self.zookeeper.log))
            case effects.Report(ticket, error):
                self.reports[ticket] = error
            case effects.ForgetOwned(topics):
                self.registry = _without(self.registry, topics)
            case effects.ClearStreams(topics):
                # A pattern's topics share streams: emptying those of one topic empties all.
                shared = self.options.pattern != STATIC and bool(topics)
                self.handing = _without(self.handing, None if shared else topics)
            case effects.Freeze():
                self.handing = {}
            case effects.AdoptClaims(claims):
                self.adopted = tuple(self._position(claim) for claim in claims)
                self.registry = {position.partition: position for position in self.adopted}
                self.adoptions += [self._adopted(claim) for claim in claims]
            case effects.Remind(_, token):
                self._begin(f"reminder {token}", self._remind(token))
            case effects.Warn() | effects.EndStreams():
                pass
            case _:
                raise AssertionError(f"the model does not know {effect}")

    def _adopted(self, claim: effects.Claim) -> Adopted:
        data = self.zookeeper.data(paths.offset(GROUP, claim.topic, claim.partition))
        committed = NO_OFFSET if data is None else int(data)
        return Adopted(claim.topic_partition, claim.offset, committed, len(self.done))

    def _position(self, claim: effects.Claim) -> Position:
        return Position(
            claim.topic_partition,
            claim.thread,
            claim.offset,
            claim.offset,
            adopted_in=self.session.number,
            session=claim.session,
            epoch=claim.epoch,
        )


def _without(positions: dict[TopicPartition, Position], topics: Topics | None) -> dict[TopicPartition, Position]:
    """The positions without those of these topics (None: all)."""
    return {tp: position for tp, position in positions.items() if topics is not None and tp.topic not in topics}
