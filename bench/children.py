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

START_S = 60.0


class ChildEnded(RuntimeError):
    """The child has ended, or a request failed."""


class Child:
    """Runs `python -m module arguments`; answers carry the "id" of their request, or come in order without one."""

    def __init__(self, module: str, *arguments: str, first: Mapping[str, object] | None = None) -> None:
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        ready: Future[dict[str, Any]] = Future()
        self._in_order = [ready] if first is not None else []
        self._process = start_child(
            [sys.executable, "-m", module, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        threading.Thread(target=self._listen, daemon=True).start()
        if first is not None:
            self._send(first)
            ready.result(START_S)

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
        with self._lock:
            left = [*self._waiting.values(), *self._in_order]
        for answer in left:
            answer.set_exception(ChildEnded("the child has ended"))

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

    async def next(self) -> dict[str, Any]:
        """Send an empty line and return its answer, which has no id."""
        answer: Future[dict[str, Any]] = Future()
        with self._lock:
            self._in_order.append(answer)
            self._send({})
        return await asyncio.wrap_future(answer)

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """Close its input; if that does not end it, send a signal."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            stop_child(self._process)
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
