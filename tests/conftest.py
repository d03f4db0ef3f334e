"""Fixtures that many tests share: a ZooKeeper and a Spark session for each process, a chroot for each test."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import itertools
import os
import re
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import kazoo.protocol.connection
import kazoo.retry
import pytest
from hypothesis import HealthCheck, Phase, settings
from xdist.scheduler import LoadFileScheduling

from comparison.interrupts import LIMIT_VARIABLE
from comparison.pipeline.spark.session import spark_session
from kernel.platform.lean_imports import collect_seldom
from kernel.platform.ports import free_ports
from kernel.trace.writer import SilentTracer
from kernel.zookeeper.chroot import ensure_chroot
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from tests.support.pages.browser import running_browser
from tests.support.properties import USUAL
from tests.support.runs.experiments import Laboratory
from tests.support.time.manual_clock import ManualClock
from tests.support.time.virtual_time import run_virtually
from tests.support.zookeeper.proxy import ZooKeeperProxy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# `make test` tries a quarter of the examples that a property asks for, `make test-long` ten times as many.
# How long an example takes depends more on the machine's other work than on what is tested. And do not explain a
# failure: that traces every line, which in Python 3.11 can crash the interpreter before the failure is printed.
settings.register_profile(
    "brief",
    deadline=None,
    max_examples=USUAL // 4,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
# CI tries the same examples in every run, so that a change fails by what it changed. Everyone else draws new ones.
settings.register_profile("repeatable", settings.get_profile("brief"), derandomize=True, database=None)
settings.register_profile("thorough", settings.get_profile("brief"), max_examples=10 * USUAL)
settings.load_profile("brief")

# A thread of kazoo's draws numbers for each ping and retry. One that another test's session has left for a moment would
# draw them from the generator that Hypothesis watches, and a strategy would be blamed for it.
kazoo.protocol.connection.random = kazoo.retry.random = Random()

# A shell lets what it starts in the background ignore Ctrl-C, and processes inherit that: tests would wait in vain.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine may take longer to end a command in order than a user has to wait for it.
os.environ.setdefault(LIMIT_VARIABLE, "60")

_numbers = itertools.count()

# What is imported and collected stays: the garbage collector need not walk through it again and again.
gc.disable()
collect_seldom()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """DuckDB complains at length of what it was not given back."""
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seed", type=int, help="the seed of every scenario of the failure-injection tests (default: one of their own)"
    )


class _FilesOfTests(LoadFileScheduling):
    """A file of tests goes to one process; those whose tests share Spark's session, all to the same."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "spark" if _shares_spark(self.config.rootpath / file) else file


@functools.cache
def _shares_spark(file: Path) -> bool:
    return re.search(r"\b(spark: SparkSession|laboratory: Laboratory)", file.read_text(encoding="utf-8")) is not None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    return _FilesOfTests(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test on an event loop of its own: in virtual time, if it asks for `virtual_clock`.

    Tests with `@given` stay synchronous: Hypothesis calls them itself.
    """
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    work = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames})
    clock = pyfuncitem.funcargs.get("virtual_clock")
    if clock is None:
        asyncio.run(work)
    else:
        run_virtually(work, clock)
    return True


@pytest.fixture
def virtual_clock() -> ManualClock:
    """What an `async def` test runs on that waits for timers alone: nothing takes any time."""
    return ManualClock()


@pytest.fixture
def link(chroot: str) -> Iterator[ZooKeeperProxy]:
    """The way to ZooKeeper, which a test can watch, hold and break."""
    with ZooKeeperProxy(chroot) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def given_seed(pytestconfig: pytest.Config) -> int | None:
    """--seed, if it is given."""
    seed: int | None = pytestconfig.getoption("--seed")
    return seed


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedZooKeeper]:
    """An embedded server; `zookeeper.connect_string` is host:port. Do not stop or pause this one: it is shared."""
    with EmbeddedZooKeeper(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
def chroot(zookeeper: EmbeddedZooKeeper) -> str:
    """host:port/test-N, a connect string whose chroot exists, is empty, and is used by this test alone."""
    connect_string = f"{zookeeper.connect_string}/test-{next(_numbers)}"
    asyncio.run(ensure_chroot(connect_string, tracer=SilentTracer(), name="chroot", connection_timeout_ms=60_000))
    return connect_string


@pytest.fixture
def unused_port() -> int:
    """A loopback port on which no server listens."""
    return free_ports(1)[0]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for the pages that a module tests; skips without one."""
    with running_browser() as started:
        yield started


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all tests, because a process has only one."""
    with spark_session("local[2]", work_dir=tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="session")
def laboratory(spark: SparkSession) -> Iterator[Laboratory]:
    """Where tests run whole scenarios."""
    with closing(Laboratory(spark)) as shared:
        yield shared
