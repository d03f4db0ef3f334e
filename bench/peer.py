"""The peer of the part `heartbeats`: librdkafka's mock cluster (C, one thread) in a process of its own.

Prints its port and serves until its standard input ends.
"""

from __future__ import annotations

import sys

from confluent_kafka.admin import AdminClient

from comparison.scenarios.processes.host import Host


def main() -> None:
    admin = AdminClient({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = admin.list_topics(timeout=10).brokers.values()
    Host().write({"event": "ready", "port": broker.port})
    sys.stdin.read()


if __name__ == "__main__":
    main()
