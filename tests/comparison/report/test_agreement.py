"""Each figure that two surfaces show of a run is the same figure: the fast half, on runs written by hand."""

from __future__ import annotations

from pathlib import Path

from tests.support.runs.agreement import SHOWN, disagreements, figures_of
from tests.support.runs.seen_runs import analysed_inline, write_cut


def test_all_surfaces_say_the_same_of_a_cut_in_two_designs(tmp_path: Path) -> None:
    write_cut(tmp_path)
    found = dict(figures_of(tmp_path, analysed_inline(tmp_path)))
    assert {design: disagreements(said) for design, said in found.items()} == {"zookeeper": [], "eager": []}
    assert found["zookeeper"]["two_delivering_partition_s"]["playground"] > 3
    assert all(len(values) > 1 for said in found.values() for values in said.values())
    assert found["eager"].keys() >= set(SHOWN)
