"""A member as a process: consumers of one design that take commands and report events as JSON lines.

Standard input: one line of configuration (`MemberConfig`), then one command a line:

- `{"command": "join"}`: start one more member in this process, with the configured topics;
- `{"command": "pause_consumption"}`, `{"command": "resume"}`: stop polling; continue;
- `{"command": "commit"}`: commit what was delivered, on every member of the process;
- `{"command": "commit", "remembered": true}`: commit the positions that the application remembers, as an application
  does that processes records at its own pace. They include partitions that the consumer may have lost meanwhile, but
  not those that were revoked in order, for which the application had time to commit;
- `{"command": "subscribe", "topics": {"t": 1}}`: every member of the process subscribes to these topics instead;
- `{"command": "trouble_listener", "callback": "revoked", "for_ms": 3000}`: its listener misbehaves (`Trouble`);
- `{"command": "pause_partitions", "on": true}`: every member pauses what it owns, or resumes what it has paused;
- `{"command": "delay", "per_record_ms": 20}`: spend so long on each record that is delivered; 0 ends that;
- `{"command": "step", "on": true}`: wait before each ZooKeeper operation, and report it (zookeeper only);
- `{"command": "let_go"}`: perform the operation that waits;
- `{"command": "halt_at", "kind": "phase_entered", "field": "phase", "value": "claim"}`: stop this process (SIGSTOP)
  when it has traced such an event;
- `{"command": "leave"}`: leave the group as the design does, and exit;
- `{"command": "stop"}`: the same, as is the end of the input.

Standard output: the trace events that the runner needs (`REPORTED`, and who decides in a group), as JSON lines,
`WAITING` of a member that is stepped, `POLLING_STOPPED` when the last poll has returned after `pause_consumption`, and
`NEVER_JOINS` of a member that could not start. `REFUSED` says that the group has refused a member for good: its
application ends with the error, as one does that does not catch it, so the consumer is closed and asks no more. The
process stays, for its other members, and until it is told to leave.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from comparison.consumers import CONSUMERS, ConsumerRequest, subscribe_by_regex
from comparison.logs import set_inherited_level
from comparison.scenarios.processes.application import Breakage, ListenerBroken, Memory, Trouble
from comparison.scenarios.processes.child_trace import ChildConfig, ChildTrace, Halt
from comparison.scenarios.processes.host import Host
from comparison.scenarios.processes.lines import NEVER_JOINS, POLLING_STOPPED, REFUSED, WAITING, configured
from kernel.errors import RebalanceLabError, RefusedForGood
from kernel.tasks import cancel_and_wait
from kernel.trace.events import Role
from kernel.zookeeper.stepping import StepGate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence

    from kernel.consumer import GroupConsumer
    from kernel.values import Batch, TopicPartition
    from kernel.zookeeper.operations import Operation

#: Events that go to standard output as well as to the trace.
REPORTED = frozenset(
    {
        "member_started",
        "member_closed",
        "member_failed",
        "rebalance_started",
        "rebalance_ended",
        "partitions_assigned",
        "partitions_revoked",
        "partitions_lost",
        "position_reset",
        "records_delivered",
        "commit_answered",
        "session_changed",
    }
)

POLL_MS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberConfig(ChildConfig):
    """The first line."""

    group: str
    topics: dict[str, int]  #: number of streams of each topic
    pattern: str = ""  #: instead of topics, a regular expression as `subscribe_by_regex` takes it
    streams: int = 1  #: of the pattern
    zookeeper: str
    bootstrap: str  #: host:port,...
    settings: dict[str, str] = field(default_factory=dict)  #: by Kafka's names
    members: int = 1  #: consumers to start at once
    consumer: str = ""  #: the design of its consumers, if it is not the run's
    place: str = ""  #: where the process is deployed; a process started in its place has the same
    named: bool = False  #: whether its consumers have a name of their own, whatever their design


class Members:
    """The consumers of this process, each with a task that polls."""

    def __init__(self, config: MemberConfig, tracer: ChildTrace, host: Host) -> None:
        self.halt_at = tracer.halt_at
        self.step_clock = host.step_clock
        self._host = host
        self._config = config
        self._tracer = tracer
        self._polls: dict[asyncio.Task[None], GroupConsumer] = {}
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._polls_under_way = 0
        self._delay_s = 0.0  #: for each record
        self._delay_changed = asyncio.Event()
        self.gate = StepGate(self._waits)
        self._requests: set[asyncio.Task[None]] = set()  #: commits and subscriptions under way
        self._memories: dict[GroupConsumer, Memory] = {}
        self.breakage = Breakage()
        self._subscribed = asyncio.Event()
        self._subscribed.set()
        self._topics: Mapping[str, int] = config.topics
        self._pattern = config.pattern

    def join(self) -> None:
        """Start one more member. When it fails, the process emits `member_failed` and goes on."""
        number = len(self._polls)
        consumer = self._new_consumer(number)
        task = asyncio.create_task(self._poll(consumer, number), name=f"poll {number}")
        self._polls[task] = consumer

    def _new_consumer(self, number: int) -> GroupConsumer:
        instance = f"{self._config.place or self._config.process}-{number}"
        named = {CONSUMERS[self._design].name_setting: instance} if self._config.named else {}
        request = ConsumerRequest(
            process=self._config.process,
            group=self._config.group,
            zookeeper=self._config.zookeeper,
            bootstrap=self._config.bootstrap,
            settings={**named, **self._config.settings},
            client_id=f"{self._config.process}-{number}",
            instance=instance,
            gate=self.gate,
            runtime=self._host.runtime,
        )
        consumer = CONSUMERS[self._design].consumer(request, self._tracer)
        self._memories[consumer] = Memory(self.breakage, partial(self._commit, consumer, None))
        return consumer

    @property
    def _design(self) -> str:
        return self._config.consumer or self._config.design

    @property
    def _polling(self) -> list[GroupConsumer]:
        """The consumers that no group has refused."""
        return [consumer for task, consumer in self._polls.items() if not task.done()]

    def pause(self) -> None:
        self._flowing.clear()
        self._report_if_stopped()

    def resume(self) -> None:
        self._flowing.set()

    def delay(self, per_record_ms: int) -> None:
        """Spend so long on each record; applies at once, also to records that are being processed."""
        self._delay_s = per_record_ms / 1000
        self._delay_changed.set()

    def pause_partitions(self, *, on: bool) -> None:
        """Pause every partition that these members own, or resume those that are paused."""
        for consumer in self._polling:
            if on:
                consumer.pause(frozenset().union(*consumer.assignment().values()))
            else:
                consumer.resume(consumer.paused())

    def _waits(self, operation: Operation | None, behind: int) -> None:
        about = {} if operation is None else {"op": operation.op, "path": operation.path, "step": operation.step}
        self._host.write({"kind": WAITING, "process": self._config.process, "behind": behind, **about})

    def commit(self, *, remembered: bool = False) -> None:
        """Have every member commit, without waiting: a frozen or cut one may take long."""
        if not self._subscribed.is_set():
            return
        for consumer in self._polling:
            offsets = None  # everything delivered
            known = self._memories[consumer].positions
            if remembered and known and consumer.capabilities.commit_single_partitions:
                offsets = dict(known)
            self._request(self._commit(consumer, offsets))

    def unsubscribe(self) -> None:
        """Have every member unsubscribe after the poll under way, until `subscribe_again`."""
        self._subscribed.clear()

    def subscribe_again(self) -> None:
        self._subscribed.set()

    def subscribe(self, topics: Mapping[str, int], pattern: str) -> None:
        """Have every member subscribe to these topics, or by this pattern, without waiting.

        Those that have unsubscribed do it later.
        """
        self._topics, self._pattern = topics, pattern
        for consumer in self._polling if self._subscribed.is_set() else ():
            self._request(self._subscribe(consumer))

    def _request(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def leave(self) -> None:
        """Stop polling, then close all members at the same time."""
        self.gate.open()
        await cancel_and_wait(*self._polls)
        await asyncio.gather(*(self._close(consumer) for consumer in self._polls.values()))
        await cancel_and_wait(*self._requests)

    async def _poll(self, consumer: GroupConsumer, number: int) -> None:
        """Poll until the group refuses the member for good, or the task is cancelled."""
        try:
            await self._poll_on(consumer, number)
        except RefusedForGood as refusal:
            await self._close(self._polls[_this_task()])
            self._host.write({"kind": REFUSED, "process": self._config.process, "error": str(refusal)})

    async def _poll_on(self, consumer: GroupConsumer, number: int) -> None:
        await self._begin(consumer)
        while True:
            await self._flowing.wait()
            if not self._subscribed.is_set():
                consumer = await self._stay_away(consumer, number)
                continue
            try:
                batches = await self._polled(consumer)
            except RefusedForGood:
                raise
            except (RebalanceLabError, ListenerBroken) as error:
                self._failed(error)
                await asyncio.sleep(POLL_MS / 1000)
            else:
                self._memories[consumer].add(batches)
                await self._process(sum(len(batch.records) for batch in batches))

    async def _polled(self, consumer: GroupConsumer) -> Sequence[Batch]:
        self._polls_under_way += 1
        try:
            return await consumer.getmany(timeout_ms=POLL_MS)
        finally:
            self._polls_under_way -= 1
            self._report_if_stopped()

    def _report_if_stopped(self) -> None:
        if not self._flowing.is_set() and not self._polls_under_way:
            self._host.write({"kind": POLLING_STOPPED, "process": self._config.process})

    async def _begin(self, consumer: GroupConsumer) -> None:
        try:
            await consumer.start()
            await self._subscribe_now(consumer)
        except RefusedForGood:
            raise
        except (RebalanceLabError, ListenerBroken) as error:
            # An 0.8 member stays registered after a failed rebalance and goes on, as the original did.
            self._failed(error)
            if not consumer.member_ids:
                self._host.write({"kind": NEVER_JOINS, "process": self._config.process, "error": str(error)})

    async def _stay_away(self, consumer: GroupConsumer, number: int) -> GroupConsumer:
        """Unsubscribe, and subscribe again when that is wanted; the consumer, or the one that replaces it.

        An 0.8 consumer cannot unsubscribe: its application shuts it down, and creates another one.
        """
        resubscribes = consumer.capabilities.resubscribe
        try:
            await (consumer.unsubscribe() if resubscribes else consumer.close())
        except (RebalanceLabError, ListenerBroken) as error:
            self._failed(error)
        await self._subscribed.wait()
        if resubscribes:
            await self._subscribe(consumer)
            return consumer
        replacing = self._polls[_this_task()] = self._new_consumer(number)
        await self._begin(replacing)
        return replacing

    async def _process(self, records: int) -> None:
        """Spend the delay of so many records, or less if it is changed meanwhile."""
        if not self._delay_s:
            return
        self._delay_changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(records * self._delay_s):  # 3.11's wait_for may forget a cancellation (gh-86296)
                await self._delay_changed.wait()

    async def _commit(self, consumer: GroupConsumer, offsets: Mapping[TopicPartition, int] | None) -> None:
        try:
            await consumer.commit(offsets)
        except RebalanceLabError as error:
            self._failed(error)

    async def _subscribe_now(self, consumer: GroupConsumer) -> None:
        listener = self._memories[consumer]
        if self._pattern:
            await subscribe_by_regex(consumer, self._design, self._pattern, self._config.streams, listener)
        else:
            await consumer.subscribe(self._topics, listener)

    async def _subscribe(self, consumer: GroupConsumer) -> None:
        try:
            await self._subscribe_now(consumer)
        except (RebalanceLabError, ListenerBroken) as error:
            self._failed(error)

    async def _close(self, consumer: GroupConsumer) -> None:
        try:
            await consumer.close()
        except (RebalanceLabError, ListenerBroken) as error:
            self._failed(error)

    def _failed(self, error: RebalanceLabError | ListenerBroken) -> None:
        self._tracer.emit("member_failed", error=f"{type(error).__name__}: {error}")


def _this_task() -> asyncio.Task[None]:
    task = asyncio.current_task()
    assert task is not None
    return task


#: What a line commands, besides `leave` and `stop`.
COMMANDS: Mapping[str, Callable[[Members, Mapping[str, object]], None]] = MappingProxyType(
    {
        "join": lambda members, _: members.join(),
        "pause_consumption": lambda members, _: members.pause(),
        "resume": lambda members, _: members.resume(),
        "commit": lambda members, line: members.commit(remembered=line.get("remembered") is True),
        "subscribe": lambda members, line: members.subscribe(
            msgspec.convert(line.get("topics"), dict[str, int]), str(line.get("pattern"))
        ),
        "unsubscribe": lambda members, _: members.unsubscribe(),
        "subscribe_again": lambda members, _: members.subscribe_again(),
        "trouble_listener": lambda members, line: members.breakage.change(msgspec.convert(line, Trouble)),
        "pause_partitions": lambda members, line: members.pause_partitions(on=line.get("on") is True),
        "step_clock": lambda members, line: members.step_clock(msgspec.convert(line.get("by_ms"), int)),
        "delay": lambda members, line: members.delay(msgspec.convert(line.get("per_record_ms"), int)),
        "step": lambda members, line: members.gate.step() if line.get("on") is True else members.gate.open(),
        "let_go": lambda members, _: members.gate.let_go(),
        "halt_at": lambda members, line: members.halt_at(msgspec.convert(line, Halt)),
    }
)


async def perform_commands(lines: AsyncIterator[Mapping[str, object]], members: Members) -> None:
    """Perform commands until one is `leave` or `stop`, or the input ends."""
    async for line in lines:
        command = str(line.get("command"))
        if command in ("leave", "stop"):
            return
        if command in COMMANDS:
            COMMANDS[command](members, line)
        else:
            sys.stderr.write(f"unknown command {command!r}\n")


async def run(host: Host) -> None:
    lines = host.lines()
    config = await configured(lines, MemberConfig)
    if config is None:
        return

    def report(event: Mapping[str, object]) -> None:
        if event["kind"] in REPORTED or (event["kind"] == "phase_entered" and event["phase"] == "decide"):
            host.write(event)

    tracer = ChildTrace(config, Role.MEMBER, host, tee=report)
    members = Members(config, tracer, host)
    performing = asyncio.create_task(perform_commands(lines, members))
    host.on_termination(performing.cancel)
    for _ in range(config.members):
        members.join()
    await asyncio.wait([performing])
    await members.leave()
    tracer.close()


def main() -> None:
    set_inherited_level()
    asyncio.run(run(Host()))


if __name__ == "__main__":
    main()
