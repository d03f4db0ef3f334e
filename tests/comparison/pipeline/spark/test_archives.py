"""Workers import PySpark from where it is installed, not from the archive beside it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from comparison.pipeline.spark.archives import leave_out_archives

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_worker_has_pyspark_from_where_the_driver_has_it(spark: SparkSession) -> None:
    # Shipped as it is, because it is local: workers cannot import the tests.
    def origins(_: int) -> list[str]:
        return [str(sys.modules[name].__file__) for name in ("pyspark", "py4j")]

    (found,) = spark.sparkContext.parallelize([0], 1).map(origins).collect()
    assert found[0] == pyspark.__file__
    assert ".zip" not in found[1]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages with an installed PySpark, which alone is on the path."""
    (tmp_path / "pyspark" / "python" / "lib").mkdir(parents=True)
    (tmp_path / "pyspark" / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def test_only_an_archive_of_what_is_installed_beside_it_is_left_out(installed: Path) -> None:
    archives = installed / "pyspark" / "python" / "lib"
    others = [
        str(archives / "py4j-0.10.9-src.zip"),  # py4j is not installed here
        "/elsewhere/pyspark/python/lib/pyspark.zip",
        str(installed / "mine.zip"),
        "",
    ]
    sys.path[:0] = [str(archives / "pyspark.zip"), *others]
    leave_out_archives()
    assert sys.path == [*others, str(installed)]
