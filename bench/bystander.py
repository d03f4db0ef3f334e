"""A client unrelated to the herd, which reads and writes a znode of its own and times both.

The znode is `/bystander` on the server named on the command line. Each line on standard input is answered with the
times since the last one: {"get": [ms, ...], "set": [ms, ...]}. The end of the input ends the process.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from kazoo.client import KazooClient

PATH = "/bystander"
PAUSE_S = 0.004


class Bystander:
    def __init__(self, server: str) -> None:
        self._client = KazooClient(server, timeout=30)
        self._lock = threading.Lock()
        self._times: dict[str, list[float]] = {"get": [], "set": []}
        self._ended = threading.Event()

    def run(self) -> None:
        self._client.start()
        self._client.ensure_path(PATH)
        while not self._ended.wait(PAUSE_S):
            self._time("get", lambda: self._client.get(PATH))
            self._time("set", lambda: self._client.set(PATH, b"x" * 64))
        self._client.stop()
        self._client.close()

    def _time(self, what: str, do: object) -> None:
        assert callable(do)
        started = time.perf_counter()
        do()
        took_ms = (time.perf_counter() - started) * 1000
        with self._lock:
            self._times[what].append(took_ms)

    def take(self) -> dict[str, list[float]]:
        with self._lock:
            taken, self._times = self._times, {"get": [], "set": []}
        return taken

    def end(self) -> None:
        self._ended.set()


def main() -> None:
    bystander = Bystander(sys.argv[1])
    thread = threading.Thread(target=bystander.run)
    thread.start()
    for _ in sys.stdin:
        sys.stdout.write(json.dumps(bystander.take()) + "\n")
        sys.stdout.flush()
    bystander.end()
    thread.join()


if __name__ == "__main__":
    main()
