"""The step in which an application copies records, is held back halfway, replaced, and goes on."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from comparison.scenarios.testbed.copying import Copier, read_all, read_first
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from comparison.scenarios.plan.vocabulary import CopyWithZombie
    from comparison.scenarios.run.changes import Changes

COPY, IN_TRANSACTIONS = "copy", "transactional copy"


class CopySteps:
    """Performs the steps in which records are copied from the group's topic to another one."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._testbed = changes.testbed
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
        origin = TopicPartition(self._testbed.request.parameters.topic_names[0], 0)
        values = await read_first(access.client, origin, step.records)
        half = len(values) // 2
        name = f"{topic}-copier" if step.transactions else ""
        zombie, successor = Copier(access.client, name), Copier(access.client, name)
        await zombie.begin()
        await zombie.add(to)
        await zombie.write(to, values[:half])
        tracer.emit("fault_started", fault="held-back", target="copier")
        # Nothing of it was committed, so the one that replaces it starts again from the first record.
        await successor.begin()
        await successor.add(to)
        await successor.write(to, values)
        await successor.commit()
        tracer.emit("fault_ended", fault="held-back", target="copier")
        late_write, late_commit = await zombie.write(to, values[half:]), await zombie.commit()
        read = Counter(await read_all(access.client, to))
        found = {
            "transactions": step.transactions,
            "records": len(values),
            "copied": sum(1 for value in values if read[value]),
            "twice": sum(1 for value in values if read[value] > 1),
            "late_write": late_write,
            "late_commit": late_commit,
        }
        tracer.emit("copies_read", detail=found)
