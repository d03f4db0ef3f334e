"""The options about Spark, which `analyze`, `run` and `compare` share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import click

from comparison.cli.options import with_options
from comparison.pipeline.spark.master import parse_master
from comparison.pipeline.spark.options import SparkOptions, checked_memory
from kernel.settings import split_pairs

MASTER, MEMORY = "local[*]", "1g"


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """Where and how an analysis runs."""

    master: str = MASTER
    memory: str = MEMORY
    options: SparkOptions = field(default_factory=SparkOptions)


#: For Spark on this machine.
spark_options = with_options(
    click.option(
        "--memory", metavar="SIZE", default=MEMORY, show_default=True, help="Memory of Spark's driver and executors."
    ),
    click.option("--spark-conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting. May be repeated."),
)
#: For Spark elsewhere, and those for Spark here.
cluster_options = with_options(
    click.option("--master", default=MASTER, show_default=True, help="Spark master, such as spark://HOST:7077."),
    click.option("--driver-host", metavar="HOST", help="This machine as the executors see it.  [default: 127.0.0.1]"),
    click.option(
        "--bind-address", metavar="HOST", help="Address to listen on for the executors.  [default: --driver-host]"
    ),
    click.option(
        "--environment", metavar="FILE", help="Packed Python environment for the executors (docs/cluster.md)."
    ),
    click.option("--executor-python", metavar="PATH", help="Python of the executors.  [default: this one's path]"),
    spark_options,
)


def chosen_spark(given: dict[str, Any]) -> SparkChoice:
    """Take the options out of a command's, and check them. Raises ConfigurationError or EnvironmentFault."""
    conf = split_pairs(given.pop("spark_conf"))
    names = ("driver_host", "bind_address", "environment", "executor_python")
    options = SparkOptions(conf=conf, **{name: given.pop(name, None) for name in names})
    master, memory = given.pop("master", MASTER), checked_memory(given.pop("memory"))
    parse_master(master)
    return SparkChoice(master, memory, options)
