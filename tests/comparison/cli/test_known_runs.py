"""An analysis of runs that are as the last one left them starts no JVM."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from comparison.cli.analysis import analysed
from comparison.pipeline.spark import session
from tests.support.runs.seen_runs import analysed_inline, write_cut


class Launched(Exception):
    pass


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither that of other tests, nor a new one."""

    def launch(*_: object, **__: object) -> None:
        raise Launched

    monkeypatch.setattr(pyspark.SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(session, "launch", launch)


def test_an_analysis_starts_a_jvm_only_for_what_is_new(tmp_path: Path) -> None:
    write_cut(tmp_path)
    with pytest.raises(Launched):
        analysed([tmp_path], tmp_path)
    result = analysed_inline(tmp_path)
    said: list[str] = []
    assert analysed([tmp_path], tmp_path, progress=said.append).result == result
    assert said == ["2 unchanged since the last analysis"]
    with pytest.raises(Launched):
        analysed([tmp_path], tmp_path, again=True)
    write_cut(tmp_path / "more")
    with pytest.raises(Launched):
        analysed([tmp_path], tmp_path)
