"""A sweep's page: what it shows, by structure, and that nothing in it can be more than text."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from comparison.report.sweep.page import sweep_page
from comparison.results.keys import COMPLETE
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Run
from comparison.results.sweep import CountedRun, LeftOutData
from comparison.sweep.plan import SweepRun
from tests.support.runs.sweeps import change_of, data_of, plan_of, result_of

VOID = {"meta"}
SVG = re.compile(r"<svg.*?</svg>", re.DOTALL)


class Balanced(HTMLParser):
    """Refuses an element that is not closed, and records what there is."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def retried(run: SweepRun) -> Run:
    """More tries fail less often."""
    settings = run.planned.parameters.settings
    outlasts = int(settings["rebalance.max.retries"]) * int(settings["rebalance.backoff.ms"]) > 3000
    return result_of({"attempts_failed": 0 if outlasts else 10 + run.seed, "converge_ms": 3000.0})


def page_of(*axes: str, result: Callable[[SweepRun], Run | None], metrics: Sequence[str] = (), **counts: int) -> str:
    return sweep_page(data_of(plan_of(*axes, metrics=metrics, **counts), result))


CROSSED = (
    "scenario=crash",
    "design=zookeeper",
    "session-timeout=3000",
    "rebalance.max.retries=2,8",
    "rebalance.backoff.ms=250,500,1000",
)


def pictures(page: str) -> list[ET.Element]:
    return [ET.fromstring(found) for found in SVG.findall(page)]


def words(picture: ET.Element) -> list[str]:
    return [each.text or "" for each in picture.iter("{http://www.w3.org/2000/svg}text")]


def test_page_loads_nothing_runs_nothing_and_is_well_formed() -> None:
    page = page_of(*CROSSED, result=retried, metrics=["attempts_failed", "converge_ms"], seeds=2)
    parser = Balanced()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    names = {name for name, _ in parser.elements}
    assert not names & {"script", "link", "img", "iframe", "object", "base", "form"}
    policies = [a["content"] for name, a in parser.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]
    assert not [a for _, a in parser.elements if any(name.startswith("on") for name in a)]
    links = {a["href"] for name, a in parser.elements if name == "a"}
    assert links <= {f"#{a['id']}" for _, a in parser.elements if "id" in a}
    assert "url(" not in page
    assert "@import" not in page


def test_two_numeric_axes_are_a_heat_map_with_a_number_in_every_cell() -> None:
    page = page_of(*CROSSED, result=retried, metrics=["attempts_failed"], seeds=2)
    (picture,) = pictures(page)
    shown = words(picture)
    assert [word for word in shown if word in ("11.50", "0")] == ["11.50", "11.50", "11.50", "11.50", "0", "0"]
    assert shown.count("11-12") == 4
    assert {"rebalance.backoff.ms →", "rebalance.max.retries ↓", "250", "1000", "8"} <= set(shown)
    assert "light 0, dark 11.50 (linear); median, range below" in shown


def test_heat_map_marks_what_does_not_outlast_a_session() -> None:
    (picture,) = pictures(page_of(*CROSSED, result=retried, metrics=["attempts_failed"]))
    dashed = [each for each in picture.iter() if each.get("stroke-dasharray") and each.tag.endswith("rect")]
    assert len(dashed) == 4  # 2 x 250, 500 and 1000, and 8 x 250
    assert "retries × backoff is at most the session timeout, 3000 ms" in words(picture)
    without = [axis for axis in CROSSED if not axis.startswith("session")]
    (picture,) = pictures(page_of(*without, result=retried, metrics=["attempts_failed"]))
    assert "session" not in " ".join(words(picture))


def test_combination_that_was_not_measured_is_a_dash() -> None:
    missing = ("2", "500")

    def result(run: SweepRun) -> Run | None:
        at = (run.cell.at["rebalance.max.retries"], run.cell.at["rebalance.backoff.ms"])
        return None if at == missing else retried(run)

    (picture,) = pictures(page_of(*CROSSED, result=result, metrics=["attempts_failed"]))
    assert words(picture).count("-") == 1


def test_heat_map_without_differences_is_a_sentence() -> None:
    page = page_of(*CROSSED, result=lambda _: result_of({"converge_ms": 3000.0}), metrics=["converge_ms"])
    assert pictures(page) == []
    assert "no heat map: the median is 3,000 everywhere" in page


def joined(run: SweepRun) -> Run:
    members = run.planned.parameters.members
    reads = members**2 if run.cell.design == "zookeeper" else 0
    return result_of({"converge_ms": 100 * members + run.seed}, [change_of("join", members=members, zk_reads=reads)])


def test_one_numeric_axis_is_lines_with_names_markers_and_a_dashed_fit() -> None:
    page = page_of("scenario=join", "members=2,4,8", result=joined, metrics=["converge_ms"], seeds=2)
    (picture,) = pictures(page)
    shown = words(picture)
    assert {"zookeeper", "eager", "2", "4", "8", "members", "ms"} <= set(shown)
    markers = [each for each in picture.iter() if each.get("transform")]
    assert len(markers) == 6
    assert len({each.get("d") for each in markers}) == 2, "a marker for each design"
    assert len([each for each in picture.iter() if each.get("stroke-dasharray")]) == 2
    assert "zookeeper: 2.0 times per doubling of members (members^1.00; 95%" in page


def test_design_whose_figures_are_zero_is_named_and_not_drawn() -> None:
    page = page_of("scenario=join", "members=2,4,8", result=joined, metrics=["join.zk_reads"])
    assert "not drawn, because a figure is 0 or missing: eager" in page
    (picture,) = pictures(page)
    assert "eager" not in words(picture)
    page = page_of("scenario=join", "design=eager", "members=2,4,8", result=joined, metrics=["join.zk_reads"])
    assert "no chart: no design has only figures above 0" in page
    assert pictures(page) == []


def test_axis_of_words_has_a_table_and_no_chart() -> None:
    page = page_of("scenario=join", "design=eager", "preset=equal-timers,kafka-defaults", result=joined)
    assert pictures(page) == []
    assert ">kafka-defaults</th>" in page
    assert "no chart: the axis is no number" in page


def test_failures_verdicts_and_what_was_left_out_are_listed() -> None:
    plan = plan_of("scenario=split-brain", "design=eager", "members=4,16", seeds=2)
    failed = plan.runs[0]

    def result(run: SweepRun) -> Run | None:
        return (
            None if run is failed else result_of({"converge_ms": 5.0, "lost": 2.0}, verdict=VerdictOutcome.NOT_EXPECTED)
        )

    page = sweep_page(data_of(plan, result, [(failed, "time limit of 60 s reached")]))
    assert "1 of 2 runs complete" in page
    assert "seed 1: time limit of 60 s reached" in page
    assert "1, 1 failed" in page
    assert "1 × " in page
    assert "! not as expected" in page
    assert '1 × <span class="bad">every record is delivered</span>' in page
    assert "16 members share 12 partitions" in page


@pytest.mark.parametrize("hostile", ["</script><script>alert(1)</script>", '"><img src=x onerror=alert(1)>'])
def test_whatever_a_sweep_names_stays_text(hostile: str) -> None:
    data = data_of(plan_of(*CROSSED, metrics=["attempts_failed"]), retried)
    [{hostile if name == "rebalance.backoff.ms" else name: x for name, x in each.at.items()} for each in data.cells]
    data = replace(
        data,
        name=hostile,
        command=[hostile],
        failures=[LeftOutData(what=hostile, reason=hostile)],
        axes=[*data.axes[:-1], replace(data.axes[-1], name=hostile)],
        cells=[
            replace(
                each,
                at={hostile if name == "rebalance.backoff.ms" else name: value for name, value in each.at.items()},
                scenario=hostile,
                design=hostile,
                verdicts={hostile: 1},
                broken={hostile: 1},
            )
            for each in data.cells
        ],
    )
    page = sweep_page(data)
    parser = Balanced()
    parser.feed(page)
    assert not {name for name, _ in parser.elements} & {"script", "img"}
    assert pictures(page), "the picture is there, and is XML"


LOOPBACK = "loopback"


def latency(run: SweepRun) -> Run:
    """A slow network fails more often, a fast one never."""
    slow = run.cell.at["link"] != LOOPBACK
    return result_of({"attempts_failed": run.planned.parameters.members if slow else 0})


def test_words_and_numbers_are_a_line_for_each_word_with_zeros() -> None:
    axes = ("scenario=mass-start", "design=zookeeper", "link=loopback,region", "members=4,8,16")
    plan = plan_of(*axes, metrics=["attempts_failed"], simulated=True)
    (picture,) = pictures(sweep_page(data_of(plan, latency)))
    assert {"loopback", "region", "4", "8", "16", "members", "0"} <= set(words(picture))
    heights = {
        hint.text: float(str(each.get("transform")).partition(",")[2].rstrip(")"))
        for each in picture.iter("{http://www.w3.org/2000/svg}path")
        if (hint := each.find("{http://www.w3.org/2000/svg}title")) is not None
    }
    assert heights["0 (0 to 0, 1 run)"] > heights["4 (4 to 4, 1 run)"] > heights["16 (16 to 16, 1 run)"]


def detected(run: SweepRun) -> CountedRun:
    timeout_ms = run.planned.parameters.session_timeout_ms
    assert timeout_ms is not None
    figures = {"crash.detect_ms": 0.9 * timeout_ms, "crash.heartbeats_per_s": 30_000 / timeout_ms}
    return CountedRun(outcome=COMPLETE, figures=figures)


def test_detection_is_drawn_against_what_heartbeats_cost() -> None:
    axes = ("scenario=crash", "design=server,eager", "session-timeout=3000,6000,12000")
    page = sweep_page(data_of(plan_of(*axes, metrics=["converge_ms"], simulated=True), detected))
    (picture,) = pictures(page)
    assert {"server", "eager", "heartbeats a second, of all members", "2", "5", "10"} <= set(words(picture))
    assert len([each for each in picture.iter() if each.get("transform")]) == 6
    assert '<a href="#detection">' in page
    assert "Detection against heartbeats" not in page_of("scenario=join", "members=2,4", result=joined)
