"""Plays recorded conversations: requests once sent to a real Kafka broker, with its answers.

A recording (tests/coordinator/conversations/*.json) has the broker's settings, its topics, named bytes and the
conversations; each is a list of steps on named connections, whose names are the client ids:

    call send a request and wait for its answer        send    send it; `tag` names it
    recv    wait for the answer of `tag`                   parked  no answer of `tag` may come for a time
    wait    let time pass                                  close   close a connection
    read    fetch a partition to its end                   topic   create a topic, let it grow, or delete it (0)

Values are symbolic: `$G` is the conversation's own group, `$T` its topic, `$A` a member id bound by an answer, `@m1`
named bytes, `{"batch": ...}` records of the bound producer (`tests.support.conversations.batches`). Answers are made
symbolic with the same names before they are compared. The order of lists does not matter, and names that begin with `~`
are not compared.

A `Connect` makes connections: to a live broker over TCP (`tests.support.wire.clients`), or to the handlers alone
under a clock that jumps (`tests.support.coordinators.in_memory`).
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import json
import re
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.conversations.batches import built, read_to_end

FOLDER = Path(__file__).parents[2] / "coordinator" / "conversations"

#: The pause after `send`, so that the request arrives before the next one of another connection.
ARRIVAL_MS = 30
ANSWER_MS = 10_000
ATTEMPTS = 100  #: of a request whose response asks for a retry
CLOSED = {"closed": True}
TIMEOUT = {"timeout": True}

_UNCOMPARED = frozenset({"throttle_time", "client_host", "host", "port", "log_append_time"})
_WHATEVER = frozenset({"node_id", "producer_id"})
_UUID4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_BASE64_UUID = re.compile("[A-Za-z0-9_-]{22}")

Step = Mapping[str, Any]
Plain = Any


class ConnectionEnded(Exception):
    """The broker closed the connection without a response."""


class Connection(Protocol):
    """A connection; `send` returns a future of the response: a kio entity, or the bytes of a raw frame."""

    def send(self, api: Api, version: int, body: Mapping[str, Any]) -> asyncio.Future[Any]: ...

    def send_raw(self, key: int, version: int, body: bytes) -> asyncio.Future[Any]: ...

    def close(self) -> None: ...


Connect = Callable[[str], Awaitable[Connection]]
ChangeTopic = Callable[[str, int], Awaitable[uuid.UUID | None]]  #: the topic's new number of partitions; returns its id


@dataclass(frozen=True)
class Recording:
    """A file of conversations."""

    settings: Mapping[str, str]
    topics: Mapping[str, int]
    blobs: Mapping[str, bytes]
    conversations: Mapping[str, Mapping[str, Any]]
    followed: str  #: the last of the recorded brokers, which we follow where they differ
    topic_ids: Mapping[str, uuid.UUID]  #: of the recorded broker, where the order of ids matters (KIP-848)


def recording(name: str) -> Recording:
    document = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return Recording(
        settings=document["settings"],
        topics=document["topics"],
        blobs={name: bytes.fromhex(text) for name, text in document["blobs"].items()},
        conversations={c["name"]: c for c in document["conversations"]},
        followed=document["brokers"][-1],
        topic_ids={name: uuid.UUID(text) for name, text in document.get("topic_ids", {}).items()},
    )


@dataclass
class Symbols:
    """The names of a conversation and their values."""

    group: str
    blobs: Mapping[str, bytes]
    values: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)  #: the producer's id and epoch
    topic_ids: Mapping[str, uuid.UUID] = field(default_factory=dict)  #: `#t1` is the id of t1

    def __post_init__(self) -> None:
        self.values |= {
            "$G": self.group,
            "$G2": f"{self.group}.2",
            "$G3": f"{self.group}.3",
            "$TXN": f"{self.group}.txn",
            "$TXN2": f"{self.group}.txn2",
            "$T": f"{self.group}.data",
        }
        self._blob_names = {blob: f"@{name}" for name, blob in self.blobs.items()}

    def bind(self, name: str, value: str) -> bool:
        if not value or f"${name}" in self.values:
            return False
        self.values[f"${name}"] = value
        return True

    def resolved(self, value: Plain) -> Plain:
        """A recorded request with this run's values."""
        if isinstance(value, dict):
            if value.keys() == {"batch"}:
                return built(value["batch"], self.numbers)
            return {name: self._resolved_field(name, item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.resolved(item) for item in value]
        if not isinstance(value, str):
            return value
        if value in self.numbers:
            return self.numbers[value]
        if value.startswith("$"):
            return self.values.get(value, f"unbound{value}")
        if value.startswith("#"):
            return self.topic_ids[value[1:]]
        if value.startswith("@"):
            return self.blobs[value[1:]] if value != "@" else b""
        return value.replace("{G}", self.group)

    def _resolved_field(self, name: str, value: Plain) -> Plain:
        """An id that no topic has is recorded as it is."""
        is_literal = name == "topic_id" and not value.startswith("#")
        return uuid.UUID(value) if is_literal else self.resolved(value)

    def symbolic(self, value: Plain, name: str = "") -> Plain:
        """A response with the recording's names."""
        if isinstance(value, dict):
            return {key: self.symbolic(item, key) for key, item in value.items() if key not in _UNCOMPARED}
        if isinstance(value, list):
            if name == "groups":
                value = [group for group in value if self._concerns_us(group)]
            return [self.symbolic(item) for item in value]
        if name in _WHATEVER:
            return "*"
        if isinstance(value, uuid.UUID):
            return next((f"#{topic}" for topic, topic_id in self.topic_ids.items() if topic_id == value), "#?")
        if isinstance(value, bytes):
            return self._blob_names.get(value, f"hex:{value.hex()}") if value else ""
        return self._symbolic_text(value) if isinstance(value, str) else value

    def _concerns_us(self, row: Mapping[str, Any]) -> bool:
        """Whether a row belongs to this conversation: ListGroups returns all groups, other requests only theirs."""
        is_listed = "protocol_type" in row and "members" not in row
        return not is_listed or str(row["group_id"]).startswith(self.group)

    def _symbolic_text(self, text: str) -> str:
        for name, value in self.values.items():
            if text == value:
                return name
        text = text.replace(self.group, "{G}")
        if match := re.fullmatch(f"(.*-)?{_UUID4}", text):
            return f"{match[1] or ''}<uuid4>"
        return "<base64 uuid>" if _BASE64_UUID.fullmatch(text) else text


def plain(value: Any) -> Plain:
    """A kio entity as plain values: errors as `NUMBER NAME`, durations in milliseconds."""
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, ErrorCode):
        return f"{value.value} {value.name.upper()}"
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    return [plain(item) for item in value] if isinstance(value, tuple) else value


@dataclass
class Player:
    """A run of a conversation; `differences` lists deviations from the recording."""

    conversation: Mapping[str, Any]
    connect: Connect
    symbols: Symbols
    differences: list[str] = field(default_factory=list)
    change_topic: ChangeTopic | None = None
    followed: str = ""  #: the version whose answers count where the recorded brokers differ

    def __post_init__(self) -> None:
        self._connections: dict[str, Connection] = {}
        self._sent: dict[str, tuple[Step, asyncio.Future[Any]]] = {}

    async def play(self) -> list[str]:
        answers = []
        try:
            for number, step in enumerate(self.conversation["steps"], 1):
                answer = await self._step(step)
                if answer is not None:
                    answers.append((number, step, answer))
        finally:
            for connection in self._connections.values():
                connection.close()
        # An answer may name a member whose id is bound by a later one.
        for number, step, answer in answers:
            self._compare(number, step, answer)
        return self.differences

    async def _step(self, step: Step) -> Plain | None:
        match step["step"]:
            case "wait":
                await asyncio.sleep(step["ms"] / 1000)
            case "close":
                self._connections.pop(step["conn"]).close()
            case "send":
                self._sent[step["tag"]] = (step, await self._send(step))
                await asyncio.sleep(ARRIVAL_MS / 1000)
            case "parked":
                _, future = self._sent[step["tag"]]
                done, _ = await asyncio.wait([future], timeout=step["for_ms"] / 1000)
                return {"parked": not done}
            case "recv":
                sent, future = self._sent[step["tag"]]
                return self._bound(step, sent, await self._answer(future, step["within_ms"], sent))
            case "call":
                return await self._call(step)
            case "read":
                return await self._read(step)
            case "topic":
                await self._change_topic(step)
        return None

    async def _change_topic(self, step: Step) -> None:
        assert self.change_topic is not None, "this conversation needs a cluster whose topics change"
        topic_id = await self.change_topic(self.symbols.resolved(step["topic"]), step["partitions"])
        if topic_id is not None and "bind" in step:
            self.symbols.topic_ids = {**self.symbols.topic_ids, step["bind"]: topic_id}

    async def _call(self, step: Step) -> Plain:
        """Repeat while the response contains one of the step's `retry_while`: the coordinator may not be ready yet."""
        for _ in range(ATTEMPTS):
            future = await self._send(step)
            answer = self._bound(step, step, await self._answer(future, step.get("within_ms", ANSWER_MS), step))
            if not any(error in str(answer) for error in step.get("retry_while", ())):
                break
            await asyncio.sleep(ARRIVAL_MS / 1000)
        return answer

    async def _read(self, step: Step) -> Plain:
        """Fetch several times, since brokers differ in where a response ends."""
        connection = await self._connection(step["conn"])
        return await read_to_end(connection.send, self.symbols.resolved(step))

    async def _connection(self, name: str) -> Connection:
        if name not in self._connections:
            self._connections[name] = await self.connect(name)
        return self._connections[name]

    async def _send(self, step: Step) -> asyncio.Future[Any]:
        connection = await self._connection(step["conn"])
        if "raw" in step:
            key, version, *body = step["raw"]
            return connection.send_raw(key, version, bytes.fromhex(body[0]) if body else b"")
        return connection.send(Api[step["api"]], step["version"], self.symbols.resolved(step["request"]))

    async def _answer(self, future: asyncio.Future[Any], within_ms: int, sent: Step) -> Plain:
        done, _ = await asyncio.wait([future], timeout=within_ms / 1000)
        if not done:
            return dict(TIMEOUT)
        error = future.exception()
        if isinstance(error, ConnectionEnded):
            return dict(CLOSED)
        if error is not None:
            raise error
        if "raw" in sent:
            return {"starts": future.result()[: sent.get("prefix", 2)].hex()}
        return plain(future.result())

    def _bound(self, step: Step, sent: Step, answer: Plain) -> Plain:
        if which := step.get("bind_producer"):
            number = "" if which is True else which
            self.symbols.numbers |= {
                f"$PID{number}": answer["producer_id"],
                f"$PEPOCH{number}": answer["producer_epoch"],
            }
        name = step.get("bind")
        if name and self.symbols.bind(name, answer.get("member_id", "")):
            answer["member_id_form"] = _form(answer["member_id"], sent)
        return answer

    def _compare(self, number: int, step: Step, answer: Plain) -> None:
        recorded = step["response"] if "response" in step else step["responses"][self.followed]
        got = self.symbols.symbolic(answer)
        if _canonical(recorded) != _canonical(got):
            what = f"{step.get('conn', '')} {step.get('api') or step['step']} {step.get('tag', '')}"
            self.differences.append(f"step {number} {what}:\n  recorded {recorded}\n  got      {got}")


def _canonical(value: Plain) -> Plain:
    """A value without order and without fields that are not compared."""
    if isinstance(value, dict):
        return {k: _canonical(v) for k, v in value.items() if not k.startswith("~") and k != "error_message"}
    if isinstance(value, list):
        return sorted((_canonical(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return value


def _form(member_id: str, sent: Step) -> str:
    """The form of a member id."""
    for form, prefix in (("client-id", sent["conn"]), ("instance-id", sent["request"].get("group_instance_id"))):
        if prefix is not None and re.fullmatch(f"{re.escape(prefix)}-{_UUID4}", member_id):
            return f"<{form}>-<uuid4>"
    return "<base64 uuid>" if _BASE64_UUID.fullmatch(member_id) else "other"


def player(
    recorded: Recording,
    name: str,
    connect: Connect,
    topic_ids: Mapping[str, uuid.UUID] | None = None,
    change_topic: ChangeTopic | None = None,
) -> Player:
    """A run of conversation `name` with its own groups."""
    group = f"play-{uuid.uuid4().hex[:10]}"
    symbols = Symbols(group, recorded.blobs, topic_ids=topic_ids or {})
    return Player(recorded.conversations[name], connect, symbols, change_topic=change_topic, followed=recorded.followed)
