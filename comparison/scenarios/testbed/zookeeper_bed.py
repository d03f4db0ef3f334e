"""The ZooKeeper of one run: one server, an ensemble whose links can be cut, or one that is not ours."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from comparison.scenarios.plan.faults import TargetKind
from comparison.scenarios.plan.presets import ZOOKEEPER_SESSION_MS, ZOOKEEPER_TICK_MS
from comparison.scenarios.plan.vocabulary import Hold
from comparison.scenarios.processes.bystander_process import NAMESPACE as BYSTANDERS
from comparison.scenarios.testbed.chroot import chroot_name, make_chroot, remove_chroot
from comparison.scenarios.testbed.live_observer import LiveObserver
from comparison.scenarios.testbed.observed_offsets import OffsetWrite, answered_in, merged, missing
from comparison.scenarios.testbed.observer import ReplayClock, write_observed, write_offsets
from comparison.scenarios.testbed.proxy import LOOPBACK, TcpProxy
from comparison.scenarios.testbed.quorum import QuorumProxies
from kernel.clock import SystemClock
from kernel.designs import DESIGNS
from kernel.errors import RebalanceLabError, Unavailable, UserError
from kernel.trace.events import Role
from kernel.trace.writer import TraceIdentity, TraceWriter
from kernel.zookeeper.counters import read_counters
from kernel.zookeeper.embedded import ZooKeeperEnsemble
from kernel.zookeeper.target import open_zookeeper
from kernel.zookeeper.txnlog import read_ensemble

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from comparison.run_folder import RunRecord
    from comparison.scenarios.plan.request import RunRequest
    from kernel.trace.writer import Tracer
    from kernel.values import TopicPartition
    from kernel.zookeeper.server import ServerProcess

#: A server that is cut off waits this much longer than the cut before it notices: a split brain requires that.
_UNNOTICED_MS = 2000
_CLIENTS = frozenset({TargetKind.MEMBER_AUTHORITY, TargetKind.BROKER_ZOOKEEPER})
#: The chroot's name is the namespace of the server's own counters.
_EMBEDDED = "embedded"

Opened = TypeVar("Opened")


class ZooKeeperBed:
    """Starts, cuts, heals and stops ZooKeeper, reads its counters, and writes the observer's trace."""

    def __init__(self, request: RunRequest, tracer: Tracer, proxy_tracer: Tracer, record: RunRecord) -> None:
        self._record = record
        self._request = request
        self._tracer = tracer
        self._proxies = QuorumProxies(proxy_tracer) if request.split_brain else None
        #: Only in a game: the proxy between the members and the server.
        self.member_proxy: TcpProxy | None = TcpProxy("zookeeper", proxy_tracer) if request.played else None
        #: Only in front of the servers of a run with faults of its clients' links: by server.
        self.client_proxies: dict[int, TcpProxy] = {}
        self._proxy_tracer = proxy_tracer
        self._ensemble: ZooKeeperEnsemble | None = None
        self._opened = contextlib.ExitStack()
        self._opening: asyncio.Future[Any] | None = None
        self._given_up = threading.Event()
        self.servers: tuple[ServerProcess, ...] = ()
        self._addresses: tuple[tuple[str, int], ...] = ()
        self.connect_string = ""
        self.cut_server: ServerProcess | None = None  #: the follower that a split-brain run cuts off
        self._observer: LiveObserver | None = None
        self._observer_trace: TraceWriter | None = None

    async def start(self) -> None:
        """Raises `UserError` if the scenario needs an embedded ensemble and was given another ZooKeeper."""
        if self._proxies is None:
            handle = await self._open(
                open_zookeeper(self._request.zookeeper, self._request.run_dir, given_up=self._given_up)
            )
            self.servers, self.connect_string = handle.servers, handle.connect_string
            if self.servers:
                self._addresses = handle.addresses
                if self.member_proxy is not None:
                    await self.member_proxy.start(self.servers[0].client_port)
                await self._start_client_proxies()
            else:
                # Not ours: a chroot of our own, and no counters, which include other clients.
                self.connect_string = await make_chroot(handle.connect_string, chroot_name(self._request.run))
            return
        if self._request.zookeeper != _EMBEDDED:
            raise UserError(
                f"{self._request.scenario.name} cuts links between servers: it needs the embedded ZooKeeper"
            )
        await self._proxies.start()
        ensemble = ZooKeeperEnsemble(
            self._request.run_dir,
            tick_ms=ZOOKEEPER_TICK_MS,
            sync_limit=(self.cut_ms + _UNNOTICED_MS) // ZOOKEEPER_TICK_MS,
            min_session_ms=ZOOKEEPER_SESSION_MS[0],
            max_session_ms=ZOOKEEPER_SESSION_MS[1],
            quorum_links=self._proxies.ports,
            given_up=self._given_up,
        )
        await self._open(ensemble)
        self.servers, self.connect_string = ensemble.servers, ensemble.connect_string
        self._addresses = tuple((LOOPBACK, server.client_port) for server in ensemble.servers)
        self._ensemble = ensemble
        await self._start_client_proxies()
        self.cut_server = (await asyncio.to_thread(ensemble.followers))[0]

    async def _start_client_proxies(self) -> None:
        if _CLIENTS.isdisjoint(self._request.links):
            return
        for server in self.servers:
            proxy = self.client_proxies[server.number] = TcpProxy(f"clients->{server.number}", self._proxy_tracer)
            await proxy.start(server.client_port)

    def _address(self, server: ServerProcess) -> str:
        proxy = self.client_proxies.get(server.number)
        return server.address if proxy is None else f"{LOOPBACK}:{proxy.port}"

    async def _open(self, zookeeper: AbstractContextManager[Opened]) -> Opened:
        """Start it on a thread: starting blocks, and the proxies between the servers run on this loop.

        A thread cannot be cancelled, so `stop` makes it give up and waits for it. Otherwise it would leave a server
        behind.
        """
        opening = asyncio.ensure_future(asyncio.to_thread(self._opened.enter_context, zookeeper))
        self._opening = opening
        return await asyncio.shield(opening)

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
        return self._address(self.cut_server) if victim and self._request.victim_on_cut_server else self._majority()

    def connect_for_broker(self, *, on_cut_server: bool) -> str:
        """A broker's connect string: one that uses the server that is cut off knows only that one."""
        if self.cut_server is None:
            return self._all_servers()
        return self._address(self.cut_server) if on_cut_server else self._majority()

    def _all_servers(self) -> str:
        if not self.client_proxies:
            return self.connect_string
        return ",".join(self._address(server) for server in self.servers)

    def _majority(self) -> str:
        return ",".join(self._address(server) for server in self.servers if server is not self.cut_server)

    def server(self, target: str) -> ServerProcess:
        """The server that a fault names: `leader`, `follower` (the one to be cut off) or `zookeeper-<n>`. May block."""
        if target == "leader":
            return self.servers[0] if self._ensemble is None else self._ensemble.leader()
        if target == "follower":
            assert self.cut_server is not None
            return self.cut_server
        number = int(target.removeprefix("zookeeper-"))
        found = next((server for server in self.servers if server.number == number), None)
        if found is None:
            raise UserError(f"there is no ZooKeeper server {number} to inject a fault into")
        return found

    def links_of(self, server: int) -> list[tuple[TcpProxy, bool]]:
        """The links between a server and the others, and whether the server made the connection."""
        return [] if self._proxies is None else self._proxies.of(server)

    def cut(self) -> None:
        assert self._proxies is not None
        assert self.cut_server is not None
        self._proxies.cut(self.cut_server.number)

    def heal(self) -> None:
        for proxy in (self.member_proxy, *self.client_proxies.values()):
            if proxy is not None:
                proxy.heal()
        if self._proxies is not None:
            self._proxies.heal()

    async def observe(self, group: str, partitions: Sequence[TopicPartition]) -> None:
        """Start observing a group in a ZooKeeper whose transaction log cannot be read."""
        if self.servers or DESIGNS[self._request.design].coordinator:
            return
        self._record.add_traces(Role.OBSERVER, ["observer"])
        self._observer_trace = TraceWriter(self._observations, self._identity())
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
        """Write every server's own counters to the trace, without the bystander's operations."""
        for host, port in self._addresses:
            counters = await asyncio.to_thread(read_counters, host, port)
            others = {name: each for name, each in counters.per_namespace.items() if name != BYSTANDERS}
            for namespace, (reads, writes) in sorted(others.items()):
                self._tracer.emit(
                    "counters_read",
                    server=f"{host}:{port}",
                    namespace=namespace,
                    reads=reads,
                    writes=writes,
                    at=at,
                )

    async def stop(self) -> None:
        self.heal()
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
        await asyncio.to_thread(self._opened.close)
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

        For a ZooKeeper that is not ours, write the offsets, which are merged with the members' traces.
        """
        if not self.servers:
            if self._observer is not None:
                self._record.add_traces(Role.OBSERVER, ["observer-offsets"])
                identity = self._request.trace_identity(Role.OBSERVER, "observer-offsets")
                path = self._observations.with_name("observer-offsets.jsonl")
                write_offsets(self._offset_writes(self._observer), path, identity, self._observer.group)
            return
        clock = SystemClock()
        try:
            transactions = list(read_ensemble([server.data_dir for server in self.servers]))
        except FileNotFoundError:
            return  # ended before the first transaction
        self._record.add_traces(Role.OBSERVER, ["observer"])
        write_observed(
            transactions,
            self._observations,
            self._identity(),
            ReplayClock(monotonic_ns=clock.monotonic_ns(), wall_ms=clock.wall_ms()),
        )
