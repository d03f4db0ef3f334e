"""The playground with its page and real groups: a tour does what it says, and a split brain is seen."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from comparison.exits import Exit
from tests.support.pages.playground import card, column, opened

pytestmark = pytest.mark.faults
#: Of what happens to real processes, on a busy machine.
WAIT_MS = 120_000


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A game of two designs, which ends with the test."""
    with played(tmp_path, ["zookeeper", "eager"]) as address:
        yield address


@contextmanager
def played(folder: Path, designs: Sequence[str]) -> Iterator[str]:
    """The address of a game, until the context ends."""
    options = ["--design", ",".join(designs), "--seed", "1", "-o", str(folder)]
    command = [sys.executable, "-m", "comparison.cli.main", "playground", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as game:
        assert game.stdout is not None
        yield game.stdout.readline().strip()
        game.send_signal(signal.SIGINT)
        assert game.wait(60) == Exit.INTERRUPTED


def test_tour_of_a_split_brain_shows_it_in_zookeeper_and_not_in_eager(browser: Any, address: str) -> None:
    with opened(browser, address, timeout_ms=WAIT_MS) as page:
        zookeeper, eager = column(page, "zookeeper"), column(page, "eager")
        for each in (zookeeper, eager):
            each.locator('.glance[data-kind="good"]').wait_for()
        page.locator('body[data-status="running"]').wait_for()
        page.keyboard.press("t")
        page.get_by_role("button", name="Begin: Split brain").click()
        page.get_by_role("button", name="Next").click()
        page.get_by_role("button", name="Cut m2 off").click()
        zookeeper.locator('.glance[data-kind="alarm"]', has_text="Split brain").wait_for()
        zookeeper.locator(".lane-plot .both").first.wait_for()
        for text in ("two members deliver one partition in zookeeper", "the partitions of m2 have new owners in eager"):
            page.locator(".seen").get_by_text(f"✓ {text}").wait_for()
        assert card(page, "zookeeper", "m2").locator(".state").text_content() == "cut off"
        page.get_by_role("button", name="Next").click()
        page.get_by_role("button", name="Heal m2").first.click()
        for each in ("zookeeper", "eager"):
            page.locator(".seen").get_by_text(f"✓ m2 is back in the group of {each}").wait_for()
        zookeeper.locator('.glance[data-kind="good"]').wait_for()
        assert eager.locator('[data-counter="moved_back"] dd').text_content() == "0"


def test_member_is_led_through_its_rebalance_by_a_key(browser: Any, address: str) -> None:
    with opened(browser, address, timeout_ms=WAIT_MS) as page:
        zookeeper = column(page, "zookeeper")
        zookeeper.locator('.glance[data-kind="good"]').wait_for()
        page.locator('body[data-status="running"]').wait_for()
        step_between_rebalances(page, "m3")
        zookeeper.get_by_role("button", name="Add one").click()
        steps, seen = zookeeper.locator(".steps"), []
        for _ in range(30):
            waits = steps.locator(".waiting li")
            waits.wait_for()
            seen.append(before := waits.locator("code").text_content())
            if steps.locator("[aria-current]").count():
                break
            page.keyboard.press("n")
            steps.locator(".waiting code").get_by_text(before, exact=True).wait_for(state="detached")
        assert steps.locator("[aria-current] th").first.text_content() == "R1", seen
        assert seen[-1] == "getChildren /brokers/ids", seen
        assert "/consumers/lab/ids" in " ".join(seen)


def step_between_rebalances(page: Any, name: str) -> None:
    """Have a member wait before each operation, outside a rebalance: so its next one waits from its first step on.

    A group whose partitions are all delivered may still rebalance: a member is notified of those that joined after it
    had subscribed, even if it has seen them in its first rebalance. Only once an operation waits can no rebalance begin
    unseen, so it is looked at then; one that is under way is let through.
    """
    member, waits = card(page, "zookeeper", name), column(page, "zookeeper").locator(".steps .waiting li")
    step = member.get_by_role("button", name="Step by step")
    for _ in range(10):
        step.click()
        member.get_by_role("button", name="Step by step", pressed=True).wait_for()
        waits.wait_for()
        if "rebalancing" not in member.locator(".about").text_content():
            return
        step.click()
        member.get_by_role("button", name="Step by step", pressed=False).wait_for()
        waits.wait_for(state="detached")
        member.locator(".about").filter(has_not_text="rebalancing").wait_for()
    pytest.fail(f"{name} was in a rebalance each time that it was stepped")
