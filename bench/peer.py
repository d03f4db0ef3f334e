"""The peer of the part `heartbeats`: librdkafka's mock cluster (C, one thread) in a process of its own.

Prints its port and serves until its standard input ends.
"""

from __future__ import annotations

import sys

from confluent_kafka.admin import AdminClient


def main() -> None:
    admin = AdminClient({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = admin.list_topics(timeout=10).brokers.values()
    print(broker.port, flush=True)  # noqa: T201  # the parent reads it
    sys.stdin.read()


if __name__ == "__main__":
    main()
