"""Child processes that take requests and answer in JSON lines, many at a time."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Self

from kernel.platform.processes import start_child, stop_child

if TYPE_CHECKING:
    from collections.abc import Mapping

START_S = 120.0


class ChildEnded(RuntimeError):
    """The child has ended, or a request failed."""


class Child:
    """Runs `python -m module arguments`, which prints a line when it is ready, and one in answer to each line.

    Answers carry the "id" of their request, or come in order without one. The end of its input ends the child.
    """

    def __init__(self, module: str, *arguments: object, first: Mapping[str, object] | None = None) -> None:
        """Start it, and wait until it is ready. Raises `ChildEnded`, TimeoutError. `first` is sent before."""
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        ready: Future[dict[str, Any]] = Future()
        self._in_order = [ready]
        self._process = start_child(
            [sys.executable, "-m", module, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        threading.Thread(target=self._listen, daemon=True).start()
        if first is not None:
            self._send(first)
        self.ready = ready.result(START_S)  #: its first line

    def _send(self, line: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")
        self._process.stdin.flush()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            with self._lock:
                answer = self._waiting.pop(said["id"]) if "id" in said else self._in_order.pop(0)
            answer.set_result(said)
        ended = ChildEnded(f"a child process ended with exit code {self._process.wait()}; its message is above")
        with self._lock:
            left = [*self._waiting.values(), *self._in_order]
        for answer in left:
            answer.set_exception(ended)

    async def ask(self, **line: object) -> dict[str, Any]:
        """Make one request. Raises `ChildEnded` if it fails."""
        answer: Future[dict[str, Any]] = Future()
        with self._lock:
            number = next(self._numbers)
            self._waiting[number] = answer
            self._send({"id": number, **line})
        said = await asyncio.wrap_future(answer)
        if said.get("error") is not None:
            raise ChildEnded(said["error"])
        return said

    def next(self) -> Future[dict[str, Any]]:
        """Send an empty line; its answer has no id."""
        answer: Future[dict[str, Any]] = Future()
        with self._lock:
            self._in_order.append(answer)
            self._send({})
        return answer

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """Close its input; if that does not end it, send a signal."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            stop_child(self._process)
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
