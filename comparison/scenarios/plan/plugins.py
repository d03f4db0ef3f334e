"""Own steps and faults: loaded from a Python file, a module or an installed package, before anything is planned.

What is loaded adds itself to the tables by the decorators of `rebalance_lab.extending`.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import sys
import traceback
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

from comparison.near_paths import path_complaint
from kernel.errors import ConfigurationError, EnvironmentFault, RebalanceLabError, SeveralErrors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType, ModuleType

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


def kept_plugins() -> dict[str, Plugin]:
    """The files among them, by the names under which a folder keeps them."""
    return {plugin.path.name: plugin for plugin in loaded() if plugin.path is not None}


def load(named: str, folder: Path | None = None) -> Plugin:
    """Load a plugin, once: a Python file (in `folder` unless the path is absolute), or a module by its name.

    Raises `SeveralErrors` with the traceback if the code fails, `ConfigurationError` if there is none.
    """
    if not _is_file(named):
        return _known(named, Plugin(named=named, path=None, text=""), lambda: importlib.import_module(named))
    path = (folder or Path()) / named
    if folder is not None and not path.exists() and (kept := folder / path.name).exists():
        path = kept  # the folder is a run's, which keeps everything beside the scenario
    return _loaded(_read(named, path))


def load_kept(named: str, folder: Path, digests: Mapping[str, str]) -> Plugin:
    """The same for a folder that has kept its plugins, by name, with their recorded digests.

    Nothing of a file that is not the recorded one is run: raises `EnvironmentFault`.
    """
    if not _is_file(named):
        return load(named)
    plugin = _read(named, path := folder / Path(named).name)
    if path.name not in digests:
        raise EnvironmentFault(
            f"there is no record of what {path} was, so it is not run. Repeat the command that named the original file"
        )
    if plugin.digest != digests[path.name]:
        raise EnvironmentFault(f"{path} is not the file that was recorded, so it is not run. Restore it")
    return _loaded(plugin)


def _is_file(named: str) -> bool:
    return named.endswith(_SUFFIX) or "/" in named


def _read(named: str, path: Path) -> Plugin:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise ConfigurationError(
            path_complaint(path, "Give a Python file, or the name of a module", _is_python)
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read the plugin {path}: {error}") from error
    if path.suffix != _SUFFIX:
        raise ConfigurationError(f"{path} is no Python file: its name must end with {_SUFFIX}")
    return Plugin(named=named, path=path, text=text)


def _loaded(file: Plugin) -> Plugin:
    """The plugin of a file that has been read. A copy in a run's folder is the same code."""
    assert file.path is not None
    other = kept_plugins().get(file.path.name, file)
    if other.digest != file.digest:
        raise ConfigurationError(
            f"the plugins {other.path} and {file.path} have the same name, and a run's folder could keep only one. "
            "Rename one of them"
        )
    return _known(file.digest, file, lambda: _module_of(file))


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


class _TextLoader(SourceFileLoader):
    """Runs the text that was read: not the file, which may have changed since, and not what `__pycache__` has of it."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._text.encode(), self.path)


def _module_of(file: Plugin) -> ModuleType:
    """Import a file, whose folder need not be on the path."""
    assert file.path is not None
    name = f"rebalance_lab_plugin_{file.path.stem}_{file.digest[:8]}"
    loader = _TextLoader(name, str(file.path), file.text)
    spec = spec_from_file_location(name, file.path, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
