"""A consumer of pykafka: `python pykafka_member.py KIND BOOTSTRAP ZOOKEEPER GROUP TOPIC`.

Prints a line for each record, and commits every fifth of a second. SIGTERM: it commits, leaves and ends. It runs with
pykafka and its own kazoo, and imports nothing of ours.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading

from pykafka import KafkaClient
from pykafka.common import OffsetType

SETTINGS = {
    "auto_commit_enable": True,
    "auto_commit_interval_ms": 200,
    "auto_offset_reset": OffsetType.EARLIEST,
    "consumer_timeout_ms": 200,
    "fetch_wait_max_ms": 100,
}
#: What each kind shares its partitions out through.
BALANCED = {"balanced": "zookeeper", "managed": "coordinator"}


def main(kind: str, bootstrap: str, zookeeper: str, group: str, topic: str) -> None:
    logging.basicConfig(level=logging.WARNING)
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    client = KafkaClient(hosts=bootstrap)  # its topics know it only weakly
    reader = client.topics[topic.encode()]
    if kind == "simple":
        consumer = reader.get_simple_consumer(consumer_group=group.encode(), **SETTINGS)
    elif kind == "managed":
        consumer = reader.get_balanced_consumer(group.encode(), managed=True, heartbeat_interval_ms=200, **SETTINGS)
    else:
        consumer = reader.get_balanced_consumer(
            group.encode(),
            zookeeper_connect=zookeeper,
            zookeeper_connection_timeout_ms=30_000,
            rebalance_max_retries=20,
            rebalance_backoff_ms=200,
            **SETTINGS,
        )
    while not stopping.is_set():
        message = consumer.consume()
        if message is not None:
            sys.stdout.write(json.dumps([message.partition_id, message.offset]) + "\n")
            sys.stdout.flush()
    consumer.commit_offsets()
    consumer.stop()
    os._exit(0)  # it leaves threads behind


if __name__ == "__main__":
    main(*sys.argv[1:])
