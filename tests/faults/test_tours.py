"""The playground's guided tours on real groups, in a browser: what each step does brings about what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.comparison.playground.web.test_tours import TOURS, Tour
from tests.comparison.playground.web.test_tours_in_a_browser import take
from tests.faults.test_playground_in_a_browser import WAIT_MS, played
from tests.support.pages.playground import opened

pytestmark = pytest.mark.long


@pytest.mark.parametrize("tour", TOURS, ids=[tour.id for tour in TOURS])
def test_what_a_tour_promises_is_seen_twice(browser: Any, tour: Tour, tmp_path: Path) -> None:
    with played(tmp_path, tour.designs) as address, opened(browser, address, timeout_ms=WAIT_MS) as page:
        page.locator('body[data-status="running"]').wait_for()
        page.keyboard.press("t")
        for _ in range(2):
            take(page, tour, wait_s=WAIT_MS / 1000)
