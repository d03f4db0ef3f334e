"""Spark, for an analysis of your own: it starts with the Java that this package has."""

from __future__ import annotations

from comparison.pipeline.spark.session import spark_session
from kernel.platform.jre import spark_java_home

__all__ = ["spark_java_home", "spark_session"]
