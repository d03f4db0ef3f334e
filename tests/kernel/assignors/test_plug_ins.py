"""Strategies that users plug in: found by entry point, loaded with clear errors, their answers checked."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tomllib
from pathlib import Path

import pytest

import rebalance_lab.assignors
from kernel.assignors.checking import BadAssignment
from kernel.assignors.random_choice import assign_at_random
from kernel.assignors.registry import ASSIGNORS, ENTRY_POINTS, JAVA_CLASSES, assignor, assignor_name, plugged_in
from kernel.assignors.subscription import MemberSubscription
from kernel.errors import ConfigurationError
from kernel.values import TopicPartition

ROOT = Path(__file__).resolve().parents[3]
GROUP = {"b": MemberSubscription(topics=("t",)), "a": MemberSubscription(topics=("t", "u"))}


@pytest.fixture(autouse=True)
def _forgotten():
    """Forget after each test what it has plugged in."""
    plugged_in.cache_clear()
    yield
    plugged_in.cache_clear()


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a distribution of one module: (its name, source, {entry point: where it points})."""

    def installed(module, source, entries):
        site = tmp_path / module
        metadata = site / f"{module}-1.dist-info"
        metadata.mkdir(parents=True)
        (site / f"{module}.py").write_text(source, encoding="utf-8")
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1\n", encoding="utf-8")
        lines = [f"[{ENTRY_POINTS}]", *(f"{name} = {value}" for name, value in entries.items())]
        (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        monkeypatch.syspath_prepend(str(site))

    return installed


def answering(install, answer):
    """Plug in a strategy that always gives this answer."""
    install("wrong_answer", f"def assign(sizes, group):\n    return {answer!r}\n", {"wrong": "wrong_answer:assign"})
    return assignor("wrong")


def test_strategy_of_an_installed_package_is_found_by_its_name(install):
    source = "def assign(sizes, group):\n    return {member: [] for member in group}\n"
    install("lazy_assignor", source, {"lazy": "lazy_assignor:assign"})
    assert assignor_name("lazy") == "lazy"
    assert assignor("lazy")({"t": 1}, GROUP) == {"a": [], "b": []}


def test_page_on_writing_an_assignor_is_correct(install):
    """The page's package is installed as printed, and its last example prints what the page says."""
    page = (ROOT / "docs" / "writing-an-assignor.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```(\w*)\n(.*?)```", page, re.DOTALL)
    (source, trial), (project,) = ([text for kind, text in blocks if kind == wanted] for wanted in ("python", "toml"))
    entries = tomllib.loads(project)["project"]["entry-points"][ENTRY_POINTS]
    install("standby", source, entries)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(trial, {})  # the page's own example
    assert printed.getvalue() in [text for kind, text in blocks if not kind]


def test_random_is_plugged_in_by_our_own_distribution():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"][ENTRY_POINTS] == {"random": "rebalance_lab.assignors:assign_at_random"}
    assert rebalance_lab.assignors.assign_at_random is assign_at_random


def test_random_gives_each_partition_to_a_subscriber_and_draws_again_in_the_next_generation():
    members = {f"m{n}": MemberSubscription(topics=("t",), generation=1) for n in range(3)}
    sizes = {"t": 60, "nobodys": 3}
    first = assignor("random")(sizes, members)
    assert sorted(tp for partitions in first.values() for tp in partitions) == [
        TopicPartition("t", n) for n in range(60)
    ]
    assert min(map(len, first.values())) > 5
    assert first == assignor("random")(sizes, dict(reversed(members.items())))
    later = {name: MemberSubscription(topics=("t",), generation=2) for name in members}
    assert first != assignor("random")(sizes, later)


def test_error_of_an_unknown_strategy_names_the_known_ones(install):
    install("lazy_assignor", "", {"lazy": "lazy_assignor:assign", "range": "lazy_assignor:assign"})
    with pytest.raises(ConfigurationError, match=r"Choose from range, roundrobin, sticky, cooperative-sticky, .*lazy"):
        assignor_name("afei")


def test_built_in_name_cannot_be_replaced(install):
    install("impostor", "def assign(sizes, group):\n    return {}\n", {"range": "impostor:assign"})
    assert assignor("range") is ASSIGNORS["range"]


def test_name_offered_by_two_packages_is_refused(install):
    source = "def assign(sizes, group):\n    return {}\n"
    install("one_of_two", source, {"both": "one_of_two:assign"})
    install("two_of_two", source, {"both": "two_of_two:assign"})
    with pytest.raises(ConfigurationError, match=r"more than once. Uninstall .* one_of_two:assign, two_of_two:assign"):
        assignor("both")


@pytest.mark.parametrize(
    ("source", "target", "complaint"),
    [
        ("", "broken_assignor:missing", "cannot be loaded: .*missing"),
        ("", "broken_assignor_that_is_not_there:assign", "cannot be loaded: No module named"),
        ("import nowhere_to_be_found", "broken_assignor:assign", "cannot be loaded: No module named"),
        ("def assign(:", "broken_assignor:assign", "cannot be loaded"),
        ("assign = 'range'", "broken_assignor:assign", "is str, not a function"),
    ],
)
def test_strategy_that_cannot_be_loaded_is_a_configuration_error(install, monkeypatch, source, target, complaint):
    install("broken_assignor", source, {"broken": target})
    monkeypatch.delitem(sys.modules, "broken_assignor", raising=False)
    with pytest.raises(ConfigurationError, match=complaint):
        assignor_name("broken")


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ({"a": []}, "'wrong' left out 'b'"),
        ({"a": [], "b": [], "c": []}, "named 'c', which is not a member"),
        ({"a": [("t", 2)], "b": []}, "gave 'a' t-2, which does not exist"),
        ({"a": [("x", 0)], "b": []}, "gave 'a' x-0, which does not exist"),
        ({"a": [("t", -1)], "b": []}, "gave 'a' t--1, which does not exist"),
        ({"a": [], "b": [("u", 0)]}, "gave 'b' u-0, but it does not subscribe to u"),
        ({"a": [("t", 0)], "b": [("t", 0)]}, "gave t-0 to 'a' and to 'b'"),
        ({"a": [("t", 0), ("t", 0)], "b": []}, "gave t-0 to 'a' and to 'a'"),
        (None, "'wrong' failed: AttributeError"),
        ({"a": None, "b": []}, "'wrong' failed: TypeError"),
        ({"a": ["t"], "b": []}, "'wrong' failed: ValueError"),
    ],
)
def test_answer_that_breaks_the_group_is_refused(install, monkeypatch, answer, complaint):
    monkeypatch.delitem(sys.modules, "wrong_answer", raising=False)
    with pytest.raises(BadAssignment, match=re.escape(complaint)):
        answering(install, answer)({"t": 2, "u": 1}, GROUP)


def test_strategy_that_fails_is_refused_like_a_bad_answer(install, monkeypatch):
    monkeypatch.delitem(sys.modules, "failing", raising=False)
    install("failing", "def assign(sizes, group):\n    return sizes['nothing']\n", {"fails": "failing:assign"})
    with pytest.raises(BadAssignment, match=r"'fails' failed: KeyError: 'nothing' \(.*failing\.py:2\)"):
        assignor("fails")({"t": 2}, GROUP)


def test_answer_may_omit_partitions(install, monkeypatch):
    monkeypatch.delitem(sys.modules, "wrong_answer", raising=False)
    answer = {"a": [TopicPartition("t", 1)], "b": []}
    assert answering(install, {"a": [("t", 1)], "b": []})({"t": 2}, GROUP) == answer


@pytest.mark.parametrize(("java", "name"), sorted(JAVA_CLASSES.items()))
def test_java_classes_name_our_strategies(java, name):
    assert assignor_name(java) == name
    assert name in ASSIGNORS
