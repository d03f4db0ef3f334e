"""The playground's page in a browser: opened, watched, and closed without errors or requests to anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import urlopen

from comparison.playground import messages
from comparison.playground.applying import applied
from comparison.playground.web.server import STREAMS_MAX
from tests.support.pages.browser import DESKTOP, Visit
from tests.support.pages.played_example import example

#: How many increments of the example have happened when...
RUNNING, CUT, TWO_DELIVER, HEALED, WAITING, ENDED = 5, 7, 18, 19, 20, 23


def example_at(count: int) -> messages.Snapshot:
    """The example after so many increments."""
    now, increments = example()
    for increment in increments[:count]:
        now = applied(now, increment)
    return now


@contextmanager
def opened(
    browser: Any, address: str, *, expected: tuple[str, ...] = (), timeout_ms: int = 60_000, **given: Any
) -> Iterator[Any]:
    """The page, once it shows the game. `expected` are parts of errors that the browser may report."""
    context = browser.new_context(**{"viewport": DESKTOP, **given})
    context.set_default_timeout(timeout_ms)
    try:
        seen = Visit(context.new_page())
        seen.page.goto(address)
        seen.page.locator(".card").first.wait_for()
        yield seen.page
        assert [each for each in seen.errors if not any(part in each for part in expected)] == []
        assert {each for each in seen.requests if not each.startswith((address, "data:"))} == set()
    finally:
        context.close()


def column(page: Any, design: str) -> Any:
    return page.locator(f'.group[data-design="{design}"]')


def card(page: Any, design: str, member: str) -> Any:
    return column(page, design).locator(".card").filter(has=page.get_by_text(member, exact=True)).first


@contextmanager
def running_streams(address: str) -> Iterator[list[Any]]:
    """As many open event streams as the server allows."""
    streams = [urlopen(f"{address}events") for _ in range(STREAMS_MAX)]
    try:
        yield streams
    finally:
        for each in streams:
            each.close()
