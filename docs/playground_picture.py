"""Take the picture of docs/playground.md anew: `python -m docs.playground_picture`.

Plays a real game: m2 is cut off from its authority in two designs, until two members deliver the same partition in one
of them. Needs the extra `test`, and Chromium.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).with_suffix("").with_name("playground.png")
COMMAND = Path(sys.executable).with_name("rebalance-lab")
SIZE = {"width": 1180, "height": 720}
#: How long both groups are shown at peace, and how long with two that deliver.
BEFORE_S, AFTER_S = 14, 9


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        command = [COMMAND, "playground", "--design", "zookeeper,eager", "--seed", "1", "--output", scratch]
        game = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert game.stdout is not None
            take(game.stdout.readline().strip())
        finally:
            game.send_signal(signal.SIGINT)
            game.wait(60)


def take(address: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), chromium_sandbox=False)
        page = browser.new_page(viewport=SIZE, reduced_motion="reduce")
        page.set_default_timeout(120_000)
        page.goto(address)
        for design in ("zookeeper", "eager"):
            page.locator(f'[data-design="{design}"] .glance[data-kind="good"]').wait_for()
        page.get_by_label("Lanes show").select_option("30 s")
        page.wait_for_timeout(1000 * BEFORE_S)
        page.get_by_role("button", name="Cut off: m2").first.click()
        page.locator('.glance[data-kind="alarm"]').wait_for()
        page.wait_for_timeout(1000 * AFTER_S)
        page.locator("#said").evaluate("(each) => each.remove()")
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
