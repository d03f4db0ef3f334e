"""Our code for executors: a zip of what tasks may import, so that it need not be installed on other hosts.

Executors import from the pipeline and the kernel. What starts and steers Spark stays with the driver.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import comparison
import kernel
from comparison.pipeline.beside import BESIDE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

#: Folders and files below the package `comparison` that tasks may need.
_OF_COMPARISON = ("__init__.py", *BESIDE, "pipeline")
#: A fixed time makes equal code an equal file.
_TIME = (1980, 1, 1, 0, 0, 0)


def packed_code(folder: Path, more: Iterable[ModuleType] = ()) -> Path:
    """Write the zip to `folder`, from the packages as they are installed here; of `more` packages every module."""
    archive = folder / "rebalance_lab.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for name, path in sorted(_files(more).items()):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.external_attr = 0o644 << 16
            made.writestr(entry, path.read_bytes())
    return archive


def _files(more: Iterable[ModuleType]) -> dict[str, Path]:
    """What goes into the zip, by the name that it has there; in a wheel the packages are within another one."""
    files: dict[str, Path] = {}
    for package, parts in ((kernel, (".",)), (comparison, _OF_COMPARISON), *((each, (".",)) for each in more)):
        root = Path(package.__path__[0])
        above = root.parents[: package.__name__.count(".") + 1]
        found = [
            *(module for part in parts for module in _modules(root / part)),
            *(a / "__init__.py" for a in above[:-1]),
        ]
        files |= {str(path.relative_to(above[-1])): path for path in found}
    return files


def _modules(path: Path) -> list[Path]:
    return [path] if path.is_file() else list(path.rglob("*.py"))
