"""OffsetForLeaderEpoch: where an epoch ended, for clients that have read under another leader (KIP-320)."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel.broker.apis.offsets import epoch_end
from kernel.client.connection import BrokerConnection
from kernel.waiting import until
from kernel.wire.errors import error_name
from kernel.wire.versions import SERVED, Api
from tests.kernel.broker.apis.test_data_plane import TP, batch, produce
from tests.support.brokers.live import running_broker

#: Epoch 2 was idle, 5 leads and has not written yet.
EPOCHS, LEADER_EPOCH, END = ((1, 10), (3, 20), (4, 25)), 5, 30


@pytest.mark.parametrize(
    ("wanted", "epoch", "end"),
    [
        (0, 0, 10),  # before all others: the log begins with a later epoch
        (1, 1, 20),
        (2, 1, 20),
        (3, 3, 25),
        (4, 4, 30),
        (5, 5, 30),
        (6, -1, -1),
        (-1, -1, -1),
    ],
)
def test_epoch_ends_where_the_next_one_began(wanted: int, epoch: int, end: int) -> None:
    assert epoch_end(EPOCHS, LEADER_EPOCH, END, wanted) == (epoch, end)


def test_log_without_records_ends_at_its_beginning() -> None:
    assert epoch_end((), 3, 0, 2) == (2, 0)
    assert epoch_end((), 3, 0, 3) == (3, 0)


async def test_epoch_of_a_former_leader_ends_where_its_successor_began(chroot: str, tmp_path: Path) -> None:
    async def ends(connection: BrokerConnection, epochs: list[int], known: int = -1, version: int = 4) -> list[object]:
        asked = [{"partition": 0, "current_leader_epoch": known, "leader_epoch": epoch} for epoch in epochs]
        body = {"replica_id": -1, "topics": [{"topic": "t", "partitions": asked}]}
        answer = await connection.call(Api.OffsetForLeaderEpoch, body, version=version)
        return [(error_name(p.error_code), p.leader_epoch, p.end_offset) for p in answer.topics[0].partitions]

    async with running_broker(chroot, tmp_path, node_id=2) as second:
        async with running_broker(chroot, tmp_path, node_id=1) as first:
            assert await first.cluster.until(lambda snapshot: len(snapshot.brokers) == 2, 60_000)
            await first.cluster.create_topic("t", partitions=1, replication_factor=2, assignment=[[1, 2]])
            await until(lambda: first.cluster.leads(TP), 60, "the first to lead")
            connection = await BrokerConnection.open(first.address.host, first.address.port, "c")
            for _ in range(3):
                await produce(connection, batch(b"old"))
            assert await ends(connection, [0]) == [("", 0, 3)]
            connection.close()
        led = await until(lambda: second.cluster.leads(TP), 60, "the second to lead")
        connection = await BrokerConnection.open(second.address.host, second.address.port, "c")
        assert await produce(connection, batch(b"new")) == ("", 3)
        now = led.leader_epoch
        lowest, highest = SERVED[Api.OffsetForLeaderEpoch]
        for version in range(lowest, highest + 1):
            assert await ends(connection, [0, now], version=version) == [("", 0, 3), ("", now, 4)]
        assert await ends(connection, [0], known=0) == [("FENCED_LEADER_EPOCH", -1, -1)]
        assert await ends(connection, [0], known=now + 1) == [("UNKNOWN_LEADER_EPOCH", -1, -1)]
        asked = {"replica_id": -1, "topics": [{"topic": "u", "partitions": [{"partition": 0, "leader_epoch": 0}]}]}
        answer = await connection.call(Api.OffsetForLeaderEpoch, asked)
        assert error_name(answer.topics[0].partitions[0].error_code) == "UNKNOWN_TOPIC_OR_PARTITION"
        connection.close()
