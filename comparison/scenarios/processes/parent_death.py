"""Linux's parent-death signal: a child never outlives its parent, even when the parent is killed."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def set_parent_death_signal(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent dies; exit at once if the parent is dead already.

    On other systems the end of standard input has to do, which every child watches as well.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent_pid:
        os._exit(1)
