"""Original consumers as group members: a child process with one JVM runs any number of them, of one Kafka version.

An `OriginalHost` can be used from several event loops, one after the other; the package's docstring has an example.
The originals log to `<folder>/<name>.log`. `OriginalMember.messages` has what they deliver, `events` has calls of the
listener and errors of streams.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import json
import os
import signal
import subprocess
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from comparison.originals import jars
from comparison.originals.java import OPTIONS, logging_options
from kernel.errors import RebalanceLabError, Unavailable, UserError
from kernel.platform.interpreter import module_command
from kernel.platform.jre import find_java
from kernel.platform.processes import start_child, stop_child
from kernel.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: The versions with the high-level consumer, whose groups are in ZooKeeper.
VERSIONS = ("0.8.2.2", "1.1.1")

#: Starting a JVM takes half a second, longer on a busy machine.
_START_S = 60.0
_OPERATION_S = 120.0


class OriginalFailed(RebalanceLabError):
    """The original raised an exception; `java_class` is its class without the package."""

    def __init__(self, what: str, java_class: str, message: str) -> None:
        super().__init__(f"{what}: {java_class}: {message}")
        self.java_class = java_class


class HostEnded(Unavailable):
    """The process with the original consumers has ended or was killed."""


class Message(NamedTuple):
    """A message delivered by an original consumer."""

    topic: str
    partition: int
    offset: int
    stream: int  #: number of its stream
    value: bytes | None
    at: float  #: time.monotonic(), in s


class Pattern(NamedTuple):
    """A wildcard subscription."""

    kind: str  #: white_list or black_list
    pattern: str  #: a Java regular expression; commas stand for |
    streams: int = 1


@dataclass(eq=False)
class OriginalMember:
    """One original consumer; created by `OriginalHost.member` or `join`."""

    host: OriginalHost
    number: int
    name: str
    group: str
    request: dict[str, Any]
    messages: list[Message] = field(default_factory=list)
    #: Its other events: {"event": "before_release", "owned": {topic: [partition]}}, "before_start" with "assignment",
    #: "listener_raises", "stream_error" with "java_class" and "message".
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def consumer_id(self) -> str:
        """Its name in ZooKeeper, `group_name`, unless it generates one."""
        return f"{self.group}_{self.name}"

    async def join(self) -> Self:
        """Create its streams, which registers it and runs the first rebalance. When that fails, raises
        `OriginalFailed`, and the original stays registered and idle.
        """
        await self.host.call("join", f"{self.name} joining", member=self.number, **self.request)
        return self

    async def leave(self) -> None:
        """Shut it down cleanly, which commits (with auto-commit) and removes its nodes."""
        await self.host.call("leave", f"{self.name} leaving", member=self.number)

    async def commit(self) -> None:
        """Commit the offsets of everything delivered."""
        await self.host.call("commit", f"{self.name} committing", member=self.number)

    async def pause(self) -> None:
        """Stop delivering until `resume`: no message is delivered after this returns."""
        await self.host.call("consume", f"{self.name} pausing", member=self.number, on=False)

    async def resume(self) -> None:
        await self.host.call("consume", f"{self.name} resuming", member=self.number, on=True)

    async def read_until(self, total: int, *, timeout_s: float = 20) -> None:
        """Wait until it has delivered `total` messages."""
        await until(
            lambda: len(self.messages) >= total,
            timeout_s,
            lambda: f"{total} messages of {self.name}, got {len(self.messages)}; its log is {self.host.log_path}",
        )


class OriginalHost:
    """The process with the JVM; `with` or `async with` starts and ends it."""

    def __init__(
        self, version: str, folder: Path, *, name: str | None = None, heap_mb: int = 256, log_level: str = "INFO"
    ) -> None:
        if version not in VERSIONS:
            raise UserError(
                f"Kafka {version} has no consumer with groups in ZooKeeper. Use one of {', '.join(VERSIONS)}"
            )
        self.version = version
        self.folder = folder
        self.log_path = folder / f"{name or f'original-{version}'}.log"
        self.members: list[OriginalMember] = []
        self._heap_mb = heap_mb
        self._log_level = log_level
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    # -- life --------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the JVM and wait until it serves. Raises `OriginalsUnavailable` or `HostEnded`."""
        assert self._child is None, "a host is started once"
        if importlib.util.find_spec("jpype") is None:
            raise jars.OriginalsUnavailable("jpype1 is not installed. Run 'pip install jpype1==1.7.*'")
        class_path = [str(jar) for jar in jars.class_path(self.version)]
        # -Xrs: the JVM leaves SIGTERM and SIGINT to the process.
        options = [f"-Xmx{self._heap_mb}m", "-Xrs", *OPTIONS, *logging_options(self._log_level)]
        command = module_command("comparison.originals.host_process", json.dumps(options), json.dumps(class_path))
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._child = start_child(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                environment={**os.environ, "JAVA_HOME": str(find_java().home)},  # where JPype looks first
            )
        self._reader = threading.Thread(target=self._listen, name=self.log_path.stem, daemon=True)
        self._reader.start()
        try:
            self._ask("ready").result(_START_S)
        except TimeoutError:
            self.kill()
            raise HostEnded(
                f"timed out after {_START_S:g} s waiting for the JVM to serve; {self._end_of_log()}"
            ) from None
        except HostEnded:
            self.kill()
            raise
        return self

    def kill(self) -> None:
        """SIGKILL: its members do not leave, and their sessions expire. Idempotent."""
        child = self._running()
        if child.poll() is None:
            child.kill()
        child.wait()
        self._put_away()

    def close(self) -> None:
        """End the process. Its members do not leave, as in a crash. Idempotent."""
        if self._child is not None:
            stop_child(self._child)
            self._put_away()

    def freeze(self) -> None:
        """Stop the process (SIGSTOP)."""
        self._running().send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the process go on (SIGCONT)."""
        self._running().send_signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return await asyncio.to_thread(self.start)

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    async def answers(self) -> None:
        """Wait until the process and its JVM have run: on a busy machine either may wait for seconds."""
        await self.call("ready", "answering")

    # -- members -----------------------------------------------------------------------------------------------------

    def member(
        self,
        name: str,
        *,
        zookeeper: str,
        group: str,
        topics: Mapping[str, int] | Pattern,
        properties: Mapping[str, str] | None = None,
        listener: str | None = None,
        consuming: bool = True,
    ) -> OriginalMember:
        """A consumer that has not joined yet: `topics` is {name: streams}, or a pattern.

        `properties` are Kafka's own; `consumer.id` is `name` unless they say another ("" lets it make one up).
        `listener`: "record" or "raise", for 1.1.1. Not `consuming`: it hands out nothing until `resume`.
        """
        if listener is not None and self.version == "0.8.2.2":
            raise UserError("0.8.2.2 has no rebalance listener; 1.1.1 has")
        given = {"group.id": group, "zookeeper.connect": zookeeper, "consumer.id": name, **(properties or {})}
        request: dict[str, Any] = {
            "properties": {key: value for key, value in given.items() if key != "consumer.id" or value},
            "listener": listener,
            "consuming": consuming,
        }
        if isinstance(topics, Pattern):
            request["filter"] = list(topics)
        else:
            request["topics"] = dict(topics)
        made = OriginalMember(self, len(self.members), name, group, request)
        self.members.append(made)
        return made

    async def join(self, name: str, **described: Any) -> OriginalMember:
        """Create a member and let it join."""
        return await self.member(name, **described).join()

    async def produce(
        self,
        bootstrap: str,
        topic: str,
        values: Mapping[int, Sequence[bytes]],
        *,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Produce values by partition, with this version's own producer (ours is too new for a 0.8.2.2 broker)."""
        texts = {partition: [value.decode("latin-1") for value in some] for partition, some in values.items()}
        await self.call(
            "produce",
            f"producing to {topic}",
            bootstrap=bootstrap,
            topic=topic,
            values=texts,
            properties=dict(properties or {}),
        )

    async def call(self, op: str, what: str, **request: Any) -> None:
        """Send one request. Raises `OriginalFailed`, `HostEnded`, or TimeoutError after two minutes."""
        answer = await asyncio.wait_for(asyncio.wrap_future(self._ask(op, **request)), _OPERATION_S)
        error = answer.get("error")
        if error is not None:
            raise OriginalFailed(what, error["java_class"], error["message"])

    # -- inside ------------------------------------------------------------------------------------------------------

    def _ask(self, op: str, **request: Any) -> Future[dict[str, Any]]:
        child = self._running()
        answer: Future[dict[str, Any]] = Future()
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = answer
            assert child.stdin is not None
            try:
                child.stdin.write(json.dumps({"id": number, "op": op, **request}).encode() + b"\n")
                child.stdin.flush()
            except (BrokenPipeError, ValueError):  # ended, or put away
                del self._waiting[number]
                raise self._gone() from None
        return answer

    def _listen(self) -> None:
        assert self._child is not None
        assert self._child.stdout is not None
        for line in self._child.stdout:
            said = json.loads(line)
            if "id" in said:
                answer = self._waiting.pop(said["id"])
                if not answer.cancelled():
                    answer.set_result(said)
            else:
                self._keep(said)
        with self._lock:
            abandoned, self._waiting = list(self._waiting.values()), {}
        for answer in abandoned:
            if not answer.cancelled():
                answer.set_exception(self._gone())

    def _keep(self, said: dict[str, Any]) -> None:
        member = self.members[said["member"]]
        if said["event"] == "message":
            value = None if said["value"] is None else said["value"].encode("latin-1")
            member.messages.append(
                Message(said["topic"], said["partition"], said["offset"], said["stream"], value, said["at"])
            )
        else:
            member.events.append(said)

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._child is not None, "the host was not started"
        return self._child

    def _put_away(self) -> None:
        child = self._running()
        assert child.stdin is not None
        assert child.stdout is not None
        assert self._reader is not None
        self._reader.join()
        with contextlib.suppress(BrokenPipeError):  # it had not read all of it
            child.stdin.close()
        child.stdout.close()

    def _gone(self) -> HostEnded:
        return HostEnded(f"the process with originals of {self.version} has ended; {self._end_of_log()}")

    def _end_of_log(self) -> str:
        text = self.log_path.read_text(encoding="utf-8", errors="replace") if self.log_path.exists() else ""
        return f"the end of its log {self.log_path}:\n{text[-2000:]}"
