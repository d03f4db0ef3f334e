"""Keep test tools out of the commands' processes."""

from __future__ import annotations

import sys


def leave_out_hypothesis() -> None:
    """Let every later `import hypothesis` in this process fail as if it were not installed.

    kio registers test strategies whenever hypothesis can be imported. That costs a third of a second and creates a
    folder `.hypothesis` in the working directory. Does nothing if hypothesis is loaded already, as in tests.
    """
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]  # None is how Python marks "not found"
