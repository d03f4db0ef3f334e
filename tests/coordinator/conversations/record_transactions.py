"""Record conversations about transactions on data from a real broker: tests/coordinator/conversations/data.json.

    python -m tests.coordinator.conversations.record_transactions HOST:PORT

The broker needs the settings below (transaction.abort.timed.out.transaction.cleanup.interval.ms=200 keeps the wait for
a timeout short). Each conversation is played twice, and differences between the two are reported.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from typing import Any

from tests.support.conversations.recorded import FOLDER, Player, Symbols
from tests.support.conversations.recorded_json import conversations_text
from tests.support.wire.clients import WireConnection

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "auto.create.topics.enable": "false",
}
#: Longer than a real broker takes to write its markers, or to notice a timeout.
SETTLING_MS, TIMED_OUT_MS = 500, 4_000
PASSING = ["CONCURRENT", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD", "NOT_COORDINATOR"]

Steps = list[dict[str, Any]]


def call(api: str, version: int, **request: Any) -> dict[str, Any]:
    return {"step": "call", "conn": "p", "api": api, "version": version, "request": request}


def begin() -> Steps:
    topic = {"name": "$T", "num_partitions": 2, "replication_factor": 1, "assignments": [], "configs": []}
    create = call("CreateTopics", 4, topics=[topic], timeout=10_000, validate_only=False)
    find = call("FindCoordinator", 2, key="$TXN", key_type=1)
    return [create, find | {"retry_while": PASSING}, wait(), *init()]


def init(which: str = "", *, txn: str = "$TXN", timeout: int = 20_000, version: int = 3, **producer: Any) -> Steps:
    step = call(
        "InitProducerId",
        version,
        transactional_id=txn,
        transaction_timeout=timeout,
        **{"producer_id": -1, "producer_epoch": -1, **producer},
    )
    return [step | {"retry_while": PASSING, "bind_producer": which or True}]


def add(*partitions: int, which: str = "", txn: str = "$TXN", version: int = 3, topic: str = "$T") -> dict[str, Any]:
    step = call(
        "AddPartitionsToTxn",
        version,
        v3_and_below_transactional_id=txn,
        v3_and_below_producer_id=f"$PID{which}",
        v3_and_below_producer_epoch=f"$PEPOCH{which}",
        v3_and_below_topics=[{"name": topic, "partitions": list(partitions)}],
    )
    return step | {"retry_while": PASSING}


def produce(
    sequence: int, *values: str, partition: int = 0, version: int = 9, txn: str | None = "$TXN", **batch: Any
) -> dict[str, Any]:
    records = {"batch": {"sequence": sequence, "values": list(values), **batch}}
    data = [{"name": "$T", "partition_data": [{"index": partition, "records": records}]}]
    return call("Produce", version, transactional_id=txn, acks=-1, timeout=5_000, topic_data=data)


def end(commits: bool, *, which: str = "", txn: str = "$TXN", version: int = 3) -> dict[str, Any]:
    producer = {"producer_id": f"$PID{which}", "producer_epoch": f"$PEPOCH{which}"}
    return call("EndTxn", version, transactional_id=txn, committed=commits, **producer)


def wait(ms: int = SETTLING_MS) -> dict[str, Any]:
    return {"step": "wait", "ms": ms}


def read(level: int, offset: int = 0, partition: int = 0) -> dict[str, Any]:
    return {"step": "read", "conn": "r", "topic": "$T", "partition": partition, "offset": offset, "level": level}


def reads() -> Steps:
    latest = [
        call(
            "ListOffsets",
            5,
            replica_id=-1,
            isolation_level=level,
            topics=[
                {
                    "name": "$T",
                    "partitions": [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp}],
                }
            ],
        )
        for level in (0, 1)
        for timestamp in (-1, -2, 1_000)
    ]
    return [read(0), read(1), *latest]


def markers(commits: bool, epoch: int) -> dict[str, Any]:
    topics = [{"name": "$T", "partition_indexes": [0, 9]}, {"name": "nowhere", "partition_indexes": [0]}]
    marker = {"producer_id": "$PID", "producer_epoch": "$PEPOCH", "transaction_result": commits}
    return call("WriteTxnMarkers", 1, markers=[marker | {"coordinator_epoch": epoch, "topics": topics}])


OPEN = [*begin(), add(0), produce(0, "a", "b")]

SCRIPTS: dict[str, Steps] = {
    "commit": [*OPEN, *reads(), end(True), wait(), *reads(), produce(2, "late"), end(True), end(False)],
    "abort": [*OPEN, end(False), wait(), *reads(), add(0, 1), produce(2, "c"), end(True), wait(), *reads()],
    "fetch from the middle": [*OPEN, read(1, 1), read(1, 2), end(False), wait(), read(1, 1), read(1, 2), read(1, 3)],
    "two producers": [
        *(*OPEN, *init("2", txn="$TXN2"), add(0, which="2", txn="$TXN2"), produce(0, "x", txn="$TXN2", producer="2")),
        *(end(False, which="2", txn="$TXN2"), wait(), *reads(), produce(2, "c"), end(False), wait(), *reads()),
    ],
    "zombie": [
        *(*OPEN, *init("2"), wait(), produce(2, "late"), produce(2, "late", version=11)),
        *(*[add(1, version=version) for version in (1, 2, 3)], *[end(True, version=version) for version in (1, 2, 3)]),
        *(*reads(), add(0, which="2"), produce(0, "c", producer="2"), end(True, which="2"), wait(), *reads()),
    ],
    "timeout": [
        *(*begin()[:-1], *init(timeout=2_000), add(0), produce(0, "a"), wait(TIMED_OUT_MS), *reads()),
        *(produce(1, "late"), add(1), end(True), *init("2", timeout=20_000), add(0, which="2")),
        *(produce(0, "b", producer="2"), end(True, which="2"), wait(), *reads()),
    ],
    "not added": [
        *(*begin(), produce(0, "a"), produce(0, "a", version=11), produce(0, "a", txn=None), add(0, 7)),
        *(add(0, topic="nowhere"), end(True), add(0, txn="$TXN2"), add(0), produce(0, "a", partition=1)),
        *(produce(0, "a"), end(True), wait(), produce(1, "late"), produce(1, "late", version=11), *reads()),
    ],
    "sequences": [
        *(*OPEN, produce(0, "a", "b"), produce(3, "gap"), produce(2, "plain", transactional=False)),
        *(produce(2, "plain", transactional=False, txn=None), end(True), wait()),
        *(produce(2, "plain", transactional=False), produce(0, "a", "b"), *reads()),
    ],
    "a producer that goes on": [
        *(*OPEN, end(False), wait(), *init("2", producer_id="$PID", producer_epoch="$PEPOCH")),
        *(*init("3", producer_id="$PID", producer_epoch="$PEPOCH"), add(0), add(0, which="2")),
        *(produce(2, "on", producer="2"), produce(0, "on", producer="2"), end(True, which="3"), wait()),
        *(*init("4", version=4, producer_id="$PID3", producer_epoch=9), *reads()),
    ],
    "markers": [*OPEN, markers(False, 5), *reads(), markers(True, 4), markers(True, 6), *reads()],
}


class Recorder(Player):
    """Records responses instead of comparing them."""

    recorded: Steps

    def _compare(self, number: int, step: Any, answer: Any) -> None:
        self.recorded.append({**step, "response": self.symbols.symbolic(answer)})


async def played(name: str, host: str, port: int) -> Steps:
    async def connect(client_id: str) -> WireConnection:
        return await WireConnection.open(host, port, client_id)

    symbols = Symbols(f"play-{uuid.uuid4().hex[:10]}", {})
    recorder = Recorder({"steps": SCRIPTS[name]}, connect, symbols)
    recorder.recorded = []
    await recorder.play()
    answers = iter(recorder.recorded)
    return [step if step["step"] == "wait" else next(answers) for step in SCRIPTS[name]]


async def record(address: str) -> None:
    host, _, port = address.rpartition(":")
    conversations = []
    for name in SCRIPTS:
        once, twice = await played(name, host, int(port)), await played(name, host, int(port))
        for number, (first, second) in enumerate(zip(once, twice, strict=True), 1):
            if first != second:
                print(f"unsteady: {name}, step {number}: {first['response']} / {second['response']}")  # noqa: T201
        conversations.append({"name": f"data/{name}", "steps": once})
    recorder = "tests/coordinator/conversations/record_transactions.py"
    about = f"transactions on data, recorded from a real Kafka broker by {recorder}"
    document = {"about": about, "brokers": ["4.1.1"], "settings": SETTINGS, "topics": {}, "blobs": {}}
    text = conversations_text({**document, "conversations": conversations})
    (FOLDER / "data.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(record(sys.argv[1]))
