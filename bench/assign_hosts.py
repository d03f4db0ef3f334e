"""Child processes that run the measured assignors, each on a core of its own, killed when a call takes too long.

Kafka's classes run in one warm JVM (`AssignorHost.java`, compiled by the Janino that comes with Spark). Python's run in
one process per call (`assign_child`), so that memory growth is that of the call. Both answer in JSON lines: "assigning"
when the clock starts, "run" with figures, "done" or "failed".
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from comparison.originals import jars
from comparison.originals.java import logging_options
from kernel.errors import EnvironmentFault
from kernel.platform.jre import find_java
from kernel.platform.processes import start_child, stop_child

if TYPE_CHECKING:
    from collections.abc import Sequence

KAFKA = "4.1.1"
#: For starting and reading the input, which are not measured.
_LOADING_S = 300.0

#: Limit of a call's wall-clock time, as a multiple of its CPU seconds.
PATIENCE = 20
#: Pins itself to a core, limits its memory, and becomes the command.
_ON_A_CORE = """
import os, resource, sys
core, megabytes = int(sys.argv[1]), int(sys.argv[2])
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {core})
if megabytes:
    resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20, megabytes * 2**20))
os.execvp(sys.argv[3], sys.argv[3:])
"""


def cores() -> tuple[int, int]:
    """One core for ours and one for the others; the same core if there is only one."""
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    return usable[0], usable[-1]


def java_options(heap_mb: int) -> tuple[str, ...]:
    """Options of the JVM; the rest are defaults. On one core the serial collector is the default."""
    return f"-Xmx{heap_mb}m", "-Xms256m", "-XX:+UseSerialGC"


@dataclass(frozen=True)
class Limit:
    """Time limit of one call, and its clock."""

    seconds: float
    by_cpu: bool


@dataclass
class Call:
    """Result of one call: figures of its runs, or the reason why there are none."""

    runs: list[dict[str, Any]] = field(default_factory=list)
    over: bool = False  #: over the limit, and killed
    failed: str = ""


class Child:
    """A process that answers in JSON lines."""

    def __init__(self, command: Sequence[str], core: int, log: Path, *, memory_mb: int = 0) -> None:
        launcher = [sys.executable, "-S", "-c", _ON_A_CORE, str(core), str(memory_mb), *command]
        self._log = log
        with log.open("ab") as to:
            self._process = start_child(
                launcher,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=to,
                cwd=Path(__file__).parents[1],
                environment={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(json.loads(line))
        self._lines.put(None)

    def ready(self) -> dict[str, Any]:
        """Wait for its first line. Raises `EnvironmentFault` if it ends instead."""
        said = self._next(Limit(_LOADING_S, by_cpu=False))
        if said is None:
            raise EnvironmentFault(f"a process of the bench did not start; its log is {self._log}")
        return said

    def call(self, line: str, limit: Limit) -> Call:
        """Make one call with all its runs. A child that exceeds the limit is killed and cannot be used again."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()
        made, now = Call(), Limit(_LOADING_S, by_cpu=False)
        while True:
            try:
                said = self._next(now)
            except TimeoutError:
                self.close()
                if now is not limit:
                    raise EnvironmentFault(f"no call within {_LOADING_S:g} s; its log is {self._log}") from None
                made.over = not made.runs
                return made
            if said is None or said["event"] == "failed":
                made.failed = "ended" if said is None else said["error"]
                return made
            if said["event"] == "done":
                return made
            if said["event"] == "run":
                made.runs.append(said)
            now = limit if said["event"] == "assigning" else Limit(_LOADING_S, by_cpu=False)

    def _next(self, limit: Limit) -> dict[str, Any] | None:
        """The next line, or None if the child has ended. Raises TimeoutError."""
        begin, cpu_begin = time.monotonic(), self._cpu_s()
        while True:
            with contextlib.suppress(queue.Empty):
                return self._lines.get(timeout=0.25)
            waited = time.monotonic() - begin
            # A child that hangs must not hold up everything forever; one on a busy machine may take its time.
            spent = max(self._cpu_s() - cpu_begin, waited / PATIENCE) if limit.by_cpu else waited
            if spent > limit.seconds:
                raise TimeoutError

    def _cpu_s(self) -> float:
        try:
            times = psutil.Process(self._process.pid).cpu_times()
        except psutil.Error:
            return 0.0
        return float(times.user + times.system)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def close(self) -> None:
        """End the process. Idempotent."""
        stop_child(self._process, grace_s=0.5)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


class Java:
    """Kafka's classes in a JVM; a killed one is replaced by a new one, warmed up again."""

    def __init__(self, folder: Path, heap_mb: int, warm: Sequence[str]) -> None:
        """`warm`: lines of warm-up calls, whose results are dropped.

        Raises `OriginalsUnavailable` without Kafka's jars, `EnvironmentFault` without Java.
        """
        self._log = folder / "java.log"
        self._warm = warm
        compiler = [_spark_jar("janino"), _spark_jar("commons-compiler")]
        class_path = os.pathsep.join(map(str, [*compiler, *jars.class_path(KAFKA)]))
        self._command = [
            str(find_java().path),
            *java_options(heap_mb),
            "-XX:-UsePerfData",
            *logging_options("ERROR"),
            *("-cp", class_path),
            *("org.codehaus.janino.JavaSourceClassLoader", "-sourcepath", str(Path(__file__).parent), "AssignorHost"),
        ]
        self._child: Child | None = None
        self.version = ""

    def call(self, line: str, limit: Limit) -> Call:
        return self._running().call(line, limit)

    def _running(self) -> Child:
        if self._child is None or self._child.has_ended:
            self._child = Child(self._command, cores()[1], self._log)
            self.version = self._child.ready()["java"]
            for line in self._warm:
                warmed = self._child.call(line, Limit(_LOADING_S, by_cpu=False))
                if warmed.failed or warmed.over:
                    raise EnvironmentFault(f"cannot run Kafka's classes ({warmed.failed}); the log is {self._log}")
        return self._child

    def close(self) -> None:
        if self._child is not None:
            self._child.close()


def call_python(request: dict[str, Any], limit: Limit, folder: Path, *, memory_mb: int = 0) -> Call:
    """Make one call in a process of its own."""
    child = Child([sys.executable, "-m", "bench.assign_child"], cores()[0], folder / "python.log", memory_mb=memory_mb)
    try:
        return child.call(json.dumps(request), limit)
    finally:
        child.close()


def _spark_jar(name: str) -> Path:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    found = sorted((Path(spec.origin).parent / "jars").glob(f"{name}-[0-9]*.jar"))
    if not found:
        raise EnvironmentFault(f"Spark no longer has a {name} jar, with which the bench compiles its Java host")
    return found[0]
