"""Our members ask the coordinator what those of Kafka 4.1.1 asked, request by request; the file says in what course."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kernel.client.connection import BrokerConnection, error_of
from kernel.waiting import until
from kernel.wire.versions import Api
from tests.support.brokers.live import client_of, create_topics
from tests.support.consumers.consuming import Owned, Running, partitions_of, producing, shared_out
from tests.support.consumers.eager import bootstrap_of
from tests.support.consumers.reconciling import reconciling, reconciling_group

ASKED = json.loads((Path(__file__).parent / "asked-4.1.1.json").read_text())["members"]
QUIET = {"auto.commit.interval.ms": "600000"}
T, U = partitions_of("t", 4), partitions_of("u", 2)


class Tap:
    """What members asked and were not refused, by client.id."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Api, int, Any]] = []

    def of(self, client: str, names: dict[UUID, str]) -> list[dict[str, Any]]:
        """As in the file: without heartbeats that say nothing."""
        mine = [_told(api, version, body, names) for who, api, version, body in self.calls if who == client]
        return [one for one in mine if one is not None]


def _told(api: Api, version: int, body: Any, names: dict[UUID, str]) -> dict[str, Any] | None:
    told: dict[str, Any] = {"api": api.name, "version": version}
    match api:
        case Api.ConsumerGroupHeartbeat:
            owned, topics, epoch = body["topic_partitions"], body["subscribed_topic_names"], body["member_epoch"]
            if owned is None and topics is None and epoch > 0:
                return None
            return told | {
                "epoch": epoch,
                "instance_id": body["instance_id"],
                "rebalance_timeout_ms": body["rebalance_timeout"],
                "topics": topics,
                "regex": body.get("subscribed_topic_regex"),
                "assignor": body["server_assignor"],
                "owned": None
                if owned is None
                else sorted(f"{names[part['topic_id']]}-{n}" for part in owned for n in part["partitions"]),
            }
        case Api.OffsetCommit:
            offsets = {
                f"{topic['name']}-{part['partition_index']}": part["committed_offset"]
                for topic in body["topics"]
                for part in topic["partitions"]
            }
            epoch = body["generation_id_or_member_epoch"]
            return told | {"epoch": epoch, "instance_id": body["group_instance_id"], "offsets": offsets}
        case Api.OffsetFetch:
            (group,) = body["groups"]
            asked = [f"{topic['name']}-{n}" for topic in group["topics"] for n in topic["partition_indexes"]]
            return told | {"epoch": group["member_epoch"], "partitions": asked}
    return None


@pytest.fixture
def tap(monkeypatch: pytest.MonkeyPatch) -> Tap:
    made, call = Tap(), BrokerConnection.call

    async def tapped(self: BrokerConnection, api: Api, body: Any, *, version: int | None = None, **more: Any) -> Any:
        answer = await call(self, api, body, version=version, **more)
        if not error_of(answer):  # the offsets topic may just have been created
            made.calls.append((self.client_id, api, self.version_of(api) if version is None else version, body))
        return answer

    monkeypatch.setattr(BrokerConnection, "call", tapped)
    return made


async def settled(members: dict[str, Running], owned: Owned, epoch: int) -> None:
    """Wait until the members share these partitions, know where to begin, and have this epoch."""
    await shared_out(list(members.values()), owned)
    for member in members.values():
        consumer = member.consumer
        await until(lambda c=consumer: c.places()[0].generation == epoch, 30, f"epoch {epoch}")
        await until(lambda c=consumer, m=member: all(c.position(tp) == 2 for tp in m.owned), 30, "all records")


async def test_members_ask_what_kafkas_own_asked(chroot: str, tmp_path: Path, tap: Tap) -> None:
    async with reconciling_group(chroot, tmp_path) as (broker, _), producing(bootstrap_of(broker)) as producer:
        await create_topics(broker, {"u": 2})
        for topic in "tu":
            await producer.send(topic, 2)

        def member(name: str, **settings: str) -> Running:
            given = {name.replace("_", "."): value for name, value in settings.items()}
            return reconciling(bootstrap_of(broker), settings={**QUIET, "client.id": name, **given})

        a = await member("a").begin({"t": 1, "u": 1})
        await settled({"a": a}, T | U, 1)
        await a.resubscribe({"t": 1})
        await settled({"a": a}, T, 2)
        b = await member("b").begin({"t": 1})
        await settled({"a": a, "b": b}, T, 3)
        await b.close()
        await settled({"a": a}, T, 4)
        await a.unsubscribe()
        await a.resubscribe({"t": 1})
        await settled({"a": a}, T, 6)
        await a.close()
        c = await member("c", group_instance_id="i", group_remote_assignor="range").begin({"t": 1})
        await settled({"c": c}, T, 8)
        await c.close()
        async with client_of(broker) as client:
            ids = (await client.refresh(["t", "u"])).topic_ids
            names = {topic_id: name for name, topic_id in ids.items() if topic_id is not None}
    for client, asked in ASKED.items():
        assert tap.of(client, names) == asked, client
