"""Spark, for an analysis of your own: it starts with the Java that this package has."""

from __future__ import annotations

from comparison.pipeline.session import spark_session
from kernel.jre import spark_java_home

__all__ = ["spark_java_home", "spark_session"]
