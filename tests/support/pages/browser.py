"""Debian's Chromium under playwright, for tests of pages; skipped where there is none.

Best the one without windows: showing a page costs it half as much.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
DESKTOP, PHONE = {"width": 1300, "height": 900}, {"width": 390, "height": 844}


@contextmanager
def running_browser() -> Iterator[Any]:
    """A browser; skips the test without one."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium on this machine: install the package chromium-headless-shell")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is in the extra `test`")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, chromium_sandbox=False)
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One page in its own context: its requests and its errors."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.errors: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))


@contextmanager
def visit(browser: Any, path: Path, fragment: str = "", **given: Any) -> Iterator[Visit]:
    """Open a file; `given` are the context's options. Fails if the page requests anything, or raises an error."""
    context = browser.new_context(**{"viewport": DESKTOP, **given})
    try:
        found = Visit(context.new_page())
        address = path.as_uri()
        found.page.goto(f"{address}{fragment}")
        yield found
        assert found.errors == []
        assert {each.partition("#")[0] for each in found.requests} == {address}
    finally:
        context.close()


def require_accessible(page: Any, **given: Any) -> None:
    """Fail with what axe finds on the page, and where; `given` are its options."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="it is in the extra `test`")
    violations = axe.Axe().run(page, **given).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in violations] == [], page.url
