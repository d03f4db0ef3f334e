"""The bystander of a run: a process with a ZooKeeper session of its own, which times get and set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.scenarios.processes.children import ChildFailed
from kernel.trace.events import Role
from kernel.waiting import until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from comparison.run_folder import RunRecord
    from comparison.scenarios.plan.request import RunRequest
    from comparison.scenarios.processes.children import ChildProcess, OnEvent
    from kernel.trace.writer import Tracer

    #: Starts a module's process, under a name.
    Start = Callable[[str, str, OnEvent], Awaitable[ChildProcess]]

BYSTANDER_MODULE = "comparison.scenarios.processes.bystander_process"
_NAME = "bystander"
_START_S = 60.0


class BystanderChild:
    """The process, from `start` to `stop`."""

    def __init__(self, request: RunRequest, tracer: Tracer, record: RunRecord, start: Start) -> None:
        self._request = request
        self._tracer = tracer
        self._record = record
        self._start = start
        self._child: ChildProcess | None = None
        self.operations = 0  #: answered so far, as it last reported
        self._error = ""

    async def start(self, connect_string: str) -> None:
        """Start it, and wait until it operates. Raises `ChildFailed`."""
        self._child = await self._start(BYSTANDER_MODULE, _NAME, self.heard)
        self._record.add_traces(Role.BYSTANDER, [_NAME])
        self._child.send({**self._request.identity(_NAME), "zookeeper": connect_string})

        def operates() -> bool:
            self.check()
            return self.operations > 0

        await until(operates, _START_S, "the bystander to operate")

    def check(self) -> None:
        """Raise `ChildFailed` if it could not start, or has ended."""
        if self._error:
            raise ChildFailed(f"{_NAME} did not start: {self._error}")
        if self._child is not None and self._child.returncode is not None:
            raise self._child.failure("operating")

    async def stop(self, *, at_once: bool = False) -> None:
        if self._child is not None:
            code = await self._child.stop(at_once=at_once)
            self._tracer.emit("process_ended", target=_NAME, how="stop", code=code)

    def heard(self, event: Mapping[str, object]) -> None:
        if event.get("event") == "operated":
            self.operations = int(str(event["operations"]))
        elif event.get("event") == "failed":
            self._error = str(event["error"])
