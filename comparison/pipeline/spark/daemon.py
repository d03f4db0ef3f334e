"""PySpark's daemon, which forks the workers on this machine, with the pipeline loaded.

Otherwise every worker loads numpy, pyarrow and the pipeline anew, which takes it half a second. Executors on other
hosts get the pipeline only with their tasks, and so have PySpark's own daemon.
"""

from __future__ import annotations

import gc
import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING

import pyarrow as pa

from comparison.pipeline.spark.archives import leave_out_archives

leave_out_archives()  # before the first import from one

import pyspark.worker  # noqa: E402, F401  # what every worker loads first
from pyspark.daemon import manager  # noqa: E402

from comparison.pipeline import job  # noqa: E402, F401

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _WithoutPandas(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError(name)
        return None


def keep_pyarrow_from_pandas() -> None:
    """Pyarrow loads pandas, if it can, to see whether a list is one of its arrays, which takes half a second more.

    It tries only once; whoever asks it for pandas later gets it.
    """
    sys.meta_path.insert(0, finder := _WithoutPandas())
    pa.array([0])
    sys.meta_path.remove(finder)


if __name__ == "__main__":
    keep_pyarrow_from_pandas()
    gc.freeze()  # so that a worker's collections do not touch, and thereby copy, what it shares with the daemon
    manager()
