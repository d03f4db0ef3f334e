"""The JUnit XML of a result: the elements and attributes that CI servers know, and what they make of a run."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

import pytest

from comparison.pipeline.analysis import compose
from comparison.pipeline.figures.judging import judge
from comparison.report.junit import WHOLE_RUN, junit
from comparison.results.run import Run
from tests.comparison.report.test_terminal import result
from tests.support.runs.results import change, run

#: Jenkins' jenkins-junit.xsd, which GitLab and GitHub's actions read as well: attributes and children by element.
KNOWN: dict[str, tuple[set[str], set[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "disabled", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "skipped", "timestamp", "hostname", "id", "package", "file"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": (
        {"name", "assertions", "time", "classname", "status"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "skipped": ({"type", "message"}, set()),
    "error": ({"type", "message"}, set()),
    "failure": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}


def of(*runs: Run) -> Xml.Element:
    return Xml.fromstring(junit(compose([judge(each) for each in runs])))


def case(suites: Xml.Element, classname: str, name: str) -> Xml.Element:
    (found,) = (
        each for each in suites.iter("testcase") if (each.get("classname"), each.get("name")) == (classname, name)
    )
    return found


def outcome(found: Xml.Element) -> str:
    return next((each.tag for each in found if each.tag != "system-out"), "passed")


def test_elements_and_attributes_are_those_of_the_schema() -> None:
    for element in Xml.fromstring(junit(result())).iter():
        attributes, children = KNOWN[element.tag]
        assert set(element.keys()) <= attributes
        assert {each.tag for each in element} <= children


def test_counts_are_those_of_the_cases() -> None:
    suites = Xml.fromstring(junit(result()))
    for suite in suites.iter("testsuite"):
        cases = [outcome(each) for each in suite.iter("testcase")]
        counted = {name: int(suite.get(name, "")) for name in ("tests", "failures", "errors", "skipped")}
        assert counted == {
            "tests": len(cases),
            "failures": cases.count("failure"),
            "errors": cases.count("error"),
            "skipped": cases.count("skipped"),
        }
    assert int(suites.get("failures", "")) == len(list(suites.iter("failure"))) == 1


def test_a_fault_that_the_model_foresees_fails_nothing() -> None:
    suites = of(run("pause", stale_writes=3.0, moved_back=2.0, two_delivering_partition_s=1.25))
    assert (suites.get("failures"), suites.get("errors")) == ("0", "0")
    broken = case(suites, "pause.zookeeper", "kept: no offset moves back")
    assert [each.get("message") for each in broken] == ["broken, as the model says: offsets moved back: 2"]
    (said,) = (each.get("value") for each in suites.iter("property") if each.get("name") == "promises of zookeeper")
    assert said == "broke 3 of 9"


def test_a_promise_fails_with_the_check_on_it() -> None:
    suites = of(run("join", "eager", changes=[change(converge_ms=None)]))
    for name in ("promise: settles", "kept: every partition has an owner again"):
        assert outcome(case(suites, "join.eager", name)) == "failure"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"outcome": "failed", "error": "m1 is frozen"}, "the run failed: m1 is frozen"),
        ({"outcome": "interrupted"}, "the run was interrupted"),
        ({"problems": ["m1.jsonl: lines are missing"]}, "m1.jsonl: lines are missing"),
    ],
)
def test_a_run_that_did_not_go_to_its_end_is_an_error(given: dict[str, object], why: str) -> None:
    suites = of(run("join", "eager", **given))
    assert [each.get("message") for each in case(suites, "join.eager", WHOLE_RUN)] == [why]
    assert outcome(case(suites, "join.eager", "promise: settles")) == "error"
    assert suites.get("failures") == "0"


def test_repeats_have_their_seeds_in_their_names() -> None:
    names = [each.get("name") for each in of(*(run("join", "eager", seed=seed) for seed in (1, 2))).iter("testcase")]
    assert len(names) == len(set(names))
    assert {f"{WHOLE_RUN} (seed 1)", f"{WHOLE_RUN} (seed 2)"} <= set(names)


def test_no_text_of_a_trace_breaks_the_file() -> None:
    evil = 'x]]>\x00\x1b[31m\ud800\ufffe<failure message="no"/>&amp;'
    suites = of(run("join", "eager", outcome="failed", error=evil))
    (error,) = case(suites, "join.eager", WHOLE_RUN)
    assert "]]>\\x00\\x1b[31m\\ud800\\ufffe<failure" in str(error.get("message"))
    assert not list(suites.iter("failure"))
