"""Spark's errors in one line: they come with the stacks of the JVM and of Python around what was wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pyspark

from kernel.errors import RebalanceLabError

_LONGEST = 600
#: Lines that say where, not what.
_STACK = re.compile(r"\s+(?:at |File \"|\.\.\. \d+ more)|\s{4,}|\s*\^+\s*$|Traceback |(?:Driver|JVM) stacktrace")
_NOISE = re.compile(r"An error occurred while calling \S+\.?|Please see the stack trace below\.")
#: What Spark says without a connector for a store.
_WITHOUT_CONNECTOR = re.compile(
    r"Class \S+FileSystem not found|No FileSystem for scheme|ClassNotFoundException: \S+fs\.s3a"
)
#: What an executor without our needs says.
_LACKING = re.compile(r"ModuleNotFoundError|No module named|Cannot run program|PYTHON_VERSION_MISMATCH|ImportError")


class SparkFailed(RebalanceLabError):
    """A Spark job failed; the message is Spark's own."""


def in_short(text: str) -> str:
    """What was wrong, without where."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _STACK.match(line)]
    short = " ".join(_NOISE.sub("", " ".join(lines)).split()).removeprefix(": ")
    return short if len(short) <= _LONGEST else f"{short[:_LONGEST]}..."


def with_remedy(message: str, *, local: bool) -> str:
    """The message, and what to do if Spark lacks the connector for a store, or an executor what it needs."""
    if _WITHOUT_CONNECTOR.search(message):
        return f"Spark's connector for the store is missing: {message}. {_connector()}"
    if local or not _LACKING.search(message):
        return message
    return f"{message} (executors need our Python and its packages: see --environment and --executor-python)"


def _connector() -> str:
    jars = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    version = next((jar.stem.rpartition("-")[2] for jar in jars), "VERSION")
    return f"For s3a:// add --spark-conf spark.jars.packages=org.apache.hadoop:hadoop-aws:{version}"
