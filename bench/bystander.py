"""A client unrelated to the herd, which reads and writes a znode of its own and times both.

The znode is `/bystander` on the server named on the command line. Each line on standard input is answered with the
times since the last one: {"get": [ms, ...], "set": [ms, ...]}. The end of the input ends the process.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from kazoo.client import KazooClient

from comparison.scenarios.processes.host import Host

if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "/bystander"
PAUSE_S = 0.004


class Bystander:
    def __init__(self, server: str) -> None:
        self._client = KazooClient(server, timeout=30)
        self._lock = threading.Lock()
        self._times: dict[str, list[float]] = {"get": [], "set": []}
        self.ended = threading.Event()

    def run(self) -> None:
        self._client.start()
        self._client.ensure_path(PATH)
        while not self.ended.wait(PAUSE_S):
            self._time("get", lambda: self._client.get(PATH))
            self._time("set", lambda: self._client.set(PATH, b"x" * 64))
        self._client.stop()
        self._client.close()

    def _time(self, what: str, do: Callable[[], object]) -> None:
        started = time.perf_counter()
        do()
        took_ms = (time.perf_counter() - started) * 1000
        with self._lock:
            self._times[what].append(took_ms)

    def take(self) -> dict[str, list[float]]:
        with self._lock:
            taken, self._times = self._times, {"get": [], "set": []}
        return taken


def main() -> None:
    bystander = Bystander(sys.argv[1])
    thread = threading.Thread(target=bystander.run)
    thread.start()
    Host().write({"event": "ready"})
    for _ in sys.stdin:
        Host().write(bystander.take())
    bystander.ended.set()
    thread.join()


if __name__ == "__main__":
    main()
