"""A stock member for `docs.generators.original_records`, in a process of its own so that it can be killed.

    python -m docs.generators.stock_member SETTINGS TOPIC

Runs librdkafka's consumer with these settings (JSON). Each call of its listener is a line of JSON: whether it gained
or lost partitions, and which. It leaves the group when its input ends.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer

if TYPE_CHECKING:
    from collections.abc import Callable

_POLL_S = 0.05


def main() -> None:
    settings, topic = json.loads(sys.argv[1]), sys.argv[2]
    ended = threading.Event()

    def until_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=until_the_end, daemon=True).start()
    consumer = Consumer({**settings, "log_level": 3})
    consumer.subscribe([topic], on_assign=_reports("gains"), on_revoke=_reports("loses"), on_lost=_reports("loses"))
    while not ended.is_set():
        consumer.poll(_POLL_S)
    consumer.close()


def _reports(what: str) -> Callable[[object, list[Any]], None]:
    def report(_: object, partitions: list[Any]) -> None:
        sys.stdout.write(json.dumps({what: [each.partition for each in partitions]}) + "\n")
        sys.stdout.flush()

    return report


if __name__ == "__main__":
    main()
