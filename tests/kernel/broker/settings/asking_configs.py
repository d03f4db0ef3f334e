"""Asks a real broker for a topic's settings, and for its answers to values that may be invalid.

    python -m tests.kernel.broker.settings.asking_configs 127.0.0.1:PORT OUT.json

Recorded: `tests/kernel/broker/settings/topic-configs-4.1.1.json`. Nothing is changed: alterations are only validated.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.wire.clients import WireConnection

VALUES = (
    "abc", "", "-1", "-2", "-3", "0", "1", "14", "23", "1.5", "true", "TRUE", "99999999999", "99999999999999999999",
    "compact", "compact, delete", ",", "zstd", "LogAppendTime", "*", "0:1", "0:1,1:x", " 5 ", "1e3", "1048576", "1_0",
)  # fmt: skip
OTHERS = ("message.format.version", "message.downconversion.enable", "nonesuch")
TOPIC = 2


async def recorded(host: str, port: int) -> dict[str, Any]:
    connection = await WireConnection.open(host, port, "asking")
    try:
        topic = {"name": "settings", "num_partitions": 1, "replication_factor": 1}
        await connection.send(Api.CreateTopics, 7, {"topics": [topic], "timeout": 10_000})
        resource = {"resource_type": TOPIC, "resource_name": "settings"}
        asked = {"resources": [{**resource, "configuration_keys": None}], "include_synonyms": True}
        answer = await connection.send(Api.DescribeConfigs, 4, asked)
        settings = {
            one.name: {
                "type": one.config_type,
                "default": one.value,
                "broker_name": one.synonyms[-1].name if one.synonyms else "",
            }
            for one in sorted(answer.results[0].configs, key=lambda one: one.name)
        }
        said: dict[str, dict[str, str | None]] = {}
        for name in (*settings, *OTHERS):
            for value in VALUES:
                config = {"name": name, "config_operation": 0, "value": value}
                body = {"resources": [{**resource, "configs": [config]}], "validate_only": True}
                (response,) = (await connection.send(Api.IncrementalAlterConfigs, 1, body)).responses
                assert response.error_code in (ErrorCode.none, ErrorCode.invalid_config), (name, value, response)
                said.setdefault(name, {})[value] = response.error_message
    finally:
        connection.close()
    return {"settings": settings, "said": said}


def main(address: str, out: str) -> None:
    host, _, port = address.rpartition(":")
    found = asyncio.run(recorded(host, int(port)))
    rows = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in found["settings"].items()]
    said = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in found["said"].items()]
    text = '{{"settings": {{\n{}\n}}, "said": {{\n{}\n}}}}\n'.format(",\n".join(rows), ",\n".join(said))
    Path(out).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
