"""The testbed of a run: ZooKeeper, brokers, topics, load, a bystander. It is stopped whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from comparison.scenarios.plan.targets import COORDINATOR
from comparison.scenarios.processes.children import ChildFailed, ChildProcess
from comparison.scenarios.processes.gathering import gather_all, gather_or_cancel
from comparison.scenarios.testbed.baseline import measure_baseline
from comparison.scenarios.testbed.bystander import BystanderChild
from comparison.scenarios.testbed.cluster_access import ClusterAccess
from comparison.scenarios.testbed.load import Load
from comparison.scenarios.testbed.proxy import LOOPBACK, TcpProxy
from comparison.scenarios.testbed.zookeeper_bed import ZooKeeperBed
from kernel.designs import DESIGNS
from kernel.errors import Unavailable, UserError
from kernel.platform.ports import KEPT, ReservedPorts
from kernel.tasks import cancel_and_wait
from kernel.trace.events import Role
from kernel.values import TopicPartition
from kernel.waiting import until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.run_folder import RunRecord
    from comparison.scenarios.plan.request import RunRequest
    from comparison.scenarios.processes.children import OnEvent, Processes
    from comparison.scenarios.testbed.lent import LentEnsemble
    from kernel.runtime import Runtime
    from kernel.trace.writer import Tracer

BROKER_MODULE = "comparison.scenarios.processes.broker_process"
_START_S = 60.0
#: The coordinating broker in runs where that matters. In split-brain runs the first broker leads every topic.
COORDINATING_BROKER = 2


class BrokerChild:
    """One broker process and its port."""

    def __init__(self, node_id: int, runtime: Runtime) -> None:
        self._runtime = runtime
        self.node_id = node_id
        self.name = f"broker-{node_id}"
        self.port = 0
        self.error = ""
        self.killed = False
        self.lives = 1
        self.child: ChildProcess | None = None
        self._own_port = 0
        self._reserved: ReservedPorts | None = None

    def own_port(self, *, is_proxied: bool) -> int:
        """The port on which all of its processes listen; 0 if the first one is to choose it.

        It does where ports cannot be kept, unless a proxy must know the port before.
        """
        if not self._own_port and (KEPT or is_proxied):
            self._reserved = self._runtime.edge(ReservedPorts)(1)
            (self._own_port,) = self._reserved.numbers
        return self._own_port

    def release(self) -> None:
        """Give up the port that was reserved for it."""
        if self._reserved is not None:
            self._reserved.release()

    @property
    def life(self) -> str:
        """The name of its present process: the broker's, with a number from the second one on."""
        return self.name if self.lives == 1 else f"{self.name}.{self.lives}"

    def heard(self, event: Mapping[str, object]) -> None:
        if event.get("event") == "ready":
            self.port = int(str(event["port"]))  # the one that it advertises, which may be a proxy's
            self._own_port = self._own_port or self.port
        elif event.get("event") == "failed":
            self.error = str(event["error"])

    def serves(self) -> bool:
        """True when ready; raises `ChildFailed` if startup failed."""
        assert self.child is not None
        if self.error:
            raise ChildFailed(f"{self.name} did not start: {self.error}")
        if self.child.returncode is not None:
            raise self.child.failure("starting")
        return self.port > 0


class Testbed:
    """All parts of a run except its members."""

    def __init__(
        self,
        request: RunRequest,
        processes: Processes,
        tracer: Tracer,
        proxy_tracer: Tracer,
        record: RunRecord,
        lent: LentEnsemble | None = None,
    ) -> None:
        self.request = request
        self.record = record
        self._processes = processes
        self.runtime = processes.runtime
        self.tracer = tracer
        self.zookeeper = ZooKeeperBed(request, tracer, proxy_tracer, record, processes.runtime, lent)
        self.brokers = [BrokerChild(number, processes.runtime) for number in range(1, request.parameters.brokers + 1)]
        self.partitions = tuple(
            TopicPartition(topic, number)
            for topic in request.parameters.topic_names
            for number in range(request.parameters.partitions)
        )
        self.group = "lab"
        self.baseline: dict[str, float] = {}
        #: Only where members are cut off from it: the proxy in front of the coordinating broker.
        self.coordinator_proxy: TcpProxy | None = (
            TcpProxy("coordinating-broker", proxy_tracer) if request.coordinator_is_proxied else None
        )
        #: The same in front of the first broker, which then leads every topic.
        self.data_proxy: TcpProxy | None = TcpProxy("data", proxy_tracer) if request.data_is_proxied else None
        #: Only in runs that measure what others notice.
        self.bystander: BystanderChild | None = (
            BystanderChild(request, tracer, record, self.spawn) if request.has_bystander else None
        )
        self._access: ClusterAccess | None = None
        self._load: Load | None = None
        self._loading: asyncio.Task[None] | None = None

    @property
    def coordinating_broker(self) -> BrokerChild:
        """The broker of `COORDINATING_BROKER`, or the first other one while that is dead; in zookeeper it coordinates
        nothing.
        """
        planned = next(broker for broker in self.brokers if broker.node_id == COORDINATING_BROKER)
        return next((broker for broker in (planned, *self.brokers) if not broker.killed), planned)

    async def coordinating_now(self) -> BrokerChild:
        """The broker that the others say coordinates the group; if nobody says, the one that should."""
        if DESIGNS[self.request.design].coordinator:
            with contextlib.suppress(Unavailable):
                node_id = await self.access.coordinator(self.group)
                return next(broker for broker in self.brokers if broker.node_id == node_id)
        return self.coordinating_broker

    @property
    def access(self) -> ClusterAccess:
        assert self._access is not None, "not started"
        return self._access

    @property
    def load(self) -> Load:
        assert self._load is not None, "not started"
        return self._load

    @property
    def bootstrap(self) -> str:
        """The brokers that are not behind a proxy; the first one if all are."""
        direct = [broker.port for broker in self.brokers if self._proxy_of(broker) is None]
        if not direct and self.data_proxy is not None:
            direct = [self.data_proxy.port]
        return ",".join(f"{LOOPBACK}:{port}" for port in direct)

    async def start(self) -> None:
        """Start everything, the load last. Raises a `RebalanceLabError` when a part does not start."""
        await gather_or_cancel(self.zookeeper.start(), *(self._spawn(broker) for broker in self.brokers))
        self.baseline = await measure_baseline(self.zookeeper.connect_for_member(victim=False), self.runtime)
        for broker in self.brokers:
            await self._configure(broker)
            if self.request.coordinator_is_proxied:
                # One after the other, so that the first one is the controller; it stays with the majority.
                await self._until_served([broker])
        await self._until_served(self.brokers)
        self._access = await ClusterAccess.open(self.bootstrap, self.runtime.clock)
        await self._make_topics()
        await self.zookeeper.observe(self.group, self.partitions)
        if self.bystander is not None:
            await self.bystander.start(self.zookeeper.connect_for_member(victim=False))
        self._load = Load(self._access, self.partitions, self.request.parameters.rate, self.tracer)
        self._loading = asyncio.create_task(self._load.run(), name="load")

    def check(self) -> None:
        """Raise the error of a part that should keep running but has failed."""
        if self._loading is not None and self._loading.done() and not self._loading.cancelled():
            error = self._loading.exception()
            if error is not None:
                raise Unavailable(f"the load has failed: {error}") from error
        for broker in self.brokers:
            if broker.child is not None and broker.child.returncode is not None and not broker.killed:
                raise broker.child.failure("serving")
        if self.bystander is not None:
            self.bystander.check()

    async def kill_broker(self, broker: BrokerChild) -> None:
        """Kill a broker (SIGKILL); it is not restarted."""
        assert broker.child is not None
        broker.killed = True
        code = await broker.child.kill()
        self.tracer.emit("process_ended", target=broker.life, how="kill", code=code)
        self.record.killed(broker.life)

    async def stop_broker(self, broker: BrokerChild) -> None:
        """Shut a broker down cleanly."""
        broker.killed = True
        assert broker.child is not None
        code = await broker.child.stop()
        self.tracer.emit("process_ended", target=broker.life, how="stop", code=code)

    async def start_again(self, broker: BrokerChild) -> None:
        """Start a new process for a broker that has ended, with its data and its port, and wait until it serves."""
        broker.lives += 1
        broker.port = 0
        await self._spawn(broker)
        broker.killed = False
        await self._configure(broker)
        await self._until_served([broker])

    def broker(self, target: str) -> BrokerChild:
        """The broker that a fault names: `coordinator` or `broker-<n>`."""
        name = self.coordinating_broker.name if target == COORDINATOR else target
        found = next((broker for broker in self.brokers if broker.name == name), None)
        if found is None:
            raise UserError(f"there is no {name} to inject a fault into")
        return found

    async def grow_topic(self, topic: str, partitions: int) -> list[TopicPartition]:
        """Grow a topic to `partitions` partitions; the new ones, which the load uses at once."""
        before = sum(tp.topic == topic for tp in self.partitions)
        await self.access.create_partitions(topic, partitions, self._replicas(before, partitions))
        return self._use(topic, before, partitions)

    async def create_topic(self, topic: str, partitions: int, *, used: bool = True) -> list[TopicPartition]:
        """Create a topic; its partitions, which the load uses at once, or not at all."""
        await self.access.create_topic(topic, self._replicas(0, partitions))
        return self._use(topic, 0, partitions) if used else []

    async def delete_topic(self, topic: str) -> None:
        """Stop writing to a topic, and delete it with all its records."""
        self.partitions = tuple(tp for tp in self.partitions if tp.topic != topic)
        await self.load.leave_out(topic)
        await self.access.delete_topic(topic)

    def _use(self, topic: str, before: int, partitions: int) -> list[TopicPartition]:
        new = [TopicPartition(topic, number) for number in range(before, partitions)]
        self.partitions += tuple(new)
        self.load.grow(new)
        self.zookeeper.observe_more(new)
        return new

    async def end_load(self) -> None:
        """Stop producing, and wait until everything sent is acknowledged."""
        self.load.stop()
        if self._loading is not None:
            await self._loading

    async def stop_bystander(self, *, at_once: bool = False) -> None:
        if self.bystander is not None:
            await self.bystander.stop(at_once=at_once)

    async def stop_brokers(self, *, at_once: bool = False) -> None:
        """Stop the load and the brokers that were started; `at_once` kills them."""
        await cancel_and_wait(self._loading)
        if self._access is not None:
            await self._access.close()
        await gather_all(*(self._stop(broker, at_once=at_once) for broker in self.brokers))
        for proxy in (self.coordinator_proxy, self.data_proxy):
            if proxy is not None:
                await proxy.stop()

    def heal_links(self) -> None:
        """Heal the links to the brokers, whatever was done to them."""
        for proxy in (self.coordinator_proxy, self.data_proxy):
            if proxy is not None:
                proxy.heal()

    def _proxy_of(self, broker: BrokerChild) -> TcpProxy | None:
        proxies = {COORDINATING_BROKER: self.coordinator_proxy, 1: self.data_proxy}
        return proxies.get(broker.node_id)

    def _uses_cut_server(self, broker: BrokerChild) -> bool:
        """Whether this broker uses the server that is cut off: the coordinating one, in split-brain-ensemble."""
        if self.request.scenario.brokers_on_cut_server:
            return True
        coordinator = DESIGNS[self.request.design].coordinator
        return self.request.cuts_ensemble and coordinator and broker.node_id == COORDINATING_BROKER

    async def _spawn(self, broker: BrokerChild) -> None:
        broker.child = await self.spawn(BROKER_MODULE, broker.life, broker.heard)

    async def spawn(self, module: str, name: str, heard: OnEvent) -> ChildProcess:
        """Start `module.main()` in a process of that name, which waits for its configuration."""
        log = self.request.run_dir / f"{name}.log"
        child = await ChildProcess.spawn(self._processes, module, name, log, heard)
        self.tracer.emit("process_started", target=name, child_pid=child.pid)
        return child

    async def _configure(self, broker: BrokerChild) -> None:
        assert broker.child is not None
        proxy = self._proxy_of(broker)
        port = broker.own_port(is_proxied=proxy is not None)
        settings = {**self.request.configuration.broker, "broker.id": str(broker.node_id), "port": str(port)}
        if proxy is not None:
            if not proxy.port:
                await proxy.start(port)
            settings["advertised.listeners"] = f"PLAINTEXT://{LOOPBACK}:{proxy.port}"
        self.record.add_traces(Role.BROKER, [broker.life])
        broker.child.send(
            {
                **self.request.identity(broker.life),
                "zookeeper": self.zookeeper.connect_for_broker(on_cut_server=self._uses_cut_server(broker)),
                "data_dir": str(self.request.run_dir / "data"),
                "settings": settings,
            }
        )

    async def _until_served(self, brokers: list[BrokerChild]) -> None:
        names = ", ".join(broker.name for broker in brokers)
        await until(lambda: all(broker.serves() for broker in brokers), _START_S, f"{names} to serve")

    def _replicas(self, first: int, after: int) -> list[list[int]]:
        """Replicas of a topic's partitions first..after-1, with leaders round-robin over the brokers.

        Where members are cut off from the coordinating broker, the first one leads them all.
        """
        nodes = [broker.node_id for broker in self.brokers]
        orders = [nodes] if self.request.coordinator_is_proxied else [nodes[i:] + nodes[:i] for i in range(len(nodes))]
        return [orders[number % len(orders)] for number in range(first, after)]

    async def _make_topics(self) -> None:
        parameters = self.request.parameters
        for topic in parameters.topic_names:
            await self.access.create_topic(topic, self._replicas(0, parameters.partitions))
            wanted = parameters.partitions if self.request.wants(topic) else 0
            self.tracer.emit("topic_wanted", topic=topic, wanted=wanted)
        if not DESIGNS[self.request.design].coordinator:
            return
        if self.request.group_is_placed:
            self.group = await self.access.group_coordinated_by(COORDINATING_BROKER)
        else:
            # The first FindCoordinator creates __consumer_offsets, so that no member has to wait for it.
            await self.access.coordinator(self.group)

    async def _stop(self, broker: BrokerChild, *, at_once: bool) -> None:
        try:
            if broker.child is not None and not broker.killed:
                code = await broker.child.stop(at_once=at_once)
                self.tracer.emit("process_ended", target=broker.life, how="stop", code=code)
        finally:
            broker.release()
