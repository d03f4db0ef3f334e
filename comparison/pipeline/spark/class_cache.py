"""Spark's classes, archived once by `python -m comparison.pipeline.spark.training` (see `class_archives`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark

from comparison.pipeline.spark.jvm import spark_jars
from kernel.errors import RebalanceLabError
from kernel.platform.class_archives import archive_path, loading_options
from kernel.platform.jre import find_java

if TYPE_CHECKING:
    from pathlib import Path

    from kernel.platform.jre import JavaRuntime


def archive_of(java: JavaRuntime) -> Path:
    """Where this Java's archive is or would be: 180 MB."""
    return archive_path("spark", pyspark.__version__, java, spark_jars())


def options_of_archive() -> list[str]:
    """The JVM's options for using the archive; none if there is no archive."""
    try:
        java = find_java()
        return loading_options(java, archive_of(java))
    except (RebalanceLabError, OSError):
        return []
