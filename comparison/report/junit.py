"""A result as JUnit XML, as CI servers read it: a suite for each scenario, and cases for each run.

A case is a check or a promise. A check that is not as expected is a failure; one that is unknown is an error, since it
is no pass either. A promise fails only with a check: what the model foresees does not fail a build, so it is skipped
with what shows it, like what is unknown of a promise or was not asked. The file says the same as the exit code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from comparison.report.summaries.figures import KINDS, circumstances, ending
from comparison.report.summaries.repeats import columns_of
from comparison.results.outcomes import VerdictOutcome
from comparison.results.promises import PromiseOutcome, by_design, promises_of, summary, title
from comparison.screen.printable import printable_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comparison.results.promises import Outcome
    from comparison.results.result import Result, Scenario
    from comparison.results.run import Run, Verdict

#: The name of a run's first case: whether it went to its end.
WHOLE_RUN = "the run"
_TYPES = {VerdictOutcome.NOT_EXPECTED: "failure", VerdictOutcome.UNKNOWN: "error"}


def junit(result: Result) -> bytes:
    """The file; nothing in it breaks XML, whatever a trace holds."""
    result = printable_all(result)
    suites = Xml.Element("testsuites", name=title(result))
    for scenario in result.scenarios:
        suites.append(_suite(scenario, result))
    _count(suites, "failures", "errors")
    Xml.indent(suites)
    text: bytes = Xml.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _suite(scenario: Scenario, result: Result) -> Xml.Element:
    suite = Xml.Element("testsuite", name=scenario.scenario)
    properties = Xml.SubElement(suite, "properties")
    said = {"circumstances": circumstances(columns_of(scenario, result))}
    said |= {f"promises of {design}": summary(found) for design, found in by_design(scenario, result).items()}
    for name, value in said.items():
        Xml.SubElement(properties, "property", name=name, value=value)
    runs = [result.runs[place] for place in scenario.runs]
    for run in runs:
        is_repeated = sum(each.design == run.design for each in runs) > 1
        for case in _cases(run):
            case.set("classname", f"{scenario.scenario}.{run.design}")
            case.set("name", f"{case.get('name')}{f' (seed {run.seed})' if is_repeated else ''}")
            suite.append(case)
    _count(suite, "failures", "errors", "skipped")
    return suite


def _cases(run: Run) -> Iterator[Xml.Element]:
    whole = _case(WHOLE_RUN, run.duration_s)
    if why := ending(run) or "".join(run.problems[:1]) or ("" if run.verdicts else "no check judges it"):
        _because(whole, "error", "unknown", why)
    yield whole
    for verdict in run.verdicts:
        yield _of_check(verdict)
    for promise in promises_of(run):
        yield _of_promise(promise, run)


def _of_check(verdict: Verdict) -> Xml.Element:
    case = _case(f"{KINDS[verdict.kind]}: {verdict.check}")
    if verdict.outcome == VerdictOutcome.EXPECTED:
        Xml.SubElement(case, "system-out").text = verdict.reason
    else:
        _because(case, _TYPES[verdict.outcome], verdict.outcome, verdict.reason)
    return case


def _of_promise(found: Outcome, run: Run) -> Xml.Element:
    case = _case(f"kept: {found.promise.name}")
    if found.outcome is PromiseOutcome.KEPT:
        Xml.SubElement(case, "system-out").text = found.shown
    elif found.outcome is PromiseOutcome.BROKEN and found.promise.failed(run):
        _because(case, "failure", found.outcome, found.shown)
    else:
        allowed = ", as the model says" * (found.outcome is PromiseOutcome.BROKEN)
        Xml.SubElement(case, "skipped", message=f"{found.outcome}{allowed}: {found.shown}")
    return case


def _case(name: str, seconds: float = 0.0) -> Xml.Element:
    return Xml.Element("testcase", classname="", name=name, time=f"{seconds:.3f}")


def _because(case: Xml.Element, element: str, kind: str, reason: str) -> None:
    Xml.SubElement(case, element, message=reason, type=kind).text = reason


def _count(parent: Xml.Element, *outcomes: str) -> None:
    """Set how many cases there are below, and of these outcomes, and the sum of their times."""
    cases = list(parent.iter("testcase"))
    parent.set("tests", str(len(cases)))
    for each in outcomes:
        parent.set(each, str(sum(case.find(each.removesuffix("s")) is not None for case in cases)))
    parent.set("time", f"{sum(float(case.get('time', 0)) for case in cases):.3f}")
