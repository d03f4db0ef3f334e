"""Stock admin clients against a live broker: each creates a topic, alters, describes, empties and deletes it.

Each must see what it saw of a real 4.1.1 broker (`tests.support.stock.admins`).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.brokers.live import broker_thread

SEEN: dict[str, dict[str, Any]] = {
    "confluent-kafka": {
        "cluster": [1, 1, 7],
        "configs": {"cleanup.policy": "delete", "max.message.bytes": "5000", "retention.ms": "70000"},
        "default": [True, False],
        "earliest": [2],
        "elected": ["ELECTION_NOT_NEEDED"],
        "low watermark": 2,
        "topic": [2, 8],
        "wrong": "INVALID_CONFIG",
    },
    "kafka-python": {
        "by id": True,
        "cluster": [1, 1],
        "configs": {"max.message.bytes": "5000", "retention.ms": "70000"},
        "low watermark": [2],
        "partitions": [1, 1],
        "sizes": [True, False],
        "wrong": "INVALID_CONFIG",
    },
    "aiokafka": {
        "cluster": [1, 1],
        "configs": {"max.message.bytes": "5000", "retention.ms": "604800000"},
        "created": [0],
        "low watermark": 2,
        "topic": 2,
        "wrong": [40],
    },
}


@pytest.mark.parametrize("client", SEEN)
def test_admin_client_sees_what_it_saw_of_4_1_1(chroot: str, tmp_path: Path, client: str) -> None:
    with broker_thread(chroot, tmp_path) as bootstrap:
        command = [sys.executable, "-m", "tests.support.stock.admins", client, bootstrap]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout) == SEEN[client]
