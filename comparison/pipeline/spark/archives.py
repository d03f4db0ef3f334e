"""PySpark's zip archives on the module search path, which hide the installed packages that they are copies of."""

from __future__ import annotations

import sys
from pathlib import Path


def leave_out_archives() -> None:
    """Let PySpark and py4j be imported from where they are installed.

    Spark's JVM puts `pyspark/python/lib/*.zip` first on its workers' path. Python keeps no bytecode of modules in
    archives, so it would compile them in each session, which takes half a second. Archives of another installation,
    or of one without the packages themselves, stay.
    """
    sys.path[:] = [entry for entry in sys.path if not _is_copy(Path(entry))]


def _is_copy(entry: Path) -> bool:
    if entry.suffix != ".zip" or entry.parts[-4:-1] != ("pyspark", "python", "lib"):
        return False
    packages = entry.parents[3]
    package = entry.name.partition("-")[0].removesuffix(".zip")
    return str(packages) in sys.path and (packages / package / "__init__.py").is_file()
