"""The step in which an application copies records, is frozen halfway, replaced, and wakes up."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from comparison.scenarios.processes.child_trace import APPLICATIONS
from comparison.scenarios.processes.children import ChildFailed
from comparison.scenarios.processes.copying import read_all
from comparison.scenarios.run.changes import StepPerformer
from kernel.values import TopicPartition
from kernel.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.plan.membership_vocabulary import CopyWithZombie
    from comparison.scenarios.processes.children import ChildProcess
    from comparison.scenarios.run.changes import Changes

COPY, IN_TRANSACTIONS = "copy", "transactional copy"
COPIER_MODULE = "comparison.scenarios.processes.copier_process"
_PATIENCE_S = 60.0


class _CopierChild:
    """One incarnation of the application: its process, and what it has said."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.child: ChildProcess | None = None
        self.paused = False
        self.answers: Mapping[str, object] | None = None
        self._error = ""

    def heard(self, event: Mapping[str, object]) -> None:
        match event.get("event"):
            case "paused":
                self.paused = True
            case "copied":
                self.answers = event
            case "failed":
                self._error = str(event["error"])

    def check(self) -> ChildProcess:
        """The process. Raises `ChildFailed` if it could not copy, or has ended."""
        assert self.child is not None
        if self._error:
            raise ChildFailed(f"{self.name} could not copy: {self._error}")
        if self.child.returncode is not None:
            raise self.child.failure("copying")
        return self.child

    def has_paused(self) -> bool:
        self.check()
        return self.paused

    def has_copied(self) -> bool:
        self.check()
        return self.answers is not None

    def answer_to(self, request: str) -> str:
        """The error name, '' if it was accepted."""
        assert self.answers is not None
        return str(self.answers[request])


class CopySteps(StepPerformer):
    """Performs the steps in which records are copied from the group's topic to another one."""

    def __init__(self, changes: Changes) -> None:
        super().__init__(changes)
        self._round = 0

    async def copy_with_zombie(self, step: CopyWithZombie) -> None:
        self._round += 1
        topic = f"copies-{self._round}"

        async def copy() -> None:
            await self._copy(topic, step)

        present = self._changes.members.present
        await self._changes.make(
            IN_TRANSACTIONS if step.transactions else COPY, copy, members=present, round_=self._round
        )

    async def _copy(self, topic: str, step: CopyWithZombie) -> None:
        access, tracer = self._testbed.access, self._testbed.tracer
        to = (await access.partitions_of(topic, create=True))[0]
        zombie, successor = _CopierChild(f"copier-{self._round}a"), _CopierChild(f"copier-{self._round}b")
        try:
            frozen = await self._start(zombie, to, step, pauses=True)
            await until(zombie.has_paused, _PATIENCE_S, f"{zombie.name} to have written half")
            tracer.emit("fault_started", fault="freeze", target=zombie.name)
            frozen.freeze()
            # Its group removes it when its session is over. Nothing of it was committed, so its successor starts again
            # from the first record.
            await self._start(successor, to, step, pauses=False)
            await until(successor.has_copied, _PATIENCE_S, f"{successor.name} to have copied everything")
            frozen.send({"command": "go on"})
            frozen.thaw()
            tracer.emit("fault_ended", fault="freeze", target=zombie.name)
            await until(zombie.has_copied, _PATIENCE_S, f"{zombie.name} to have tried the other half")
        finally:
            for each in (zombie, successor):
                await self._stop(each)
        read = Counter(await read_all(access.client, to))
        found = {
            "transactions": step.transactions,
            "records": step.records,
            "copied": len(read),
            "twice": sum(1 for times in read.values() if times > 1),
            "late_write": zombie.answer_to("write"),
            "late_offset": zombie.answer_to("offset"),
            "late_commit": zombie.answer_to("commit"),
        }
        tracer.emit("copies_read", detail=found)

    async def _start(
        self, copier: _CopierChild, to: TopicPartition, step: CopyWithZombie, *, pauses: bool
    ) -> ChildProcess:
        request, topic = self._testbed.request, to.topic
        copier.child = await self._testbed.spawn(COPIER_MODULE, copier.name, copier.heard)
        copier.child.send(
            {
                "process": copier.name,
                "bootstrap": self._testbed.access.client.bootstrap,
                "group": f"{APPLICATIONS}{topic}",
                "session_timeout_ms": request.configuration.session_ms,
                "transactional_id": f"{topic}-copier" if step.transactions else "",
                "origin": TopicPartition(request.parameters.topic_names[0], 0),
                "to": to,
                "records": step.records,
                "pauses": pauses,
            }
        )
        return copier.child

    async def _stop(self, copier: _CopierChild) -> None:
        if copier.child is not None:
            code = await copier.child.stop()
            self._testbed.tracer.emit("process_ended", target=copier.name, how="stop", code=code)
