"""The ZooKeeper of one run: one server, an ensemble whose links can be cut, or one that is not ours.

Ours are child processes or containers; either way every fault can be injected, and the transaction log is at hand.
"""

from __future__ import annotations

import asyncio
import contextlib
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar

from comparison.scenarios.plan.presets import ZOOKEEPER_SESSION_MS, ZOOKEEPER_TICK_MS
from comparison.scenarios.plan.targets import TargetKind
from comparison.scenarios.plan.vocabulary import Hold
from comparison.scenarios.processes.bystander_process import NAMESPACE as BYSTANDERS
from comparison.scenarios.testbed.chroot import chroot_name, make_chroot, remove_chroot
from comparison.scenarios.testbed.given_log import GivenLog
from comparison.scenarios.testbed.live_observer import LiveObserver
from comparison.scenarios.testbed.observed_offsets import OffsetWrite, answered_in, merged, missing
from comparison.scenarios.testbed.observer import ReplayClock, write_observed, write_offsets
from comparison.scenarios.testbed.proxy import LOOPBACK, TcpProxy
from comparison.scenarios.testbed.quorum import SERVERS, QuorumProxies
from kernel.designs import DESIGNS
from kernel.errors import EnvironmentFault, RebalanceLabError, Unavailable, UserError
from kernel.tasks import cancel_and_wait
from kernel.trace.events import Role
from kernel.trace.writer import TraceIdentity, TraceWriter
from kernel.zookeeper.counters import read_counters
from kernel.zookeeper.servers import Limits, connect_string, follower_of, leader_of
from kernel.zookeeper.target import make_servers, parse_target, require_serving
from kernel.zookeeper.txnlog import read_ensemble

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from comparison.run_folder import RunRecord
    from comparison.scenarios.plan.request import RunRequest
    from comparison.scenarios.testbed.lent import LentEnsemble
    from kernel.runtime import Runtime
    from kernel.trace.writer import Tracer
    from kernel.values import TopicPartition
    from kernel.zookeeper.servers import Server
    from kernel.zookeeper.target import ZooKeeperTarget
    from kernel.zookeeper.txnlog import Transaction

#: A server that is cut off waits this much longer than the cut before it notices: a split brain requires that.
_UNNOTICED_MS = 2000
#: A reading that takes longer leaves open what was counted before it, and is repeated; on a busy machine in vain.
_READING_NS_MAX, _READINGS_MAX = 40_000_000, 25
#: How long a server that is paused may take to report them.
_COUNTERS_S = 30.0
_CLIENTS = frozenset({TargetKind.MEMBER_AUTHORITY, TargetKind.BROKER_ZOOKEEPER, TargetKind.NETWORK})

Made = TypeVar("Made")


class ZooKeeperBed:
    """Starts, heals and stops ZooKeeper, reads its counters, and writes the observer's trace."""

    def __init__(
        self,
        request: RunRequest,
        tracer: Tracer,
        proxy_tracer: Tracer,
        record: RunRecord,
        runtime: Runtime,
        lent: LentEnsemble | None = None,
    ) -> None:
        self._record = record
        self._runtime = runtime
        self._request = request
        self._tracer = tracer
        self._lent = lent
        self._proxies = runtime.edge(QuorumProxies)(proxy_tracer) if request.split_brain and lent is None else None
        #: Only in a game: the proxy between the members and the server.
        self.member_proxy: TcpProxy | None = TcpProxy("zookeeper", proxy_tracer) if request.played else None
        #: Only in front of the servers of a run with faults of its clients' links: by server.
        self.client_proxies: dict[int, TcpProxy] = {}
        self._proxy_tracer = proxy_tracer
        self._opened = contextlib.ExitStack()
        self._opening: asyncio.Future[Any] | None = None
        self._given_up = Event()
        self.servers: tuple[Server, ...] = ()
        self._addresses: tuple[tuple[str, int], ...] = ()
        self.connect_string = ""
        self._chroot = ""  #: in a lent ensemble
        self.cut_server: Server | None = None  #: the follower that a split-brain run cuts off
        self._given_log = GivenLog(request.zookeeper_logs) if request.zookeeper_logs else None
        self._readmitting: list[asyncio.Task[None]] = []
        self._observer: LiveObserver | None = None
        self._observer_trace: TraceWriter | None = None

    async def start(self) -> None:
        """Raises `UserError` if the scenario needs an ensemble of ours and was given another ZooKeeper."""
        if self._lent is not None:
            await self._borrow(self._lent)
            return
        target = parse_target(self._request.zookeeper)
        if target.ours:
            await self._start_ours(target)
            return
        if self._proxies is not None:
            raise UserError(
                f"{self._request.scenario.name} cuts links between servers: it needs the embedded ZooKeeper or docker"
            )
        await self._runtime.threads.run(require_serving, target)
        # Not ours: a chroot of our own, and no counters, which include other clients.
        self.connect_string = await make_chroot(target.connect_string, chroot_name(self._request.run))
        await self._start_client_proxies(target.addresses)
        if self._given_log is not None:
            await self._given_log.begin(self.connect_string)

    async def _start_ours(self, target: ZooKeeperTarget) -> None:
        servers = self._runtime.edge(make_servers)(
            target,
            self._request.run_dir,
            limits=Limits(
                tick_ms=ZOOKEEPER_TICK_MS,
                min_session_ms=ZOOKEEPER_SESSION_MS[0],
                max_session_ms=ZOOKEEPER_SESSION_MS[1],
                **({"sync_limit": self._sync_limit} if self._proxies is not None else {}),
            ),
            ensemble=self._proxies is not None,
            quorum_links=None if self._proxies is None else self._proxies.ports,
            given_up=self._given_up,
        )
        self._opened.callback(servers.stop)
        if self._proxies is not None:
            host = await self._in_thread(servers.reach)
            try:
                await self._proxies.start(host)
            except OSError as error:
                raise EnvironmentFault(
                    f"this machine does not have the address {host} of the containers' network ({error.strerror}): the "
                    "Docker engine runs elsewhere, so that links between servers cannot be broken. Use the embedded "
                    "ZooKeeper."
                ) from error
            for number in SERVERS:
                self._readmit(self._proxies, number, lambda: servers.servers)
        await self._in_thread(servers.start)
        await self._stop_readmitting()
        self.servers, self.connect_string = servers.servers, connect_string(servers.servers)
        self._addresses = tuple((server.host, server.client_port) for server in self.servers)
        if self.member_proxy is not None:
            self.member_proxy.upstream_host = self.servers[0].host
            await self.member_proxy.start(self.servers[0].client_port)
        await self._start_client_proxies(self._addresses)
        if self._proxies is not None:
            self.cut_server = await self._runtime.threads.run(self._runtime.edge(follower_of), self.servers)

    @property
    def _sync_limit(self) -> int:
        return (self.cut_ms + _UNNOTICED_MS) // ZOOKEEPER_TICK_MS

    async def _borrow(self, lent: LentEnsemble) -> None:
        lent.runs += 1
        self.connect_string = await make_chroot(lent.connect_string, chroot_name(self._request.run))
        self._chroot = self.connect_string.removeprefix(lent.connect_string)
        self.servers = lent.servers
        if not DESIGNS[self._request.design].coordinator:
            self._given_log = GivenLog([server.data_dir for server in lent.servers])
            await self._given_log.begin(self.connect_string)
        await self._start_client_proxies([(server.host, server.client_port) for server in self.servers])
        self.cut_server = await self._runtime.threads.run(self._runtime.edge(follower_of), self.servers)

    async def _start_client_proxies(self, addresses: Sequence[tuple[str, int]]) -> None:
        """Proxies in front of the servers, by number."""
        if _CLIENTS.isdisjoint(self._request.links):
            return
        for number, (host, port) in enumerate(addresses, start=1):
            proxy = self.client_proxies[number] = TcpProxy(f"clients->{number}", self._proxy_tracer)
            proxy.upstream_host = host
            await proxy.start(port)

    def _address(self, server: Server) -> str:
        proxy = self.client_proxies.get(server.number)
        return server.address if proxy is None else f"{LOOPBACK}:{proxy.port}"

    async def _in_thread(self, make: Callable[[], Made]) -> Made:
        """Call what blocks on a thread: the proxies between the servers run on this loop.

        A thread cannot be cancelled, so `stop` makes it give up and waits for it. Otherwise it would leave a server
        behind.
        """
        making = asyncio.ensure_future(self._runtime.threads.run(make))
        self._opening = making
        return await asyncio.shield(making)

    @property
    def cut_ms(self) -> int:
        """The length of this scenario's cut."""
        steps = self._request.scenario.steps
        overs = [getattr(step, "over_ms", 0) for step in steps]
        held_ms = sum(step.ms for step in steps if isinstance(step, Hold))
        made = self._request.configuration
        return max(made.session_ms + made.delay_ms + max(overs), held_ms)

    def connect_for_member(self, *, victim: bool) -> str:
        """A member's connect string: for the victim only the server that is cut off, for others only the majority."""
        if self.member_proxy is not None:
            return f"{LOOPBACK}:{self.member_proxy.port}"
        if self.cut_server is None:
            return self._all_servers()
        if victim and self._request.victim_on_cut_server:
            return self._address(self.cut_server) + self._chroot
        return self._majority()

    def connect_for_broker(self, *, on_cut_server: bool) -> str:
        """A broker's connect string: one that uses the server that is cut off knows only that one."""
        if self.cut_server is None:
            return self._all_servers()
        return self._address(self.cut_server) + self._chroot if on_cut_server else self._majority()

    def _all_servers(self) -> str:
        if not self.client_proxies:
            return self.connect_string
        _, slash, chroot = self.connect_string.partition("/")
        return ",".join(f"{LOOPBACK}:{proxy.port}" for proxy in self.client_proxies.values()) + slash + chroot

    def _majority(self) -> str:
        return (
            ",".join(self._address(server) for server in self.servers if server is not self.cut_server) + self._chroot
        )

    def server(self, target: str) -> Server:
        """The server that a fault names: `leader`, `follower` (the one to be cut off) or `zookeeper-<n>`. May block."""
        if target == "leader":
            return self.servers[0] if len(self.servers) == 1 else self._runtime.edge(leader_of)(self.servers)
        if target == "follower":
            assert self.cut_server is not None
            return self.cut_server
        number = int(target.removeprefix("zookeeper-"))
        found = next((server for server in self.servers if server.number == number), None)
        if found is None:
            raise UserError(f"there is no ZooKeeper server {number} to inject a fault into")
        return found

    async def restart(self, servers: Sequence[Server], timeout_s: float) -> None:
        """Start servers again, and wait until they serve. Raises `EnvironmentFault`."""
        proxies = self._proxies
        introducing = [
            asyncio.create_task(proxies.introduce(server.number)) for server in servers if proxies is not None
        ]
        try:
            for server in servers:
                await self._runtime.threads.run(server.stop)
                await self._runtime.threads.run(server.launch)
            for server in servers:
                await self._runtime.threads.run(server.wait_ready, timeout_s)
        finally:
            await cancel_and_wait(*introducing)

    def readmit(self, server: Server) -> None:
        """The links of a server are healed: see that it finds the others again, in the background."""
        if self._proxies is not None:
            self._readmit(self._proxies, server.number, lambda: self.servers)

    def _readmit(self, proxies: QuorumProxies, number: int, servers: Callable[[], Sequence[Server]]) -> None:
        def serving() -> set[int]:
            return {each.number for each in servers() if each.mode() is not None}

        watching = proxies.readmit(number, serving)
        self._readmitting.append(asyncio.create_task(watching, name=f"readmission of zookeeper-{number}"))

    async def _stop_readmitting(self) -> None:
        await cancel_and_wait(*self._readmitting)
        self._readmitting.clear()

    def links_of(self, server: int) -> list[tuple[TcpProxy, bool]]:
        """The links between a server and the others, and whether the server made the connection."""
        return [] if self._proxies is None else self._proxies.of(server)

    def heal(self) -> None:
        for proxy in (self.member_proxy, *self.client_proxies.values()):
            if proxy is not None:
                proxy.heal()
        if self._proxies is not None:
            self._proxies.heal()

    async def observe(self, group: str, partitions: Sequence[TopicPartition]) -> None:
        """Start observing a group in a ZooKeeper whose transaction log cannot be read."""
        if self.servers or self._given_log is not None or DESIGNS[self._request.design].coordinator:
            return
        self._record.add_traces(Role.OBSERVER, ["observer"])
        self._observer_trace = TraceWriter(self._observations, self._identity(), clock=self._runtime.clock)
        self._observer = LiveObserver(self.connect_string, group, partitions, self._observer_trace)
        await self._observer.start()

    def observe_more(self, partitions: Sequence[TopicPartition]) -> None:
        """Observe added partitions as well."""
        if self._observer is not None:
            self._observer.watch(partitions)

    async def check_observed(self) -> None:
        """Raise `Unavailable` if an owner or a commit may have been missed."""
        if self._observer is None:
            return
        await self._observer.see_offsets()
        self._observer.check()
        if unseen := missing(self._observer.seen, self._offset_writes(self._observer)):
            raise Unavailable(f"the observer missed {unseen} commits in ZooKeeper: offsets cannot be judged")

    def _offset_writes(self, observer: LiveObserver) -> list[OffsetWrite]:
        members = (path for path in self._observations.parent.glob("m*.jsonl"))
        return merged(observer.seen, answered_in(sorted(members)))

    async def count(self, at: str) -> None:
        """Write every server's own counters to the trace, without the bystander's operations; not of a lent one."""
        if self._lent is not None:
            return
        now_ns = self._runtime.clock.monotonic_ns
        for host, port in self._addresses:
            for _ in range(_READINGS_MAX):
                asked_ns = now_ns()
                counters = await self._runtime.threads.run(
                    self._runtime.edge(read_counters), host, port, timeout_s=_COUNTERS_S
                )
                if now_ns() - asked_ns <= _READING_NS_MAX:
                    break
            others = {name: each for name, each in counters.per_namespace.items() if name != BYSTANDERS}
            for namespace, (reads, writes) in sorted(others.items()):
                self._tracer.emit(
                    "counters_read",
                    server=f"{host}:{port}",
                    namespace=namespace,
                    reads=reads,
                    writes=writes,
                    at=at,
                    latency_ns=now_ns() - asked_ns,
                )

    async def stop(self) -> None:
        self.heal()
        await self._stop_readmitting()
        if self._opening is not None:
            self._given_up.set()
            await asyncio.gather(self._opening, return_exceptions=True)
        if self._observer is not None:
            await self._observer.stop()
        if self._observer_trace is not None:
            self._observer_trace.close()
        if not self.servers and self.connect_string:
            with contextlib.suppress(RebalanceLabError):  # if ZooKeeper is gone, the chroot stays
                await remove_chroot(self.connect_string)
        await self._runtime.threads.run(self._opened.close)
        for proxies in (self._proxies, self.member_proxy, *self.client_proxies.values()):
            if proxies is not None:
                await proxies.stop()

    @property
    def _observations(self) -> Path:
        return self._request.run_dir / "trace" / "observer.jsonl"

    def _identity(self) -> TraceIdentity:
        return self._request.trace_identity(Role.OBSERVER, "observer")

    def write_observations(self) -> None:
        """After the stop, write the observer's trace from the transaction log.

        For a ZooKeeper whose log cannot be read, write the offsets, which are merged with the members' traces.
        """
        if self._observer is not None:
            self._record.add_traces(Role.OBSERVER, ["observer-offsets"])
            identity = self._request.trace_identity(Role.OBSERVER, "observer-offsets")
            path = self._observations.with_name("observer-offsets.jsonl")
            write_offsets(self._offset_writes(self._observer), path, identity, self._observer.group)
        transactions = self._transactions()
        if not transactions:
            return
        clock = self._runtime.clock
        self._record.add_traces(Role.OBSERVER, ["observer"])
        write_observed(
            transactions,
            self._observations,
            self._identity(),
            ReplayClock(monotonic_ns=clock.monotonic_ns(), wall_ms=clock.wall_ms()),
        )

    def _transactions(self) -> list[Transaction]:
        """What the run's log has; nothing if it ended before the first transaction, or there is no log to read."""
        try:
            if self._given_log is not None:
                return self._given_log.transactions()
            if self._lent is not None:
                return []  # it has the changes of other runs, and a coordinator's group is not in it
            return list(self._runtime.edge(read_ensemble)([server.data_dir for server in self.servers]))
        except FileNotFoundError:
            return []
