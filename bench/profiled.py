"""`rebalance-lab` under cProfile: `python -m bench.profiled FILE broker ...`.

SIGUSR1 starts the profile, SIGUSR2 ends it and writes it to FILE, so that it covers the measure and not the start. Only
the main thread is profiled, on which the event loop runs; storage threads are not.
"""

from __future__ import annotations

import cProfile
import signal
import sys
import time
from pathlib import Path

from comparison.cli.main import main


def run() -> None:
    file = Path(sys.argv[1])
    # CPU time, which leaves out waiting.
    profile = cProfile.Profile(time.thread_time)

    def start(*_: object) -> None:
        profile.enable()

    def finish(*_: object) -> None:
        profile.disable()
        # Renamed when complete, because the bench waits for the file.
        draft = file.with_suffix(".draft")
        profile.dump_stats(draft)
        draft.rename(file)

    signal.signal(signal.SIGUSR1, start)
    signal.signal(signal.SIGUSR2, finish)
    main(sys.argv[2:])


if __name__ == "__main__":
    run()
