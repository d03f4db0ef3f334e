"""The page on finding a group's coordinator: every number on it is what the code, or a JVM, computes."""

from __future__ import annotations

import re
import shlex

import pytest

from comparison.cli.coordinating import coordinator
from coordinator.groups.placement import partition_of
from docs.generators.lookup_page import COMMAND, EXAMPLE, NAMES, PAGE, PARTITIONS, TRAP, java_abs, java_remainder, ways
from kernel.errors import UserError
from kernel.java_hash import INT_MIN, java_hash
from tests.coordinator.groups.test_placement import VECTORS
from tests.support.commands.called import output_of

TEXT = PAGE.read_text(encoding="utf-8")


def test_groups_on_the_lookup_page_are_placed_as_on_a_jvm():
    shown = {
        name: (int(hashed), int(place))
        for name, hashed, place in re.findall(r"^\| `(.+)` \| (-?\d+) \| (\d+) \|", TEXT, re.M)
    }
    assert set(shown) == set(NAMES)
    on_a_jvm = {name: (hashed, place) for name, hashed, place in VECTORS if name in NAMES}
    assert set(on_a_jvm) == set(NAMES)
    assert shown == on_a_jvm


def test_example_on_the_lookup_page_goes_through_the_name():
    steps = re.findall(r"^\| `(.)` \| (\d+) \| 31 · (-?\d+) \+ (\d+) = (-?\d+) \| (-?\d+) \|", TEXT, re.M)
    assert "".join(step[0] for step in steps) == EXAMPLE
    before = 0
    for letter, number, hashed, added, whole, after in steps:
        assert (ord(letter), before) == (int(number), int(hashed))
        assert int(whole) == 31 * before + int(added)
        assert (int(after) - int(whole)) % 2**32 == 0
        before = int(after)
    assert before == java_hash(EXAMPLE)


def test_only_the_smallest_hash_code_tells_the_articles_formula_from_kafkas():
    assert java_hash(TRAP) == INT_MIN
    assert [way.partition for way in ways(TRAP)] == [48, -48, 0, 0]
    for hashed in (INT_MIN + 1, INT_MIN + 2, -51, -50, -1, 0, 1, 49, 50, 2**31 - 1, java_hash(EXAMPLE)):
        assert java_abs(java_remainder(hashed, PARTITIONS)) == java_remainder(java_abs(hashed), PARTITIONS)
    assert ways(EXAMPLE)[0].partition == partition_of(EXAMPLE, PARTITIONS) != ways(EXAMPLE)[2].partition


def test_command_on_the_lookup_page_prints_the_partition():
    assert f"\n{COMMAND}\n" in TEXT
    assert (
        output_of(coordinator, *shlex.split(COMMAND)[3:])
        == f"{EXAMPLE}: partition {partition_of(EXAMPLE, PARTITIONS)} of {PARTITIONS}\n"
    )


def test_a_number_of_partitions_and_a_broker_to_ask_are_refused_together():
    with pytest.raises(UserError):
        output_of(coordinator, EXAMPLE, "--partitions", "50", "--bootstrap-server", "127.0.0.1:1")


@pytest.mark.parametrize("name", [EXAMPLE, TRAP])
def test_picture_of_the_lookup_shows_each_step(name):
    picture = (PAGE.parent / "diagrams" / "figures" / "coordinator-lookup.svg").read_text(encoding="utf-8")
    place = partition_of(name, PARTITIONS)
    for shown in (name, str(java_hash(name)), str(place), f"__consumer_offsets-{place}"):
        assert f">{shown}</text>" in picture
