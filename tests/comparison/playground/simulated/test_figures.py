"""What a game shows at its end is what its report says of it, figure by figure, in every design."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import asdict

from comparison.playground import commands, messages
from comparison.playground.commands import MemberAction as Action
from comparison.playground.simulated.exchange import Asked, Finish, Give, GoOn
from comparison.results.metrics import METRICS
from comparison.results.result import Result
from kernel.designs import DESIGN_NAMES
from tests.comparison.playground.simulated.test_world_process import MS, asked, shown
from tests.comparison.playground.web.staged_game import served_game
from tests.support.pages.playground import column, opened
from tests.support.runs.seen_runs import analysed_inline


def act(action: Action, member: str) -> commands.ActOnMember:
    return commands.ActOnMember(action=action, member=member)


#: What is played, by its second.
PLAYED: Sequence[tuple[int, commands.GroupCommand]] = (
    (2, commands.AddMembers(count=1)),
    (6, act(Action.KILL, "m3")),
    (14, act(Action.START, "m3")),
    (18, act(Action.FREEZE, "m2")),
    (28, act(Action.CONTINUE, "m2")),
    (34, act(Action.CUT, "m1")),
    (46, act(Action.HEAL, "m1")),
    (54, act(Action.LEAVE, "m2")),
    (58, commands.AddMembers(count=2)),
)
SCRIPT: list[Asked] = [
    *(line for at_s, each in PLAYED for line in (GoOn(until_ns=at_s * 1000 * MS), Give(command=each))),
    *(GoOn(until_ns=64_000 * MS), Finish(), GoOn(until_ns=200_000 * MS)),
]


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, messages.Group], Result]:
    """The groups as the page shows them at the end, and what the analysis says."""
    folder, groups = tmp_path_factory.mktemp("games"), {}
    for design in DESIGN_NAMES:
        replies = asked(folder / design, design, SCRIPT)
        assert replies[-1].ended == ""
        assert not any(reply.refusal for reply in replies)
        groups[design] = shown(design, replies)
    return groups, analysed_inline(folder)


def test_each_counter_is_the_reports_figure_of_its_name(game: tuple[dict[str, messages.Group], Result]) -> None:
    groups, result = game
    assert [run.design for run in result.runs] == list(DESIGN_NAMES)
    for run in result.runs:
        counters = asdict(groups[run.design].counters)
        assert counters == {name: run.metrics[name] or 0 for name in counters}, run.design
    of = {run.design: groups[run.design].counters for run in result.runs}
    assert of["zookeeper"].two_delivering_partition_s > 5, "it has gone on while it was cut off"
    assert of["zookeeper"].moved_back > 0
    assert min(each.refused for name, each in of.items() if name != "zookeeper") > 0
    assert min(each.unowned_partition_s for each in of.values()) > 0


def test_the_page_shows_the_figures_in_the_words_of_the_report(
    browser: Any, game: tuple[dict[str, messages.Group], Result]
) -> None:
    groups, result = game
    runs = {run.design: run for run in result.runs if run.design in ("zookeeper", "eager", "consumer")}
    last = messages.Snapshot(
        seq=0, at_ms=90_000, status=messages.Status.RUNNING, groups=tuple(groups[design] for design in runs)
    )
    with served_game(last) as served, opened(browser, served.address) as page:
        for design, run in runs.items():
            if not column(page, design).count():
                page.get_by_role("button", name=f"Show {design} in full").click()
            counters = column(page, design).locator(".counters [data-counter]")
            for box in counters.all():
                name = box.get_attribute("data-counter")
                value, text = run.metrics[name], box.locator("dd").text_content()
                assert box.locator("dt").text_content() == METRICS[name].label
                if not text.startswith("–"):
                    assert text == (f"{value:.1f}" if METRICS[name].unit == "s" else f"{value or 0:,.0f}"), name
                else:
                    assert not value, name
            assert counters.count() == len(messages.Counters.__struct_fields__)
