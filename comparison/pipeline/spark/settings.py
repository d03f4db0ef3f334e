"""Spark's settings and the JVM's options for data of this size."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from comparison.pipeline.spark.options import ENVIRONMENT_FOLDER, SparkOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.pipeline.spark.master import Master

SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
PARTITIONS_MIN = 2
#: The JVM only plans and moves bytes, however large a run is, so the optimising compiler costs more than it saves: six
#: CPU seconds with fifty million events. The quick one must also compile huge methods, because Spark often generates
#: such code.
JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-DontCompileHugeMethods")
#: What forks workers on this machine.
DAEMON = "comparison.pipeline.spark.daemon"
#: How long Spark itself asks a master before it gives up; it then asks twice more.
_LOOKUP_TIMEOUT = "8s"


def settings_of(master: Master, scratch: Path, memory: str, chosen: SparkOptions | None = None) -> dict[str, str]:
    """All ports on loopback unless `chosen` says otherwise, no web interface; the user's settings come last."""
    chosen = chosen or SparkOptions()
    settings = {
        "spark.app.name": "rebalance-lab",
        "spark.master": master.url,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": chosen.host,
        "spark.driver.bindAddress": chosen.bind_on,
        "spark.driver.memory": memory,
        "spark.executor.memory": memory,
        "spark.executor.extraJavaOptions": " ".join(JVM_OPTIONS),
        "spark.rpc.lookupTimeout": _LOOKUP_TIMEOUT,
        "spark.local.dir": str(scratch / "scratch"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.cleaner.referenceTracking.blocking": "false",
    }
    if master.is_local:
        settings["spark.python.daemon.module"] = DAEMON
    if chosen.environment is not None:
        settings["spark.archives"] = f"{_absolute(chosen.environment)}#{ENVIRONMENT_FOLDER}"
    return {**settings, **_of_s3(), **chosen.conf}


def _of_s3() -> dict[str, str]:
    """What the environment says of S3's server, as for the clients in Python. Credentials Spark finds there itself."""
    settings = {}
    if region := os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        settings["spark.hadoop.fs.s3a.endpoint.region"] = region
    if endpoint := os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL"):
        settings["spark.hadoop.fs.s3a.endpoint"] = endpoint
        settings["spark.hadoop.fs.s3a.path.style.access"] = "true"  # other servers have no host for every bucket
    return settings


def _absolute(archive: str) -> str:
    return archive if ":/" in archive else str(Path(archive).resolve())


def shuffle_partitions(conf: Mapping[str, str], cores: int) -> int:
    """One a core, for queries of a user's own. Spark's default, 200, makes small ones four times slower."""
    if SHUFFLE_PARTITIONS in conf:
        return int(conf[SHUFFLE_PARTITIONS])
    if "spark.default.parallelism" in conf:
        return int(conf["spark.default.parallelism"])
    return max(PARTITIONS_MIN, cores)
