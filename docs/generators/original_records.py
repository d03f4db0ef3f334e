"""Joins, leaves and crashes of the originals for `docs/simulation.md`, kept as `originals` in `docs/simulation.json`.

`python -m docs.generators.original_records` makes them again (three minutes; it needs Java and the originals' jars, as
`make test-originals` does). The groups have the sizes and the settings of the scenarios beside which they stand:

- for `zookeeper`, Kafka's own consumer of 0.8.2.2 with two brokers of 1.1.1, its requests counted by a proxy in front
  of ZooKeeper (`tests.support.zookeeper.proxy`);
- for the other designs, librdkafka's consumer with a broker of 4.1.1, requests counted by a proxy in front of it.

Nobody produces: what is counted does not depend on it.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import confluent_kafka
import msgspec

from comparison.originals.brokers import RealBroker
from comparison.scenarios.plan.catalogue import scenario_named
from comparison.scenarios.plan.configuration import configuration
from docs.generators.era_groups import VERSION, EraGroup
from docs.generators.simulation_records import (
    DESIGNS,
    SEEDS,
    Measured,
    OriginalRecord,
    counted,
    place_of,
    read_records,
    write_records,
)
from docs.generators.stock_groups import TOPIC, CountingProxy, StockGroup
from kernel.designs import ZOOKEEPER
from kernel.platform.ports import LOOPBACK
from kernel.trace.writer import SilentTracer
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.servers import Limits
from kernel.zookeeper.session import ZooKeeperSession

#: In the order of the page; all three begin with equal groups.
SCENARIOS = ("crash", "join", "leave")
PARAMETERS = scenario_named("join").parameters({})
COORDINATED = tuple(design for design in DESIGNS if design != ZOOKEEPER)
_ERA_BROKERS, _BROKER = "1.1.1", "4.1.1"

Runs = dict[str, list[dict[str, Measured]]]  # by design, and of each run by scenario


async def of_the_era(folder: Path) -> Runs:
    """Runs of the 0.8 consumer."""
    settings = configuration(ZOOKEEPER, PARAMETERS).member
    with EmbeddedZooKeeper(folder / "zookeeper", limits=Limits(tick_ms=250)) as zookeeper:
        where = zookeeper.connect_string
        with (
            RealBroker(_ERA_BROKERS, folder / "broker-1", zookeeper=where) as broker,
            RealBroker(_ERA_BROKERS, folder / "broker-2", zookeeper=where, node_id=2),
        ):
            broker.create_topic(TOPIC, PARAMETERS.partitions, brokers=(1, 2))
            session = await ZooKeeperSession.open(
                where, session_timeout_ms=30_000, connection_timeout_ms=30_000, tracer=SilentTracer(), name="records"
            )
            async with session:
                groups = [EraGroup(seed, PARAMETERS.partitions, settings, session, folder) for seed in _seeds()]
                return {ZOOKEEPER: [await group.run(PARAMETERS.members) for group in groups]}


async def of_stock_clients(folder: Path) -> Runs:
    """Runs of librdkafka's consumers, all designs at the same time."""
    proxy = CountingProxy()
    await proxy.start()
    settings = {
        **dict(filter(_is_of_groups, configuration(COORDINATED[0], PARAMETERS).broker.items())),
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{proxy.port}",
    }
    broker = RealBroker(_BROKER, folder / "broker", settings=settings)
    await asyncio.to_thread(broker.start)
    try:
        proxy.forward_to(broker.port)
        await asyncio.to_thread(broker.create_topic, TOPIC, PARAMETERS.partitions)
        found: Runs = {design: [] for design in COORDINATED}
        for seed in _seeds():
            groups = [StockGroup(design, seed, PARAMETERS, proxy) for design in COORDINATED]
            for group, run in zip(groups, await asyncio.gather(*(group.run() for group in groups)), strict=True):
                found[group.design].append(run)
        return found
    finally:
        proxy.stop()
        await asyncio.to_thread(broker.stop)


def _is_of_groups(setting: tuple[str, str]) -> bool:
    """Whether it is one of groups that Kafka's broker has too; those of `server` are ours alone."""
    name, _ = setting
    return name.startswith("group.") and not name.startswith("group.server.")


def _seeds() -> range:
    return range(1, SEEDS + 1)


def records_of(runs: Runs, of: str) -> list[OriginalRecord]:
    return [
        OriginalRecord(
            scenario=scenario,
            design=design,
            of=of,
            counts=counted([run[scenario].counts for run in repeats]),
            settled_ms=[run[scenario].settled_ms for run in repeats],
        )
        for design, repeats in runs.items()
        for scenario in SCENARIOS
    ]


def main() -> None:
    client = f"librdkafka {confluent_kafka.libversion()[0]} on Kafka {_BROKER}"
    with tempfile.TemporaryDirectory() as scratch:
        era = records_of(
            asyncio.run(of_the_era(Path(scratch))), f"Kafka's consumer {VERSION} on brokers {_ERA_BROKERS}"
        )
        stock = records_of(asyncio.run(of_stock_clients(Path(scratch) / "stock")), client)
    made = sorted([*era, *stock], key=lambda each: place_of(each.scenario, each.design))
    write_records(msgspec.structs.replace(read_records(), originals=made))


if __name__ == "__main__":
    main()
