"""The folder for Spark's scratch files: removed when its last user has ended, however it ended."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernel.platform.swept_folder import swept_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: The prefix of scratch folders in the system's temporary folder.
SCRATCH_PREFIX = "rebalance-lab-spark-"


@contextmanager
def scratch_folder(work_dir: Path | None) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """The folder, and the descriptors that a process using it must inherit: the JVM may outlive this process."""
    if work_dir is not None:
        work_dir.mkdir(parents=True, exist_ok=True)
        yield work_dir.resolve(), ()
        return
    with swept_folder(SCRATCH_PREFIX) as (folder, held):
        yield folder, (held,)
