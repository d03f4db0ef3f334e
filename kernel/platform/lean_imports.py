"""Keep out of the commands' processes what other packages load and we do not use."""

from __future__ import annotations

import dataclasses
import gc
import importlib.util
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FunctionType

#: Between two collections, where they are to be seldom.
_ALLOCATIONS = 50_000


def import_lean() -> None:
    """Call it before what loads kio or aiokafka. Both are loaded already in tests: then it does nothing.

    - kio registers test strategies whenever hypothesis can be imported. That costs a third of a second and creates a
      folder `.hypothesis` in the working directory. From now on `import hypothesis` fails as if it were not installed.
    - aiokafka loads its clients with any of its modules, and we use its records. Its clients are loaded with the first
      of their names that somebody asks for.
    - numpy computes the assignments of some assignors, and is loaded with the first one.
    - dataclasses compile six methods for each class, ours and kio's: half of what our imports cost. A process calls
      one in ten of them. From now on each is compiled when it is first called.
    """
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]  # None is how Python marks "not found"
    _without_body("aiokafka")
    _without_body("numpy", with_parts=False)
    if _compiled is not None:
        dataclasses._create_fn = _uncompiled  # type: ignore[attr-defined]


#: Compiles a method of a dataclass from its name, its parameters and the lines of its body. Python 3.13 compiles all
#: methods of a class at once, and has none.
_compiled: Callable[..., FunctionType] | None = getattr(dataclasses, "_create_fn", None)


def _uncompiled(name: str, parameters: list[str], body: list[str], **more: Any) -> Callable[..., Any]:
    """In place of a method: compiles it when it is called, and leaves its place in the class to it."""
    made: FunctionType | None = None

    def method(self: object, /, *given: Any, **named: Any) -> Any:
        nonlocal made
        if made is None:
            assert _compiled is not None, "this is in its place"
            made = _compiled(name, parameters, body, **more)
            made.__qualname__ = method.__qualname__
            for class_ in type(self).__mro__:
                if class_.__dict__.get(name) is method:
                    setattr(class_, name, made)
        return made(self, *given, **named)

    method.__name__ = name
    return method


def _without_body(package: str, *, with_parts: bool = True) -> None:
    """Run a package's own code when a name in it is first asked for; `with_parts`: not before its modules are imported.

    Whoever imports a module of a package asks the package for its path.
    """
    spec = None if package in sys.modules else importlib.util.find_spec(package)
    if spec is None or spec.loader is None:
        return
    loader, module = spec.loader, importlib.util.module_from_spec(spec)
    path = module.__path__
    if not with_parts:
        del module.__dict__["__path__"]

    def ask(name: str) -> Any:
        del module.__dict__["__getattr__"]
        module.__path__ = path
        loader.exec_module(module)
        return getattr(module, name)

    module.__dict__["__getattr__"] = ask  # PEP 562
    sys.modules[package] = module


def load_numpy() -> None:
    """For a process whose children would load it one by one."""
    importlib.import_module("numpy.linalg")  # a part of it: see `_without_body`


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
