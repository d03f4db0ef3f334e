"""A member with a planted bug: a test names this module as that of a run's members. No setting leads to it."""

from __future__ import annotations

import os

from comparison.scenarios.processes import member_process
from tests.faults.planted_broker import PLANTED
from tests.support.planted.bugs import BUGS


def main() -> None:
    BUGS[os.environ[PLANTED]].plant(setattr)
    member_process.main()
