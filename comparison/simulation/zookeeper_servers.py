"""The modelled ZooKeeper as a run starts and breaks it: the simulated world's part of `kernel.zookeeper.servers`.

Each server runs on a node of its own. What blocks with real servers until something has happened is a coroutine here,
which the loop awaits.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

from comparison.scenarios.plan.links import Kind
from comparison.simulation.peer_links import PeerProxies
from comparison.simulation.zookeeper.model.sessions import Limits as ModelLimits
from comparison.simulation.zookeeper.model.tree import (
    CheckTxn,
    CloseSessionTxn,
    CreateSessionTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    MultiTxn,
    SetDataTxn,
)
from comparison.simulation.zookeeper.servers import SimulatedZooKeeper
from kernel.errors import Unavailable
from kernel.platform.ports import LOOPBACK
from kernel.waiting import until
from kernel.zookeeper.counters import Counters, counters_in
from kernel.zookeeper.server import START_TIMEOUT_S
from kernel.zookeeper.servers import NUMBERS, Limits
from kernel.zookeeper.txnlog import Transaction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from comparison.simulation.node import Node
    from comparison.simulation.world import World
    from comparison.simulation.zookeeper.model.tree import Change
    from comparison.simulation.zookeeper.model.tree import Transaction as Logged
    from comparison.simulation.zookeeper.servers import SimulatedServer
    from kernel.trace.writer import Tracer


class WorldServer:
    """A `kernel.zookeeper.servers.Server`."""

    host = LOOPBACK

    def __init__(self, world: World, modelled: SimulatedServer, data_dir: Path) -> None:
        self.number = modelled.number
        self.data_dir = data_dir
        self.modelled = modelled
        self._world = world
        self._node: Node | None = None

    @property
    def client_port(self) -> int:
        return self.modelled.port

    @property
    def address(self) -> str:
        return self.modelled.address

    @property
    def running(self) -> bool:
        return self.modelled.is_running

    async def launch(self) -> None:
        self._node = self._world.node(f"zookeeper-{self.number}", Kind.ZOOKEEPER)
        await self._world.spawn(self._node, self.modelled.start)

    async def wait_ready(self, timeout_s: float, _: object = None) -> None:
        await until(lambda: self.mode() is not None, timeout_s, f"ZooKeeper server {self.number} to serve")

    async def restart(self) -> None:
        self.kill()
        await self.launch()
        await self.wait_ready(START_TIMEOUT_S)

    def mode(self) -> str | None:
        return None if self._node is not None and self._node.is_frozen else self.modelled.mode

    def pause(self) -> None:
        assert self._node is not None
        self._world.loop.freeze(self._node)

    def resume(self) -> None:
        assert self._node is not None
        self._world.loop.thaw(self._node)

    def kill(self) -> None:
        if self._node is not None:
            self.modelled.kill()
            self._world.loop.kill(self._node)

    def stop(self) -> None:
        self.kill()

    def log_tail(self, lines: int = 15) -> str:
        return ""


class WorldZooKeeper:
    """The one ZooKeeper of a world: stands in for `kernel.zookeeper.servers.Servers`, and for functions about it."""

    def __init__(self, world: World) -> None:
        self.servers: tuple[WorldServer, ...] = ()
        self._world = world
        self._proxies: PeerProxies | None = None

    # -- Servers -----------------------------------------------------------------------------------------------------

    def reach(self) -> str:
        return LOOPBACK

    async def start(self) -> WorldZooKeeper:
        for server in self.servers:
            await server.launch()
        for server in self.servers:
            await server.wait_ready(START_TIMEOUT_S)
        return self

    def stop(self) -> None:
        for server in self.servers:
            server.stop()

    # -- in place of functions ---------------------------------------------------------------------------------------

    def make_servers(
        self,
        _target: object,
        run_dir: Path,
        *,
        limits: Limits | None = None,
        ensemble: bool = False,
        **_: object,
    ) -> WorldZooKeeper:
        """As `kernel.zookeeper.target.make_servers`."""
        limits = limits or Limits()
        modelled = SimulatedZooKeeper(
            self._world.peer_delay_s,
            self._world.clock().wall_ms,
            servers=len(NUMBERS) if ensemble else 1,
            limits=ModelLimits(
                tick_ms=limits.tick_ms,
                min_session_ms=limits.min_session_ms,
                max_session_ms=limits.max_session_ms,
                sync_limit=limits.sync_limit,
            ),
        )
        self.servers = tuple(
            WorldServer(self._world, server, run_dir / f"zookeeper-{server.number}") for server in modelled.servers
        )
        if self._proxies is not None:
            self._proxies.peers = modelled.peers
        return self

    def quorum_proxies(self, tracer: Tracer) -> PeerProxies:
        """As `QuorumProxies`, which are made before the servers."""
        self._proxies = PeerProxies(tracer)
        return self._proxies

    async def leader_of(self, servers: Sequence[WorldServer]) -> WorldServer:
        """As `kernel.zookeeper.servers.leader_of`."""

        def only_leader() -> WorldServer | None:
            leaders = [server for server in servers if server.mode() == "leader"]
            return leaders[0] if len(leaders) == 1 else None

        found = await until(only_leader, START_TIMEOUT_S, "a leader")
        assert found is not None
        return found

    async def follower_of(self, servers: Sequence[WorldServer]) -> WorldServer:
        """As `kernel.zookeeper.servers.follower_of`."""

        def first_follower() -> WorldServer | None:
            return next((server for server in servers if server.mode() == "follower"), None)

        found = await until(first_follower, START_TIMEOUT_S, "a follower")
        assert found is not None
        return found

    async def read_counters(self, host: str, port: int, *, timeout_s: float = 3.0) -> Counters:
        """As `kernel.zookeeper.counters.read_counters`."""
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(host, port)
                writer.write(b"mntr")
                answer = await reader.read()
                writer.close()
        except (OSError, TimeoutError) as error:
            raise Unavailable(f"no ZooKeeper answers 'mntr' at {host}:{port}: {error}") from error
        return counters_in(answer.decode(), f"{host}:{port}")

    def read_ensemble(self, data_dirs: Sequence[Path]) -> list[Transaction]:
        """As `kernel.zookeeper.txnlog.read_ensemble`: what a majority has logged."""
        logs = [server.modelled.model.history.log for server in self.servers if server.data_dir in data_dirs]
        logged = Counter(entry.zxid for log in logs for entry in log)
        entries = {entry.zxid: entry for log in logs for entry in log if logged[entry.zxid] * 2 > len(logs)}
        return [transaction for zxid in sorted(entries) for transaction in transactions_of(entries[zxid])]


def transactions_of(entry: Logged) -> Iterator[Transaction]:
    """An entry of a modelled log as `kernel.zookeeper.txnlog` reads it from a file."""
    change = entry.change
    parts: Sequence[Change] = change.parts if isinstance(change, MultiTxn) else (change,)
    if errors := [part for part in parts if isinstance(part, ErrorTxn)]:  # a failed part undoes all
        parts = errors[:1]
    for part in parts:
        yield Transaction(
            zxid=entry.zxid,
            session=entry.session_id,
            cxid=entry.origin.xid if entry.origin is not None else 0,
            time_ms=entry.time_ms,
            **_fields(part),
        )


def _fields(change: Change) -> dict[str, Any]:
    match change:
        case CreateTxn(path, data, owner):
            return {"op": "create", "path": path, "data": data, "ephemeral": owner != 0}
        case SetDataTxn(path, data):
            return {"op": "setData", "path": path, "data": data}
        case DeleteTxn(path):
            return {"op": "delete", "path": path}
        case CheckTxn(path):
            return {"op": "check", "path": path}
        case CreateSessionTxn():
            return {"op": "createSession"}
        case CloseSessionTxn(paths):
            return {"op": "closeSession", "removed_paths": paths}
        case _:
            return {"op": "error"}
