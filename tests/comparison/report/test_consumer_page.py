"""`docs/consumer-protocol.md`: as the code that decides tells its stories, and what the page says of them is so."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from comparison.cli.state import STATE_VARIABLE
from comparison.scenarios.run.experiments import plan
from docs.generators.migration import migration
from docs.generators.reconciliation import PARTITIONS, Row, fenced, reconciliation, records, static, too_slow
from docs.generators.reconciliation_page import PAGE, owned, picture
from tests.support.pages.typed_commands import commands, parsed

COMMANDS = commands(PAGE.read_text(encoding="utf-8"))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("story", [reconciliation, too_slow, fenced, static])
def test_partitions_are_free_before_another_member_has_them(story) -> None:
    """But for the new process of a static member, which is the same member to the group."""
    for before, after in pairwise(story()):
        for was, now in zip(before.owners, after.owners, strict=True):
            same = was.member.partition(".")[0] == now.member.partition(".")[0]
            assert same or not was.member or not now.member, (before.owners, after.owners)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_of_the_page_can_be_typed_and_its_designs_have_its_scenarios(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    monkeypatch.chdir(tmp_path)
    given = parsed(command).params
    if command.startswith("rebalance-lab run "):
        designs = ",".join(given["designs"]).split(",")
        cells = {(each.scenario, each.design) for each in plan(given["names"], designs, {})}
        assert cells == {(name, design) for name in given["names"] for design in designs}


def test_page_has_commands() -> None:
    assert len(COMMANDS) > 10


def step(rows: tuple[Row, ...], **wanted: str) -> int:
    """The number of the first row like this, as the page counts."""
    return next(n for n, row in enumerate(rows, 1) if wanted.items() <= row._asdict().items())


def test_newcomer_and_first_member_do_not_wait_for_the_slow_one() -> None:
    rows = reconciliation()
    gets_first = next(n for n, row in enumerate(rows, 1) if row.owners[2].member == "m3")
    done = next(n for n, row in enumerate(rows, 1) if row.group.endswith("Stable"))
    assert (gets_first, step(rows, who="m1", state="STABLE at 3"), done) == (5, 4, 9)
    assert rows[5].says == "m3 says that it has it", "the page goes on from step 6"
    waits = rows[gets_first - 1]
    assert owned(waits.owners) == "m1 0 1, m2 3 4 (5), m3 2"
    assert "four heartbeats before the group is stable" in PAGE.read_text(encoding="utf-8")


def test_slow_member_is_removed_and_anybody_brings_the_new_target() -> None:
    rows = too_slow()
    assert [row.group for row in rows[:3]] == [
        "group epoch 3, target epoch 3, Reconciling",
        "group epoch 4, target epoch 3, Assigning",
        "group epoch 4, target epoch 4, Reconciling",
    ]
    assert [owner.member for owner in rows[1].owners] == ["m1", "m1", "m3", "", "", ""]
    assert rows[0].answered == "accepted"
    assert [row.answered for row in rows[-2:]] == ["UNKNOWN_MEMBER_ID"] * 2


def test_static_member_returns_without_a_new_epoch_and_a_second_one_loses() -> None:
    rows = static()
    assert {row.group.partition(", ")[0] for row in rows} == {"group epoch 2"}
    assert rows[-1].answered == "UNRELEASED_INSTANCE_ID"


def test_a_join_writes_a_record_of_each_kind() -> None:
    assert [version for version, *_ in records()] == [5, 3, 7, 7, 7, 6, 8]


def test_group_is_another_one_while_a_member_of_the_consumer_protocol_is_in_it() -> None:
    steps = migration()
    assert [step.group.split()[0] for step in steps] == ["consumer"] * 9 + ["classic"] * 2
    classic = [step for step in steps if step.sent == "JoinGroup"]
    assert {step.answered for step in classic} == {"generation 2"}


def test_figure_has_every_exchange_and_a_cell_for_each_partition() -> None:
    root = ElementTree.fromstring(picture())
    texts = [each.text for each in root.iter(f"{SVG}text")]
    for row in reconciliation():
        assert row.sent in texts
        assert row.answered in texts
    assert sum(text in map(str, range(PARTITIONS)) for text in texts) == PARTITIONS * len(reconciliation())
