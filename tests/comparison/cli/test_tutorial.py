"""docs/tutorial.md: its blocks can be typed, and show what its commands really show."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.generators.tutorial import PAGE, differences, play
from docs.generators.tutorial_page import MalformedPage, Step, blocks_of, normalised, rewritten, trimmed
from tests.support.pages.typed_commands import parsed

BLOCKS = blocks_of(PAGE.read_text())
SMALL = """\
## 1. One
<!-- play: sh until="x$" -->
```console
$ date \\
    -u
x
$ true
```

<!-- play: m1 last="a" -->
```console
(m1) ^C
a
```

<!-- play: m1 -->
```console
(m1)
b
```
"""


@pytest.mark.parametrize(
    "command", sorted({step.command for block in BLOCKS for step in block.steps if "rebalance-lab" in step.command})
)
@pytest.mark.usefixtures("own_folder")
def test_commands_and_options_of_the_page_exist(command: str) -> None:
    parsed(command)


def test_commands_of_the_page_s_other_texts_are_in_blocks() -> None:
    inside = {number for block in BLOCKS for number in range(block.first, block.last)}
    lines = PAGE.read_text().splitlines()
    outside = [line for number, line in enumerate(lines) if number not in inside]
    assert not [line for line in outside if line.startswith(("$ ", "    rebalance-lab"))]
    assert [block.terminal for block in BLOCKS if not block.chapter] == []


def test_every_block_shows_what_is_compared() -> None:
    """A block whose patterns match nothing of the page would compare nothing."""
    empty = [
        block.first
        for block in BLOCKS
        for step in block.steps
        if step.shown and not normalised(step.shown, block.options)
    ]
    assert not empty


def test_steps_of_a_block_are_found_and_rewritten() -> None:
    first, second, third = blocks_of(SMALL)
    assert [(step.command, step.shown) for step in first.steps] == [("date -u", ["x"]), ("true", [])]
    assert (first.chapter, first.options) == ("1. One", {"until": "x$"})
    assert [(step.typed, step.shown) for step in second.steps] == [(["(m1) ^C"], ["a"])]
    assert [(step.typed, step.command, step.shown) for step in third.steps] == [(["(m1)"], "", ["b"])]
    assert [step.is_interrupt for step in (*second.steps, *third.steps)] == [True, False]
    assert rewritten(SMALL, [first, second, third]) == SMALL
    second.steps[0].shown = ["b", "a"]
    assert rewritten(SMALL, [first, second]) == SMALL.replace("^C\na", "^C\nb\na")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("```console\n$ date\n```\n", "without a comment"),
        ("<!-- play: sh never=1 -->\n```console\n$ date\n```\n", "no such option: never"),
        ("<!-- play: m1 -->\n```console\n$ date\n```\n", "is not typed in m1"),
        ("<!-- play: m1 -->\ntext\n", "not the beginning of a block"),
        ("<!-- play: m1 -->\n```console\n(m1) $ a\n(m1) ^C\n```\n", "one command"),
        ("<!-- play: m1 -->\n```console\na\n```\n", "before anything is typed"),
    ],
)
def test_what_cannot_be_played_is_refused(text: str, problem: str) -> None:
    with pytest.raises(MalformedPage, match=problem):
        blocks_of(text)


def test_times_pids_and_ids_are_not_compared() -> None:
    here = [
        "started: pid 12",
        "g_host-1.x-1795479105298-da069e16: attempt 1 of 4 to rebalance failed: owned by others: t-1",
        "rebalance: done at 10:00:00.123 after 0.1 s (join 0.1), trigger start, member m (stream 0)",
        "/owners/0 = g_host-1795479105298-da069e16-0 (ephemeral)",
        "left: after 3 records",
    ]
    assert normalised(here, {}) == [
        "started: pid PID",
        "rebalance: done",
        "/owners/0 = ID-0 (ephemeral)",
        "left: after 3 records",
    ]
    assert normalised(here, {"same": "^(left|started)", "mask": r"\d+"}) == [
        "started: pid PID",
        "left: after * records",
    ]
    assert normalised(here, {"last": "e"}) == ["left: after 3 records"]


def test_how_many_lines_counts_and_resets_make_is_not_compared() -> None:
    apart = ["records: 1: 1 of t-1 up to @4", "records: 3: 2 of t-1 up to @6, 1 of t-0 up to @2"]
    assert normalised(apart, {}) == ["records: 4: 1 of t-0 up to @2, 3 of t-1 up to @6"]
    ranges = ["records: 6: 2 each of t-0..2 up to @1", "records: 1: 1 of t-1 up to @2"]
    assert normalised(ranges, {}) == ["records: 7: 2 of t-0 up to @1, 3 of t-1 up to @2, 2 of t-2 up to @1"]
    resets = ["reset: t-1 to @2 (auto.offset.reset=latest)", "reset: t-0 to @3, t-2 to @1 (auto.offset.reset=latest)"]
    assert normalised(resets, {}) == ["reset: t-0 to @3, t-1 to @2, t-2 to @1"]
    assert normalised(["reset: t-0..2 to @3 (auto.offset.reset=latest)"], {}) == [
        "reset: t-0 to @3, t-1 to @3, t-2 to @3"
    ]


def test_lines_left_out_have_a_visible_mark() -> None:
    assert trimmed(["a", "b", "c"], {"trim": "1"}) == ["a", "[... 2 more lines]"]
    assert trimmed(["a", "b"], {"trim": "1"}) == ["a", "[... 1 more line]"]
    assert trimmed(["a", "b"], {"trim": "2"}) == trimmed(["a", "b"], {}) == ["a", "b"]


def test_another_output_than_the_page_s_is_a_difference() -> None:
    first, *_ = blocks_of(SMALL)
    assert differences(first, [Step(["$ date"], ["x"]), Step(["$ true"])]) == ""
    assert "+y" in differences(first, [Step(["$ date"], ["y"]), Step(["$ true"])])


def test_first_chapter_shows_what_its_commands_show(tmp_path: Path) -> None:
    assert list(play(PAGE.read_text(), tmp_path, 1, compare=True))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_whole_tutorial_shows_what_its_commands_show(tmp_path: Path) -> None:
    assert len(list(play(PAGE.read_text(), tmp_path, compare=True))) == len(BLOCKS)
