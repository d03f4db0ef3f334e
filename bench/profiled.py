"""`rebalance-lab` under cProfile: `python -m bench.profiled FILE broker ...`.

SIGUSR1 starts the profile, SIGUSR2 ends it and writes it to FILE, so that it holds what was measured and not the
start. It covers the main thread, on which the event loop runs; the threads of the storage are not in it.
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
    # CPU time: what waits, or is not let run, is no work of ours.
    profile = cProfile.Profile(time.thread_time)

    def start(*_: object) -> None:
        profile.enable()

    def finish(*_: object) -> None:
        profile.disable()
        # Renamed when it is complete: somebody waits for it.
        draft = file.with_suffix(".draft")
        profile.dump_stats(draft)
        draft.rename(file)

    signal.signal(signal.SIGUSR1, start)
    signal.signal(signal.SIGUSR2, finish)
    main(sys.argv[2:])


if __name__ == "__main__":
    run()
