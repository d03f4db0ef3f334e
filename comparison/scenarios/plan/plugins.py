"""Own steps and faults: loaded from a Python file, a module or an installed package, before anything is planned.

What is loaded adds itself to the tables by the decorators of `comparison.scenarios.extending`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import logging
import sys
import traceback
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from comparison.near_paths import path_complaint
from kernel.errors import ConfigurationError, RebalanceLabError, SeveralErrors

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

#: The group of entry points; each names a module.
ENTRY_POINTS = "rebalance_lab.scenarios"
_SUFFIX = ".py"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """Code of a user's that a command has loaded."""

    named: str  #: as the user named it
    path: Path | None  #: its file, if it was named by its file
    text: str  #: of that file

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


_LOADED: dict[str, Plugin] = {}


def loaded() -> list[Plugin]:
    """Everything that has been loaded, in order."""
    return list(_LOADED.values())


def load(named: str, folder: Path | None = None) -> Plugin:
    """Load a plugin, once: a Python file (in `folder` unless the path is absolute), or a module by its name.

    Raises `SeveralErrors` with the traceback if the code fails, `ConfigurationError` if there is none.
    """
    if not (named.endswith(_SUFFIX) or "/" in named):
        return _known(named, Plugin(named=named, path=None, text=""), lambda: importlib.import_module(named))
    path = (folder or Path()) / named
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise ConfigurationError(
            path_complaint(path, "Give a Python file, or the name of a module", _is_python)
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the plugin {path}: {error}") from error
    plugin = Plugin(named=named, path=path, text=text)
    # A copy in a run's folder is the same code.
    return _known(plugin.digest, plugin, lambda: _module_of(path, plugin.digest))


def load_installed() -> None:
    """Load what installed packages plug in. One that fails is a warning: the command may not need it."""
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            load(entry.value)
        except ConfigurationError as error:
            log.warning("the installed plugin %s is left out: %s", entry.name, error)


def _is_python(path: Path) -> bool:
    return path.suffix == _SUFFIX and path.is_file()


def _known(key: str, plugin: Plugin, load_it: Callable[[], ModuleType]) -> Plugin:
    if key not in _LOADED:
        try:
            load_it()
        except RebalanceLabError:
            raise
        except Exception as error:  # it is the user's code, and may raise anything
            what = f"the plugin {plugin.path or plugin.named} cannot be loaded: {type(error).__name__}: {error}"
            raise SeveralErrors([what], "".join(traceback.format_exception(error))) from error
        _LOADED[key] = plugin
    return _LOADED[key]


def _module_of(path: Path, digest: str) -> ModuleType:
    """Import a file, whose folder need not be on the path."""
    name = f"rebalance_lab_plugin_{path.stem}_{digest[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{path} is no Python file: its name must end with {_SUFFIX}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
