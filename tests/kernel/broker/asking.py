"""Sends the requests of `tests.kernel.broker.admin_cases` to a broker and makes its answers comparable.

    python -m tests.kernel.broker.asking 127.0.0.1:PORT OUT.json

records the answers of a real broker with `broker.id` or `node.id` 1, automatic topic creation, one partition.

Recorded: `tests/kernel/broker/admin-4.1.1.json`. Topics lose their prefix ("@a"), ids become names ("#a"), times near
the run's clock become "now", and sizes become whether there are any. Messages about settings (INVALID_CONFIG) are kept;
for others only their presence counts, because ours are worded differently. Lists have no order.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import json
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from kernel.records.records import NewRecord, build_batch
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.kernel.broker.admin_cases import ASKED, Ask
from tests.support.conversations.recorded import ConnectionEnded
from tests.support.wire.clients import WireConnection

_DROPPED = frozenset({"throttle_time", "host", "port", "cluster_id", "rack"})
_SIZES = frozenset({"partition_size", "total_bytes", "usable_bytes"})
_TEXTS = frozenset({"log_dir", "documentation"})
_RECORDS = frozenset({"records"})
_NEAR_MS = 120_000
_DAY_MS = 24 * 3_600_000


class Asking:
    """One run over one connection."""

    def __init__(self, connection: WireConnection, prefix: str, *, settle_s: float) -> None:
        self.connection = connection
        self._prefix = prefix
        self._settle_s = settle_s
        self._now_ms = self._produced_ms = _now_ms()
        self._ids: dict[str, uuid.UUID] = {}

    async def ask(self, asked: Ask) -> Any:
        """The answer in comparable form; "closed" if the broker closes the connection."""
        _, api, version, body = asked
        await self._learn_ids(body)
        if api == "Produce":  # each gets its own append time, as with a broker that takes longer
            await until(lambda: _now_ms() > self._produced_ms, 30, "the next millisecond", every_s=0.0005)
        try:
            answer = await asyncio.wait_for(self.connection.send(Api[api], version, self._filled(body)), 20)
        except ConnectionEnded:
            return "closed"
        self._produced_ms = _now_ms()
        if api in ("CreateTopics", "DeleteTopics"):
            await self._settled()
        if api in ("IncrementalAlterConfigs", "AlterConfigs"):
            await asyncio.sleep(self._settle_s)
        return self._plain(answer)

    async def _settled(self) -> None:
        """Wait until each topic of this run has leaders, so that the next answers do not depend on its creation."""

        async def led() -> bool:
            answer = await self.connection.send(Api.Metadata, 9, {"topics": None})
            ours = [topic for topic in answer.topics if topic.name.startswith(self._prefix)]
            rows = [
                {
                    "name": topic.name,
                    "partitions": [
                        {"partition_index": one.partition_index, "current_leader_epoch": -1, "timestamp": -1}
                    ],
                }
                for topic in ours
                for one in topic.partitions
            ]
            listed = await self.connection.send(Api.ListOffsets, 7, {"replica_id": -1, "topics": rows})
            return all(one.error_code is ErrorCode.none for topic in listed.topics for one in topic.partitions)

        await until(led, 60, "every topic to be led")

    async def _learn_ids(self, body: Any) -> None:
        for name in {value[1:] for value in _strings(body) if value.startswith("#")} - self._ids.keys():
            answer = await self.connection.send(Api.Metadata, 12, {"topics": [{"name": self._prefix + name}]})
            assert answer.topics[0].error_code is ErrorCode.none, (name, answer)
            self._ids[name] = answer.topics[0].topic_id

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            if "records" in value and isinstance(value["records"], list):
                return self._batch(**value)
            return {key: self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if isinstance(value, str):
            return self._filled_text(value)
        return value

    def _filled_text(self, text: str) -> Any:
        if text[:1] == "@":
            return self._prefix + text[1:]
        if text[:1] == "#":
            return self._ids[text[1:]]
        if text.startswith(("now+", "now-")):
            return self._now_ms + int(text[3:])
        if len(text) == 36 and text.count("-") == 4:
            return uuid.UUID(text) if uuid.UUID(text).int else None
        return text

    def _batch(self, records: list[dict[str, Any]], codec: str = "none") -> bytes:
        return build_batch(
            [
                NewRecord(one["value"].encode(), one["key"] and one["key"].encode(), self._filled(one["ms"]))
                for one in records
            ],
            codec=codec,
        )

    def _plain(self, value: Any, name: str = "") -> Any:
        if dataclasses.is_dataclass(value):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return self._plain_fields(fields)
        if isinstance(value, tuple):
            return sorted(
                (self._plain(item, name) for item in value), key=lambda item: json.dumps(item, sort_keys=True)
            )
        if isinstance(value, enum.Enum):
            return int(value.value)
        if name in _SIZES and isinstance(value, int):
            return value > 0
        if name in _TEXTS and isinstance(value, str):
            return "some"
        if isinstance(value, uuid.UUID):
            return next((f"#{known}" for known, topic_id in self._ids.items() if topic_id == value), "an id")
        if isinstance(value, datetime.datetime):
            value = round(value.timestamp() * 1000)
        if name in _RECORDS:
            return bool(value)
        if isinstance(value, int) and abs(value - self._now_ms) <= _DAY_MS:
            after_ms = value - self._now_ms
            return "now" if abs(after_ms) < _NEAR_MS else f"now{after_ms:+d}"
        if isinstance(value, str):
            return value.replace(self._prefix, "@")
        return value.hex() if isinstance(value, bytes) else value

    def _plain_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        plain = {name: self._plain(value, name) for name, value in fields.items() if name not in _DROPPED}
        for message in ("error_message", "batch_index_error_message"):
            if message in plain and plain.get("error_code") != ErrorCode.invalid_config:
                plain[message] = "some" if plain[message] else None
        return plain


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [found for item in value.values() for found in _strings(item)]
    if isinstance(value, list):
        return [found for item in value for found in _strings(item)]
    return [value] if isinstance(value, str) else []


async def answers(host: str, port: int, *, settle_s: float = 0) -> dict[str, Any]:
    """{label: answer} of all requests.

    A broker with a quorum shows alterations a moment later: wait `settle_s` for them.
    """
    found: dict[str, Any] = {}
    prefix = f"p{uuid.uuid4().hex[:8]}-"
    connection = await WireConnection.open(host, port, "asking")
    asking = Asking(connection, prefix, settle_s=settle_s)
    try:
        for number, asked in enumerate(ASKED):
            found[f"{number:03d} {asked[0]}"] = answer = await asking.ask(asked)
            if answer == "closed":
                connection.close()
                connection = asking.connection = await WireConnection.open(host, port, "asking")
    finally:
        connection.close()
    return found


def main(address: str, out: str) -> None:
    host, _, port = address.rpartition(":")
    found = asyncio.run(answers(host, int(port), settle_s=0.5))
    lines = ",\n".join(f"{json.dumps(label)}: {json.dumps(answer, sort_keys=True)}" for label, answer in found.items())
    Path(out).write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
