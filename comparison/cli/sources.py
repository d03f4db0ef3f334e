"""Where the runs of an analysis are, and where its results go: folders, patterns of folders, and URIs of stores."""

from __future__ import annotations

import glob
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from comparison.near_paths import path_complaint
from comparison.run_folder import run_dirs_in
from comparison.screen.counted import counted
from kernel.errors import ConfigurationError, EnvironmentFault
from kernel.platform.places import exists, is_in_store, is_uri, place_of
from kernel.platform.store_faults import StoreFault, explained
from kernel.platform.whole_file import require_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from upath import UPath

    from kernel.platform.places import Place


#: How long a store may take for its first answer.
_PATIENCE_S = 30.0


def sources_of(given: Iterable[str]) -> list[Place]:
    """The folders that a user gave, each once.

    Raises EnvironmentFault for what is not there, and for a pattern that matches nothing; Unavailable for a store that
    does not answer.
    """
    found: list[Place] = []
    for text in given:
        found += _in_store(text) if is_uri(text) else _matching(local_path(text))
    return list(dict.fromkeys(found))


def runs_in(folders: Iterable[Place]) -> list[Place]:
    """The folders of all runs in these folders; folders in stores as they are. Raises EnvironmentFault without any."""
    return list(
        dict.fromkeys(run for folder in folders for run in ([folder] if is_in_store(folder) else run_dirs_in(folder)))
    )


def local_path(text: str) -> str:
    """A path, or that of a URI `file://`."""
    if not text.lower().startswith("file:/"):
        return text
    uri = urlsplit(text)
    if uri.netloc not in ("", "localhost"):
        raise ConfigurationError(f"{text} is on the host {uri.netloc}. Give file:///FOLDER for this one")
    return unquote(uri.path)


def _in_store(text: str) -> list[UPath]:
    """The folder, or the folders that match a pattern."""
    place = place_of(text)
    assert is_in_store(place)
    if _is_there(place):
        return [place]
    with explained(text):
        names = sorted(place.fs.glob(place.path)) if glob.has_magic(place.path) else []
        found = [place.with_segments(name) for name in names if place.fs.isdir(name)]
    if not found:
        raise StoreFault(f"no folder {text}. Give one that has runs of `run` or `compare` in it")
    return found


def _is_there(place: UPath) -> bool:
    """Whether something is at the place: the first question to its store.

    A thread asks, because a client that waits for an answer does not hear of an interrupt. Raises Unavailable if the
    store does not answer, StoreFault if it refuses to.
    """
    answer: Future[bool] = Future()

    def ask() -> None:
        try:
            answer.set_result(exists(place))
        except BaseException as error:  # noqa: BLE001  # whoever waits for the answer gets it
            answer.set_exception(error)

    with explained(str(place)):
        threading.Thread(target=ask, name="first question to a store", daemon=True).start()
        return answer.result(_PATIENCE_S)


def _matching(path: str) -> list[Path]:
    """The folder, or the folders that match a pattern: the shell leaves quoted ones to us."""
    if not glob.has_magic(path) or Path(path).exists():
        if not Path(path).is_dir():
            raise EnvironmentFault(path_complaint(Path(path), "Give a folder that `run` or `compare` created"))
        return [_resolved(Path(path))]
    found = [_resolved(Path(each)) for each in sorted(glob.glob(path, recursive=True)) if Path(each).is_dir()]
    if not found:
        raise EnvironmentFault(f"no folder matches {path}. Give a pattern of folders that `run` or `compare` created")
    return found


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # a link that leads to itself
        raise EnvironmentFault(f"{path} cannot be followed: {error}. Give a folder") from None


def output_folder(given: str | None, sources: Sequence[Place]) -> Place:
    """Where the results go: what was given, or the only folder. Raises ConfigurationError if nobody can say."""
    if given is None:
        if len(sources) != 1:
            raise ConfigurationError(
                f"several places are given ({counted(len(sources), 'folder')}). Say with --output where result.json, "
                "the report and the tables go"
            )
        (only,) = sources
        return only if is_in_store(only) else require_text(only)
    if is_uri(given):
        place = place_of(given)
        assert is_in_store(place)
        _is_there(place)
        return place
    folder = require_text(_resolved(Path(local_path(given))))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(f"cannot write to {folder}: {error.strerror}. Choose another --output") from error
    return folder
