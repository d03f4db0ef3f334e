"""A small world for the deciding table: a model of ZooKeeper's rules, and members that take one batch at a time.

The model keeps znodes, sessions and one-shot watches, and answers a `Request` as a server would. Nothing runs by
itself: the test says which member takes the next step, so any interleaving can be written down or drawn at random.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

from kernel.values import TopicPartition
from kernel.zookeeper import paths
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
from zkconsumer.rebalance.state import Rebalance
from zkconsumer.znodes.payloads import STATIC, registration_payload

GROUP = "g"


class ModelZooKeeper:
    """Znodes with the session of an ephemeral one; `watches` are the armed (member, path) pairs.

    `kafka` are the group's offsets in Kafka.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[bytes, int | None]] = {}
        self.versions: dict[str, int] = {}
        self.kafka: dict[TopicPartition, int] = {}
        self.watches: set[tuple[str, str]] = set()
        self.notified: list[tuple[str, str]] = []

    def set_broker(self, node_id: int) -> None:
        self.put(paths.broker(node_id), json.dumps({"host": "h", "port": 9092}).encode())

    def set_topic(self, topic: str, partitions: int) -> None:
        replicas = {str(partition): [0] for partition in range(partitions)}
        self.put(paths.topic(topic), json.dumps({"version": 1, "partitions": replicas}).encode())

    def put(self, path: str, data: bytes, session: int | None = None) -> None:
        existed = path in self.nodes
        self.nodes[path] = (data, session)
        self.versions[path] = self.versions[path] + 1 if existed else 0
        self._fire(path if existed else paths.parent(path))

    def remove(self, path: str) -> None:
        if self.nodes.pop(path, None) is not None:
            self._fire(paths.parent(path))

    def end_session(self, session: int) -> None:
        for path in [path for path, (_, owner) in self.nodes.items() if owner == session]:
            self.remove(path)

    def children(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(node[len(path) + 1 :] for node in self.nodes if paths.parent(node) == path))

    def answer(self, member: str, session: int, request: Request, listened: frozenset[str]) -> Response:
        if request.operation in (Operation.GET_DATA, Operation.GET_CHILDREN) and request.path in listened:
            self.watches.add((member, request.path))
        if refusal := self._refusal(session, request):
            return Response(refusal=refusal)
        version = 0
        match request.operation:
            case Operation.GET_DATA:
                data, owner = self.nodes[request.path]
                return Response(data=data, version=self.versions[request.path], owner=owner or 0, session=session)
            case Operation.GET_CHILDREN:
                return Response(children=self.children(request.path))
            case Operation.CREATE:
                self.put(request.path, request.data, None if request.persistent else session)
            case Operation.SET_DATA:
                self.put(request.path, request.data, self.nodes[request.path][1])
                version = self.versions[request.path]
            case Operation.DELETE:
                self.remove(request.path)
            case Operation.SYNC:
                pass
            case _:
                raise AssertionError(request)
        return Response(version=version, session=session)

    def _refusal(self, session: int, request: Request) -> Refusal | None:
        if request.session not in (0, session):
            return Refusal.OTHER_SESSION
        match request.operation:
            case Operation.GET_DATA | Operation.SET_DATA | Operation.DELETE if request.path not in self.nodes:
                return Refusal.NO_NODE
            case Operation.CREATE if request.path in self.nodes:
                return Refusal.NODE_EXISTS
            case Operation.DELETE if request.version not in (-1, self.versions[request.path]):
                return Refusal.BAD_VERSION
        return None

    def owners(self) -> dict[TopicPartition, str]:
        """{partition: thread id} according to the owner nodes."""
        found = {}
        for path, (data, _) in self.nodes.items():
            if parsed := paths.parse_owner(path):
                found[TopicPartition(parsed.topic, parsed.partition)] = data.decode()
        return found

    def _fire(self, path: str) -> None:
        for member, watched in sorted(self.watches):
            if watched == path:
                self.watches.discard((member, watched))
                self.notified.append((member, path))


@dataclass
class ModelMember:
    """One member: its machine, its next batch, and the lines printed so far."""

    zookeeper: ModelZooKeeper
    name: str
    topics: dict[str, int]
    session: int
    machine: Rebalance
    pattern: str = STATIC
    batch: tuple[effects.Effect, ...] = ()
    lines: list[str] = field(default_factory=list)
    reports: list[str | None] = field(default_factory=list)

    @property
    def consumer_id(self) -> str:
        return self.machine.config.consumer_id

    @property
    def listened(self) -> frozenset[str]:
        if self.pattern != STATIC:
            return frozenset({paths.member_ids(GROUP), paths.BROKER_TOPICS})
        return frozenset({paths.member_ids(GROUP), *(paths.topic(topic) for topic in self.topics)})

    @property
    def next_step(self) -> str:
        """Its next step: a number, the name of an effect, or `idle`."""
        for effect in self.batch:
            if isinstance(effect, Ask):
                return effect.step
            if isinstance(effect, effects.ReadStoredOffsets):
                return "R8"
        return type(self.batch[-1]).__name__ if self.batch else "idle"

    def register(self) -> None:
        self.zookeeper.put(
            paths.member_id(GROUP, self.consumer_id),
            registration_payload(self.topics, 1416000000000, self.pattern),
            self.session,
        )
        self.zookeeper.watches.update((self.name, path) for path in self.listened)

    def post(self, event: effects.Event) -> None:
        was_busy = is_busy(self.machine)
        self.machine, wanted = step(self.machine, event)
        if was_busy or not is_busy(self.machine):
            self._perform_all(wanted)
        else:
            assert not self.batch
            self.batch = wanted

    def take_step(self, *, failure: str | None = None) -> None:
        """Perform one batch; with `failure`, its last effect fails."""
        outcome: effects.Event = Performed()
        batch, self.batch = self.batch, ()
        for effect in batch:
            if failure is not None and effect is batch[-1]:
                self.lines.append(f"{describe(effect)} fails: {failure}")
                outcome = StepFailed(failure)
                break
            outcome = self._perform(effect)
        self.machine, self.batch = step(self.machine, outcome)
        if not is_busy(self.machine):
            trailing, self.batch = self.batch, ()
            self._perform_all(trailing)

    def _perform_all(self, wanted: tuple[effects.Effect, ...]) -> None:
        for effect in wanted:
            assert isinstance(effect, effects.INSTANT), f"{effect} makes a second batch"
            self._perform(effect)

    def hear(self) -> int:
        """Handle the member's pending notifications, as the delivery task does. Returns their number."""
        mine = [path for member, path in self.zookeeper.notified if member == self.name]
        self.zookeeper.notified = [(m, path) for m, path in self.zookeeper.notified if m != self.name]
        for path in mine:
            self.zookeeper.watches.add((self.name, path))
            self.post(effects.ChangeNotified("members" if path == paths.member_ids(GROUP) else "partitions"))
        return len(mine)

    def lose_session(self) -> None:
        """End the session at the server; the member does not know yet."""
        self.zookeeper.end_session(self.session)
        self.zookeeper.watches = {(m, path) for m, path in self.zookeeper.watches if m != self.name}
        self.zookeeper.notified = [(m, path) for m, path in self.zookeeper.notified if m != self.name]

    def renew_session(self) -> None:
        """Return in a new session: empty the registry, create the id node, demand a rebalance."""
        self.session += 1000
        self.post(effects.SessionRenewed())
        self.register()
        self.post(effects.RebalanceDemanded("session", 2))

    def _perform(self, effect: effects.Effect) -> effects.Event:
        if isinstance(effect, Ask):
            responses = tuple(
                self.zookeeper.answer(self.name, self.session, request, self.listened) for request in effect.requests
            )
            self.lines += [
                f"{effect.step:<3} {request.operation} {request.path} -> {_brief(request, response)}"
                for request, response in zip(effect.requests, responses, strict=True)
            ]
            return Answered(responses)
        if isinstance(effect, effects.ReadStoredOffsets):
            found = {tp: self.zookeeper.kafka[tp] for tp in effect.partitions if tp in self.zookeeper.kafka}
            has = " ".join(f"{tp}@{offset}" for tp, offset in found.items())
            self.lines.append(f"{describe(effect)} -> {has or 'none'}")
            return OffsetsFetched(found)
        if isinstance(effect, effects.Report):
            self.reports.append(effect.error)
        if isinstance(effect, effects.CloseSession):
            self.lose_session()
        self.lines.append(describe(effect))
        return Performed()


class World:
    """ZooKeeper and members by name."""

    def __init__(self) -> None:
        self.zookeeper = ModelZooKeeper()
        self.members: dict[str, ModelMember] = {}

    def add(self, name: str, topics: dict[str, int], pattern: str = STATIC, **options: object) -> ModelMember:
        base = RebalanceConfig(group=GROUP, consumer_id=f"{GROUP}_{name}")
        machine = Rebalance(config=replace(base, **options))  # type: ignore[arg-type]  # replace checks the names
        member = ModelMember(self.zookeeper, name, topics, len(self.members) + 1, machine, pattern)
        self.members[name] = member
        return member

    def join(self, name: str, topics: dict[str, int], pattern: str = STATIC, **options: object) -> ModelMember:
        """Register and demand the first rebalance, without performing any of it."""
        member = self.add(name, topics, pattern, **options)
        member.register()
        member.post(effects.RebalanceDemanded("start", 1))
        return member

    def settle(self, steps_max: int = 20_000) -> None:
        """Let all members take steps and handle notifications in turn, until nothing is left to do."""
        for _ in range(steps_max):
            moved = False
            for member in self.members.values():
                moved |= member.hear() > 0
                if member.batch:
                    member.take_step()
                    moved = True
            if not moved:
                return
        raise AssertionError(f"not settled after {steps_max} steps")


def describe(effect: effects.Effect) -> str:
    """One effect as a line of a conversation."""
    match effect:
        case effects.Emit(kind, fields, stream, cause):
            named = ({} if stream is None else {"stream": stream}) | dict(fields) | ({"cause": cause} if cause else {})
            return f"    trace {kind}" + "".join(f" {name}={_value(value)}" for name, value in named.items())
        case effects.ClearStreams(topics):
            return f"    clear streams of {'everything' if topics is None else ' '.join(topics)}"
        case effects.ForgetOwned(topics):
            return f"    the registry forgets {'everything' if topics is None else ' '.join(topics)}"
        case effects.AdoptClaims(claims):
            owned = " ".join(f"{c.topic_partition}@{c.offset}->{c.thread}" for c in claims)
            return f"    the registry is {owned or 'empty'}"
        case effects.NotifyAssigned(stream, has):
            return f"    listener: stream {stream} assigned {_value(has)}"
        case effects.NotifyRevoked(stream, had):
            return f"    listener: stream {stream} revoked {_value(had)}"
        case _:
            return _describe_plain(effect)


def _describe_plain(effect: effects.Effect) -> str:
    match effect:
        case effects.BackOff(ms):
            return f"    back off {ms} ms"
        case effects.Remind(ms, token):
            return f"    remind of {token} in {ms} ms"
        case effects.ReadStoredOffsets(partitions):
            return f"R8  OffsetFetch {' '.join(str(tp) for tp in partitions)}"
        case effects.Report(_, error):
            return f"    report to the caller: {error or 'done'}"
        case effects.Warn(message):
            return f"    warn: {message}"
        case Ask(number, requests):
            return f"{number:<3} {requests[-1].operation} {requests[-1].path}"
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in type(effect).__name__).strip()
    return f"    {words}"


def _value(value: object) -> str:
    if isinstance(value, frozenset):
        return " ".join(str(tp) for tp in sorted(value)) or "nothing"
    return str(value)


def _brief(request: Request, response: Response) -> str:
    if response.refusal is not None:
        return str(response.refusal)
    if request.operation is Operation.GET_CHILDREN:
        return " ".join(response.children) or "none"
    if request.operation is Operation.GET_DATA:
        return response.data.decode(errors="replace")
    if request.operation is Operation.SET_DATA:
        return f"ok, version {response.version}, {request.data.decode()}"
    return "ok" if not request.data else f"ok, {request.data.decode()}"
