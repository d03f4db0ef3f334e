"""Where the runs of an analysis are: folders, patterns of folders, and URIs of stores that Spark can read."""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from comparison.near_paths import path_complaint
from comparison.run_folder import run_dirs_in
from comparison.screen.counted import counted
from kernel.errors import ConfigurationError, EnvironmentFault
from kernel.platform.whole_file import require_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class Sources(NamedTuple):
    """Local folders with runs in them, and URIs of others."""

    folders: tuple[Path, ...]
    uris: tuple[str, ...]

    def run_dirs(self) -> list[Path]:
        """The folders of all local runs. Raises EnvironmentFault for a folder without one."""
        return list(dict.fromkeys(run for folder in self.folders for run in run_dirs_in(folder)))


NOWHERE_ELSE = Sources((), ())


def sources_of(given: Iterable[str]) -> Sources:
    """What a user gave. Raises EnvironmentFault for a pattern that matches nothing."""
    folders: list[Path] = []
    uris: list[str] = []
    for text in given:
        if _is_remote(text):
            uris.append(text)
        else:
            folders += _matching(local_path(text))
    return Sources(tuple(dict.fromkeys(folders)), tuple(dict.fromkeys(uris)))


def _is_remote(text: str) -> bool:
    uri = _URI.match(text)
    return uri is not None and uri[1].lower() != "file"


def local_path(text: str) -> str:
    """A path, or that of a URI `file://`."""
    if not text.lower().startswith("file:/"):
        return text
    uri = urlsplit(text)
    if uri.netloc not in ("", "localhost"):
        raise ConfigurationError(f"{text} is on the host {uri.netloc}. Give file:///FOLDER for this one")
    return unquote(uri.path)


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


def output_folder(given: str | None, sources: Sources) -> Path:
    """Where the results go: what was given, or the only folder. Raises ConfigurationError if nobody can say."""
    if given is None:
        if len(sources.folders) != 1 or sources.uris:
            raise ConfigurationError(
                f"several places are given ({_counted(sources)}). Say with --output where result.json, the report and "
                "the tables go"
            )
        return require_text(sources.folders[0])
    if _is_remote(given):
        raise ConfigurationError(
            f"--output is {given}: results are written to a folder, on a cluster to one that all hosts see. "
            "Copy them from there"
        )
    folder = require_text(_resolved(Path(local_path(given))))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(f"cannot write to {folder}: {error.strerror}. Choose another --output") from error
    return folder


def _counted(sources: Sources) -> str:
    counts: Sequence[tuple[int, str]] = ((len(sources.folders), "folder"), (len(sources.uris), "URI"))
    return " and ".join(counted(count, noun) for count, noun in counts if count)
