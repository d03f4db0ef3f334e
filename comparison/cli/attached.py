"""A command as a child of another one, with which it dies: `python -m comparison.cli.attached PID COMMAND...`."""

from __future__ import annotations

import sys

from comparison.cli.entry import main
from comparison.scenarios.processes.parent_death import set_parent_death_signal

if __name__ == "__main__":
    set_parent_death_signal(int(sys.argv[1]))
    main(sys.argv[2:])
