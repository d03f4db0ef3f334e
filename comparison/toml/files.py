"""Reads the TOML files that users write: a scenario, a grid, a group."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from comparison.near_paths import is_toml, path_complaint
from comparison.toml.places import NotToml, located
from kernel.errors import ConfigurationError, EnvironmentFault, SeveralErrors
from kernel.suggestions import placed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from comparison.toml.places import Located, Place
    from comparison.toml.places import Path as KeyPath

_BYTES_MAX = 1_000_000


def read_toml_text(path: Path, kind: str, instead: str = "") -> str:
    """The text of a file that holds a `kind`, such as "group"; `instead`: what else may be given.

    Raises `EnvironmentFault` if it cannot be read, `ConfigurationError` if it is too large, or not text.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_BYTES_MAX + 1)
    except OSError as error:
        remedy = f"Give {instead or f'a file with a {kind}'}"
        if isinstance(error, (FileNotFoundError, NotADirectoryError, IsADirectoryError)):
            raise EnvironmentFault(path_complaint(path, remedy, is_toml)) from error
        raise EnvironmentFault(f"cannot read {path}: {error.strerror}. {remedy}") from error
    if len(content) > _BYTES_MAX:
        raise ConfigurationError(f"more than {_BYTES_MAX} bytes ({path}). A {kind} has at most so many")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"not UTF-8 text ({path}). A {kind} is a TOML file") from error


def located_in(text: str, name: str, page: str) -> Located:
    """The content with its places; `name` is the file's, `page` describes its form. Raises `SeveralErrors`."""
    try:
        return located(text)
    except NotToml as error:
        where = f", {error.place}" if error.place else ""
        raise SeveralErrors([placed(f"not TOML: {error}. The form is in {page}", f"{name}{where}")]) from error


class FileReader:
    """Reads one file; what is wrong is collected, each with its place."""

    def __init__(self, found: Located) -> None:
        self._found = found
        self.complaints: list[tuple[Place | None, str]] = []
        self.tracebacks: list[str] = []  #: of a user's code

    def texts(self, name: str) -> list[str]:
        """The complaints in the order of the lines; `name` is the file's."""
        ordered = sorted(self.complaints, key=lambda each: each[0] or (0, 0))
        return [placed(text, f"{name}{f', {place}' if place else ''}") for place, text in ordered]

    @contextmanager
    def _complaining(self, at: KeyPath) -> Iterator[None]:
        """Complain if the block refuses what is there; the same complaint is made once."""
        try:
            yield
        except ConfigurationError as error:
            self._complain(at, str(error))
            if isinstance(error, SeveralErrors):
                self.tracebacks.append(error.details)

    def _complain(self, at: KeyPath, text: str) -> None:
        if (complaint := (self._found.place(at), text)) not in self.complaints:
            self.complaints.append(complaint)
