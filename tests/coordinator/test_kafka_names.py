"""Every behaviour of a coordinator that Kafka tests has a live test here, or a reason why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kafka_names.markers import covered, named_in_prose
from tests.support.kafka_names.names import CLASSES, LEFT_OUT, NAMES

COVERED = covered()


def test_every_test_of_kafkas_has_a_live_test_or_a_reason():
    missing = sorted(NAMES - COVERED.keys() - LEFT_OUT.keys())
    assert not missing, f"mark a test with each of these, or say in kafka_names.LEFT_OUT why there is none: {missing}"


def test_markers_name_only_what_kafka_has():
    unknown = {name: tests for name, tests in COVERED.items() if name not in NAMES}
    assert not unknown, f"no test of Kafka's coordinator has these names: {unknown}"


def test_reasons_are_for_names_that_exist_and_have_no_test():
    assert not LEFT_OUT.keys() - NAMES
    assert not LEFT_OUT.keys() & COVERED.keys(), "left out with a reason, but covered"


def test_number_of_names_equals_the_checklists():
    sizes = [sum(map(len, groups.values())) for groups in CLASSES.values()]
    assert sizes == [163, 155, 37, 14, 9, 30, 41, 4]


# -- the collector itself -----------------------------------------------------------------------------------------

MODULE = """
import pytest
{module_mark}

@pytest.mark.kafka("one", "two")
{mark}
def {function}():
    assert True
"""


@pytest.mark.parametrize(
    ("module_mark", "mark", "function", "seen"),
    [
        ("", "", "test_it", True),
        ("", "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.xfail)])", "test_it", True),
        ("", "@pytest.mark.skip(reason='later')", "test_it", False),
        ("", "@pytest.mark.xfail", "test_it", False),
        ("", "@pytest.mark.long", "test_it", False),
        ("pytestmark = [pytest.mark.originals]", "", "test_it", False),
        ("", "", "not_a_test", False),
    ],
)
def test_only_live_tests_count(tmp_path: Path, module_mark: str, mark: str, function: str, seen: bool):
    text = MODULE.format(module_mark=module_mark, mark=mark, function=function)
    (tmp_path / "test_some.py").write_text(text)
    expected = [f"test_some.py::{function}"]
    assert covered(tmp_path) == ({"one": expected, "two": expected} if seen else {})


def test_conversation_counts_only_while_a_test_plays_it(tmp_path: Path):
    folder = tmp_path / "groups" / "conversations"
    folder.mkdir(parents=True)
    (folder / "some.txt").write_text("# Prose.\n# kafka: one two\n\njoin a\n----\n")
    assert covered(tmp_path) == {}
    player = folder.parent / "test_conversations.py"
    player.write_text("def test_conversation_equals_the_recording(path): ...\n")
    played = ["groups/test_conversations.py::test_conversation_equals_the_recording[some]"]
    assert covered(tmp_path) == {"one": played, "two": played}


def test_names_in_prose_are_only_at_the_head():
    assert named_in_prose("# A group.\n# kafka: one two\n# kafka: three\n\n# kafka: four\n") == ("one", "two", "three")
