"""A session on a Spark Connect server (`--master sc://HOST:PORT`): a client without a JVM of its own.

The server's executors do the tasks, so traces and the output must be where they can reach them, and their Python needs
this package's dependencies. Our own code travels with the session, as an artifact.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from comparison.pipeline.spark.messages import SparkFailed, in_short, with_remedy
from comparison.pipeline.spark.settings import PARTITIONS_MIN, SHUFFLE_PARTITIONS
from comparison.pipeline.spark.shipping import packed_code
from kernel.errors import ConfigurationError, EnvironmentFault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType


#: More rows than a cluster has cores.
_MANY = 100_000


class ConnectSession:
    """A session of a Spark Connect server, opened when it is asked for."""

    def __init__(self, url: str, settings: Mapping[str, str], scratch: Path, ships: Sequence[ModuleType]) -> None:
        self._url, self._settings, self._scratch, self._ships = url, settings, scratch, ships
        self._spark: SparkSession | None = None

    def session(self) -> SparkSession:
        """Raises EnvironmentFault without the extra `connect`, or if the server opens no session."""
        if self._spark is None:
            self._spark = self._opened()
        return self._spark

    def _opened(self) -> SparkSession:
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # the error itself is raised as well
        try:
            spark = SparkSession.builder.remote(self._url).create()
        except ImportError as error:
            raise EnvironmentFault(
                f"a Spark Connect server needs packages that are not installed ({error}). "
                "Install rebalance-lab[connect]"
            ) from None
        except PySparkException as error:
            raise EnvironmentFault(f"{self._url} opens no session: {in_short(str(error))}") from None
        try:
            for name, value in self._settings.items():
                spark.conf.set(name, value)
        except PySparkException as error:
            raise ConfigurationError(f"{self._url} refuses a setting: {in_short(str(error))}") from None
        if SHUFFLE_PARTITIONS not in self._settings:
            cores = spark.range(_MANY).selectExpr("spark_partition_id() AS core").distinct().count()
            spark.conf.set(SHUFFLE_PARTITIONS, str(max(PARTITIONS_MIN, cores)))
        spark.addArtifacts(str(packed_code(self._scratch, self._ships)), pyfile=True)
        return spark

    @contextmanager
    def ended_by_signals(self) -> Iterator[None]:
        """End what the server does for this session when an interrupt ends the block."""
        try:
            yield
        except KeyboardInterrupt:
            if self._spark is not None:
                with suppress(PySparkException):
                    self._spark.interruptAll()
            raise

    def close(self) -> None:
        if self._spark is not None:
            with suppress(PySparkException):
                self._spark.stop()


@contextmanager
def connected_session(
    url: str, settings: Mapping[str, str], scratch: Path, ships: Sequence[ModuleType]
) -> Iterator[ConnectSession]:
    """A session for the duration of the block. Raises SparkFailed for a job that failed."""
    connected = ConnectSession(url, {"spark.sql.session.timeZone": "UTC", **settings}, scratch, ships)
    try:
        yield connected
    except PySparkException as error:
        raise SparkFailed(with_remedy(in_short(str(error)), local=False)) from None
    finally:
        connected.close()
