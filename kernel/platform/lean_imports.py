"""Keep out of the commands' processes what other packages load and we do not use."""

from __future__ import annotations

import gc
import importlib.util
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Between two collections, where they are to be seldom.
_ALLOCATIONS = 50_000


def import_lean() -> None:
    """Call it before what loads kio or aiokafka. Both are loaded already in tests: then it does nothing.

    - kio registers test strategies whenever hypothesis can be imported. That costs a third of a second and creates a
      folder `.hypothesis` in the working directory. From now on `import hypothesis` fails as if it were not installed.
    - aiokafka loads its clients with any of its modules, and we use its records. Its clients are loaded with the first
      of their names that somebody asks for.
    """
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]  # None is how Python marks "not found"
    _without_body("aiokafka")


def _without_body(package: str) -> None:
    """Let a package's modules be imported, and run its own code when a name in it is first asked for."""
    spec = None if package in sys.modules else importlib.util.find_spec(package)
    if spec is None or spec.loader is None:
        return
    loader, module = spec.loader, importlib.util.module_from_spec(spec)

    def ask(name: str) -> Any:
        del module.__dict__["__getattr__"]
        loader.exec_module(module)
        return getattr(module, name)

    module.__dict__["__getattr__"] = ask  # PEP 562
    sys.modules[package] = module


@contextmanager
def importing() -> Iterator[None]:
    """Import without the garbage collector, which would walk again and again through what stays for good."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def collect_seldom() -> None:
    """For a process that does not live long: each collection walks through all that it has made."""
    gc.set_threshold(_ALLOCATIONS)
