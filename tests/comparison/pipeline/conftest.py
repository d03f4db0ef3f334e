"""One Spark session for all the tests of the pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from comparison.pipeline.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session("local[2]", work_dir=tmp_path_factory.mktemp("spark")) as session:
        yield session
