"""`python -m tests.support.lean_child MODULE ARGUMENTS` runs a module as the commands run theirs.

That is without hypothesis, which kio loads where it can, and without aiokafka's clients: a third of a broker's imports.
"""

from __future__ import annotations

import runpy
import sys

from kernel.platform.lean_imports import import_lean

if __name__ == "__main__":
    import_lean()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
