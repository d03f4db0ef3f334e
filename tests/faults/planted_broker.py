"""A broker with a planted bug: a test names this module as that of a run's brokers. No setting leads to it."""

from __future__ import annotations

import os

from comparison.scenarios.processes import broker_process
from tests.support.planted.bugs import BUGS

#: The variable that names the bug.
PLANTED = "REBALANCE_LAB_PLANTED_BUG"


def main() -> None:
    BUGS[os.environ[PLANTED]].plant(setattr)
    broker_process.main()
