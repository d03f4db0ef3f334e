"""One Spark session per command: on this machine or a cluster, quiet, and ended with the command.

`starting_session` starts the JVM in the background, so that the command can do other things meanwhile;
`spark_session` is the same for those who need the session at once.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from comparison.interrupts import Interrupted, reacting
from comparison.pipeline.spark.class_cache import options_of_archive
from comparison.pipeline.spark.connect import ConnectSession, connected_session
from comparison.pipeline.spark.jvm import STOP_TIMEOUT_S, DriverJvm, Gateway, launch
from comparison.pipeline.spark.master import MasterKind, check_reachable, parse_master
from comparison.pipeline.spark.messages import SparkFailed, in_short, with_remedy
from comparison.pipeline.spark.options import SparkOptions, checked_memory
from comparison.pipeline.spark.settings import JVM_OPTIONS, SHUFFLE_PARTITIONS, settings_of, shuffle_partitions
from comparison.pipeline.spark.shipping import packed_code
from kernel.errors import ConfigurationError, EnvironmentFault
from kernel.platform.class_archives import recording_options
from kernel.platform.interpreter import PYTHON
from kernel.platform.requirements import require_machine
from kernel.platform.swept_folder import swept_folder
from kernel.waiting import WaitTimeout, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from comparison.pipeline.spark.master import Master


#: The prefix of Spark's scratch folders in the system's temporary folder.
SCRATCH_PREFIX = "rebalance-lab-spark-"
#: How long a cluster may take to give us the first executor.
EXECUTORS_TIMEOUT_S = 60.0
#: The rest of the executors register about when the first does: the wait ends when none has for this long.
_SETTLED_S = 0.5
#: How long the JVM may take to write an archive of its classes.
RECORD_TIMEOUT_S = 300.0
_ENDED_S = 10.0
#: How Spark begins when it finds a setting wrong, some of them only when they are used.
_BAD_SETTING = "[INVALID_CONF_VALUE"


@contextmanager
def spark_session(master: str = "local[*]", *, work_dir: Path | None = None) -> Iterator[SparkSession]:
    """A session for the duration of the block.

    `master` is any supported Spark master URL; `work_dir` (a temporary one by default) holds Spark's scratch files and
    its log. Raises EnvironmentFault if Java or Spark does not start, or the master does not answer.
    """
    with starting_session(master, work_dir=work_dir) as starting:
        yield starting.session()


@contextmanager
def starting_session(
    master: str = "local[*]",
    *,
    work_dir: Path | None = None,
    memory: str = "1g",
    options: SparkOptions | None = None,
    record: Path | None = None,
    ships: Sequence[ModuleType] = (),
    at_once: bool = True,
) -> Iterator[StartingSession | ConnectSession]:
    """As `spark_session`, but the session starts in the background until `session()` is called.

    Or only with that call, if it need not start `at_once`. `ships` are packages that tasks need beside the pipeline.
    `record` is where the JVM writes an archive of the classes that it has loaded (`kernel.platform.class_archives`).
    """
    if SparkContext._active_spark_context is not None:
        raise RuntimeError("a Spark session is already running; a command can have only one")
    require_machine()  # the driver would try one port after the other
    chosen, place = options or SparkOptions(), parse_master(master)
    check_reachable(place, chosen)
    with _scratch_folder(work_dir) as (scratch, held):
        if place.kind is MasterKind.CONNECT:
            with connected_session(place.url, chosen.conf, scratch, ships) as connected:
                yield connected
            return
        settings = settings_of(place, scratch, checked_memory(memory), chosen)
        start = _Start(place, chosen, settings, scratch, held, tuple(ships))
        starting = StartingSession(start, options_of_archive() if record is None else recording_options(record))
        if at_once:
            starting.start()
        try:
            with _interrupts_prevail(starting):
                yield starting
        except KeyboardInterrupt:
            # The rest of the job is not needed, and an orderly stop would wait for it.
            starting.kill()
            raise
        except (PySparkException, Py4JJavaError) as error:
            # Read the message now: it is in the JVM, which is about to end.
            message = with_remedy(in_short(str(error)), local=place.is_local)
            raise (ConfigurationError if message.startswith(_BAD_SETTING) else SparkFailed)(message) from None
        except (Py4JError, ConnectionError) as error:
            jvm = starting.jvm
            if jvm is None or not jvm.has_ended():
                raise
            raise SparkFailed(
                f"Spark's JVM ended with code {jvm.process.returncode} during the analysis; check free memory and the "
                f"disk of {scratch}; {jvm.tail()}"
            ) from error
        finally:
            starting.close(STOP_TIMEOUT_S if record is None else RECORD_TIMEOUT_S)


@contextmanager
def _scratch_folder(work_dir: Path | None) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """A folder that is removed when its last user has ended, however it ended; and the descriptors that a process using
    it must inherit: the JVM may outlive this process.
    """
    if work_dir is not None:
        work_dir.mkdir(parents=True, exist_ok=True)
        yield work_dir.resolve(), ()
        return
    with swept_folder(SCRATCH_PREFIX) as (folder, held):
        yield folder, (held,)


@contextmanager
def _interrupts_prevail(starting: StartingSession) -> Iterator[None]:
    """Raise KeyboardInterrupt also if an error has replaced it on its way, or if it was lost (`ended_by_signals`).

    PySpark calls the JVM as it leaves a block, and after an interrupt that call may find its connection cut.
    """
    try:
        yield
    except Exception as error:
        if starting.killed:
            raise KeyboardInterrupt from error
        replaced = error.__context__
        while replaced is not None:
            if isinstance(replaced, KeyboardInterrupt):
                raise KeyboardInterrupt from error
            replaced = replaced.__context__
        raise
    if starting.killed:
        raise KeyboardInterrupt


@dataclass(frozen=True, slots=True)
class _Start:
    """What a JVM is started with."""

    master: Master
    chosen: SparkOptions
    settings: Mapping[str, str]
    scratch: Path
    held: tuple[int, ...]
    ships: tuple[ModuleType, ...]

    def launched(self, *more: str) -> DriverJvm:
        return launch(
            self.settings, [*JVM_OPTIONS, *more], self.scratch, self.held, with_executors=not self.master.is_local
        )


class StartingSession:
    """A session on its way: a thread waits for the JVM and connects to it."""

    def __init__(self, start: _Start, archive_options: Sequence[str]) -> None:
        self._start = start
        self._archive_options = archive_options
        self._closing = False
        self.jvm: DriverJvm | None = None  #: none until it is started
        self._connected: Future[SparkSession] = Future()
        self._thread = threading.Thread(target=self._connecting, name="Spark's start", daemon=True)

    def start(self) -> None:
        """Start the JVM, if that has not been done."""
        if self.jvm is None:
            self.jvm = self._start.launched(*self._archive_options)
            self._thread.start()

    @property
    def killed(self) -> bool:
        return self._closing

    @contextmanager
    def ended_by_signals(self) -> Iterator[None]:
        """Let signals end the JVM inside the block, in addition to raising `Interrupted`.

        That alone is lost where it is raised in a callback, as py4j has them for objects that are freed: Python would
        report it there, and go on.
        """

        def interrupt() -> None:
            self.kill()
            raise Interrupted

        def report(unraisable: sys.UnraisableHookArgs) -> None:
            if not issubclass(unraisable.exc_type, KeyboardInterrupt):
                report_before(unraisable)

        report_before, sys.unraisablehook = sys.unraisablehook, report
        try:
            with reacting(interrupt):
                yield
        finally:
            sys.unraisablehook = report_before

    def session(self) -> SparkSession:
        """Wait until the session is there. Raises EnvironmentFault if it cannot be started."""
        if self._closing and self.jvm is None:
            raise Interrupted
        self.start()
        return self._connected.result()

    def kill(self) -> None:
        """End the JVM at once, whatever it is doing."""
        self._closing = True
        _hush()
        if self.jvm is not None:
            self.jvm.kill()

    def close(self, timeout_s: float) -> None:
        """Stop what has started; at once if that is not finished."""
        if self.jvm is None:
            return
        if not self._connected.done():
            self.kill()
        self._thread.join(_ENDED_S)
        _stop_spark()
        self.jvm.stop(timeout_s)

    def _connecting(self) -> None:
        try:
            self._connected.set_result(self._session())
        except BaseException as error:  # noqa: BLE001  # whoever asks for the session gets it
            self._connected.set_exception(error)

    def _session(self) -> SparkSession:
        master, settings = self._start.master, self._start.settings
        spark = _connect(self._gateway(), settings, master, self._start.chosen)
        if not master.is_local:
            _ship(spark, self._start)
            _await_executors(spark, master, settings)
        cores = master.cores or spark.sparkContext.defaultParallelism
        spark.conf.set(SHUFFLE_PARTITIONS, str(shuffle_partitions(settings, cores)))
        return spark

    def _gateway(self) -> Gateway:
        assert self.jvm is not None
        try:
            return self.jvm.gateway()
        except EnvironmentFault:
            if not self._archive_options or self._closing:
                raise
        # The JVM ignores an archive that does not fit; should one ever crash it, it starts without.
        self.jvm = self._start.launched()
        return self.jvm.gateway()


def _connect(gateway: Gateway, settings: Mapping[str, str], master: Master, chosen: SparkOptions) -> SparkSession:
    """Create the session on our JVM; PySpark finds it through two environment variables."""
    contact = {
        "PYSPARK_GATEWAY_PORT": str(gateway.port),
        "PYSPARK_GATEWAY_SECRET": gateway.secret,
        "PYSPARK_PYTHON": chosen.python or PYTHON,
    }
    before = {name: os.environ[name] for name in contact if name in os.environ}
    os.environ.update(contact)
    try:
        SparkContext._ensure_initialized()
        if master.kind is MasterKind.STANDALONE:
            _check_registers(master, settings)
        builder = SparkSession.builder
        for name, value in settings.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    except (Py4JJavaError, PySparkException) as error:
        raise EnvironmentFault(f"Spark does not start with the master {master.url}: {in_short(str(error))}") from None
    finally:
        for name in contact:
            del os.environ[name]
        os.environ.update(before)


def _check_registers(master: Master, settings: Mapping[str, str]) -> None:
    """Ask whether a master of our Spark's version is at the address, before Spark asks it for a minute.

    Raises EnvironmentFault if not. Spark's own client does it, so that secrets and TLS are as set.
    """
    java = SparkContext._jvm.org.apache.spark  # type: ignore[union-attr]
    conf = java.SparkConf(True)
    for name, value in settings.items():
        conf.set(name, value)
    security = java.SecurityManager(
        conf, *(getattr(java.SecurityManager, f"$lessinit$greater$default${number}")() for number in (2, 3))
    )
    network = java.rpc.RpcEnv.create("rebalance-lab", settings["spark.driver.host"], 0, conf, security, True)
    complaints = []
    try:
        for host, port in master.addresses:
            try:
                network.setupEndpointRef(java.rpc.RpcAddress(host, port), "Master")
            except Py4JJavaError as error:
                complaints.append(in_short(str(error)))
            else:
                return
    finally:
        network.shutdown()
    raise EnvironmentFault(
        f"{master.url} is no Spark master, or not of version {pyspark.__version__} "
        f"({'; '.join(complaints)}). Correct --master"
    )


def _ship(spark: SparkSession, start: _Start) -> None:
    """Send our code to the executors, and keep it out of this process's own path."""
    before = list(sys.path)
    spark.addArtifacts(str(packed_code(start.scratch, start.ships)), pyfile=True)
    sys.path[:] = before


def _await_executors(spark: SparkSession, master: Master, settings: Mapping[str, str]) -> None:
    """Wait for the first executor and those that come with it; Spark would wait for ever."""
    jvm_context = spark.sparkContext._jsc.sc()
    last_s = time.monotonic()
    known = 0

    def settled() -> bool:
        nonlocal known, last_s
        executors = jvm_context.getExecutorMemoryStatus().size() - 1
        if executors != known:
            known, last_s = executors, time.monotonic()
        return executors > 0 and time.monotonic() - last_s >= _SETTLED_S

    try:
        wait_until(settled, EXECUTORS_TIMEOUT_S, "an executor", every_s=0.1)
    except (WaitTimeout, Py4JJavaError) as error:
        if known:
            return
        message = in_short(str(error))
        raise EnvironmentFault(
            f"{master.url} starts no executor for us ({message}): its workers may be busy or gone, may have less than "
            f"{settings['spark.executor.memory']} of memory (--memory), or cannot reach the driver at "
            f"{settings['spark.driver.host']} (--driver-host, --bind-address); the master's web page says more"
        ) from None


def _hush() -> None:
    """Let PySpark's server for accumulators, which are not used, end without a traceback as the JVM goes."""
    context = SparkContext._active_spark_context
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


def _stop_spark() -> None:
    """Stop the session cleanly if possible, and make PySpark forget it in any case."""
    spark, gateway = SparkSession._instantiatedSession, SparkContext._gateway
    if spark is not None:
        # After an interrupt the connection may be cut in the middle of an answer.
        with suppress(Py4JError, OSError), warnings.catch_warnings(action="ignore"):
            spark.stop()
    if gateway is not None:
        gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
