"""Places of runs and results: a `Path` on this machine, or a `UPath` in a store (`s3a://`, `hdfs://`), through fsspec.

Spark reads the same URIs with its own connectors. What stores need is imported only for a URI of one. Credentials are
found by the stores' clients in the environment; no place has any.

Stores have no links, and most of them no folders: whatever is written makes its folder. A file appears in them whole or
not at all. Questions raise what went wrong: fsspec's own `exists` says of a server that fails that nothing is there.
"""

from __future__ import annotations

import io
import os
import re
import secrets
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar, cast

from kernel.errors import ConfigurationError, EnvironmentFault
from kernel.platform.store_faults import explained
from kernel.platform.store_file import opened_in_store
from kernel.platform.whole_file import remove_folder, whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    from typing_extensions import TypeIs
    from upath import UPath

    Place = Path | UPath

_Value = TypeVar("_Value")
_Found = TypeVar("_Found")

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)")
#: Schemes that name stores which Spark knows by another one.
_RENAMED = {"s3": "s3a", "s3n": "s3a"}
#: Stores whose folders are renamed in one step.
_WITH_FOLDERS = frozenset({"hdfs", "viewfs"})
#: What of a store's description of a file changes with its content, beside the size.
_VERSIONS = ("ETag", "LastModified", "modification_time", "created")
#: How many questions a store is asked at a time.
_AT_ONCE = 16
_NOTHING_THERE = (FileNotFoundError,)


def is_uri(text: str) -> bool:
    """Whether a text is the URI of a place in a store."""
    uri = _URI.match(text)
    return uri is not None and uri[1].lower() != "file"


def place_of(text: str) -> Place:
    """The place that a path or a URI names; no server is asked.

    Raises ConfigurationError for a URI that cannot be used, EnvironmentFault without the packages for it.
    """
    uri = _URI.match(text)
    if uri is None:
        return Path(text)
    scheme, host = uri[1].lower(), uri[2]
    if "@" in host and scheme in ("s3a", "hdfs", *_RENAMED):
        raise ConfigurationError(f"a URI {scheme}:// has credentials in it. Give them in the environment only")
    if scheme in _RENAMED:
        raise ConfigurationError(f"{text} is not a URI for Spark. Give {_RENAMED[scheme]}{text[len(scheme) :]}")
    if scheme == "s3a" and not host:
        raise ConfigurationError(f"{text} names no bucket. Give s3a://BUCKET/FOLDER")
    try:
        from upath import UPath

        if scheme == "hdfs":
            from kernel.platform import hdfs_place  # noqa: F401  # registers itself
        place = UPath(f"{scheme}{text[len(scheme) :]}", **_options(scheme))
        place.fs  # noqa: B018  # loads the client
    except ImportError as error:
        raise EnvironmentFault(
            f"{scheme}:// needs packages that are not installed ({error}). Install rebalance-lab[stores]"
        ) from None
    except (ValueError, RuntimeError) as error:
        raise ConfigurationError(f"{text} cannot be used: {error}. Give a folder, s3a:// or hdfs://") from None
    return cast("UPath", place)


def _options(scheme: str) -> dict[str, Any]:
    """What the client of a store is made with: it remembers no listings, since others write too, and gives up soon."""
    if scheme == "s3a":
        patience = {"connect_timeout": 5, "read_timeout": 20, "retries": {"total_max_attempts": 3, "mode": "standard"}}
        return {"use_listings_cache": False, "config_kwargs": patience}
    if scheme == "hdfs":
        return {"dfs.client.failover.max.attempts": "4", "dfs.client.failover.sleep.max.millis": "1000"}
    return {}


def is_in_store(place: Place) -> TypeIs[UPath]:
    return not isinstance(place, Path)


def resolved(place: Place) -> Place:
    """The place without links, where there are any."""
    return place.resolve() if isinstance(place, Path) else place


def opened(place: Place) -> BinaryIO:
    """Open a file for reading. Raises OSError for all but regular files: a pipe would never end."""
    if is_in_store(place):
        return opened_in_store(place)
    file = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(file).st_mode):
        return open(file, "rb")  # a descriptor, and the caller closes it
    os.close(file)
    raise OSError(0, "not a regular file", str(place))


def exists(place: Place) -> bool:
    """Whether something is there. Raises StoreFault or Unavailable for a store that cannot be asked."""
    if not is_in_store(place):
        return place.exists()
    try:
        with explained(str(place), but=_NOTHING_THERE):
            place.fs.info(place.path)
    except FileNotFoundError:
        return False
    return True


def below(folder: Place, *patterns: str) -> list[Place]:
    """What is at any depth below a folder, and matches one of the patterns; in a store only files."""
    if not is_in_store(folder):
        return [path for pattern in patterns for path in folder.glob(f"**/{pattern}")]
    return [
        _at(folder, name) for name in _names(folder) if any(PurePosixPath(name).match(pattern) for pattern in patterns)
    ]


def sizes_below(folder: Place, pattern: str) -> dict[Place, int]:
    """These files and their sizes."""
    if not is_in_store(folder):
        return {path: path.stat().st_size for path in folder.glob(f"**/{pattern}")}
    return {
        _at(folder, name): about["size"] for name, about in _names(folder).items() if PurePosixPath(name).match(pattern)
    }


def _names(folder: UPath) -> dict[str, dict[str, Any]]:
    """All files below, by their names for fsspec, which would leave out what it cannot list."""
    careful = {} if folder.fs.async_impl else {"on_error": "raise"}
    try:
        with explained(str(folder), but=_NOTHING_THERE):
            return cast("dict[str, dict[str, Any]]", folder.fs.find(folder.path, detail=True, **careful))
    except FileNotFoundError:
        return {}


def _at(folder: UPath, name: str) -> UPath:
    return folder / name[len(folder.path.rstrip("/")) :].lstrip("/")


def name_below(place: Place, folder: Place) -> str:
    """The part of a place's name that is below the folder's."""
    return str(place)[len(str(folder).rstrip("/")) + 1 :]


def version_of(place: UPath) -> list[str]:
    """Changes with a file in a store."""
    with explained(str(place), but=_NOTHING_THERE):
        about = place.fs.info(place.path)
    return [str(about[name]) for name in ("size", *_VERSIONS) if name in about]


def make_folder(place: Place, *, parents: bool = False) -> None:
    """Make a folder, where folders have to be made."""
    if not is_in_store(place):
        place.mkdir(parents=parents, exist_ok=True)


@contextmanager
def whole(place: Place) -> Iterator[Path | io.BytesIO]:
    """What to write to in the block: a path or a file. What stood there is replaced when the block has ended well."""
    if not is_in_store(place):
        with whole_file(place) as path:
            yield path
        return
    content = io.BytesIO()
    yield content
    _put(place, content.getvalue())


def write_whole(place: Place, content: bytes) -> None:
    """Write a file, whole or not at all."""
    if is_in_store(place):
        _put(place, content)
    else:
        with whole_file(place) as path:
            path.write_bytes(content)


def _put(place: UPath, content: bytes) -> None:
    with explained(str(place)):
        if place.protocol in _WITH_FOLDERS:
            # What is being written there is seen.
            temporary = place.parent / f".rebalance-lab-{secrets.token_hex(8)}.part"
            place.fs.pipe_file(temporary.path, content)
            place.fs.mv(temporary.path, place.path, overwrite=True)
        else:
            place.fs.pipe_file(place.path, content)


def copy_file(source: Place, target: Place) -> None:
    """Copy a file within a store: by the store itself, if it can."""
    if not (is_in_store(source) and is_in_store(target)) or source.protocol in _WITH_FOLDERS:
        write_whole(target, source.read_bytes())
    else:
        with explained(str(target)):
            source.fs.cp_file(source.path, target.path)


def renames_folders(place: Place) -> bool:
    """Whether a folder there gets another name in one step."""
    return not is_in_store(place) or place.protocol in _WITH_FOLDERS


def remove(place: Place) -> None:
    """Remove a file or a folder with all that is in it, if it is there; of a symbolic link only the link."""
    if is_in_store(place):
        if exists(place):
            with explained(str(place)):
                place.fs.rm(place.path, recursive=True)
    elif place.is_dir():
        remove_folder(place)
    else:
        place.unlink(missing_ok=True)


def arrow_source(place: Place) -> dict[str, Any]:
    """The arguments by which PyArrow's readers of Parquet find a file or a folder of files."""
    return (
        {"source": place.path, "filesystem": place.fs} if is_in_store(place) else {"source": place, "filesystem": None}
    )


def each_of(work: Callable[[_Value], _Found], values: Sequence[_Value], *, in_store: bool) -> list[_Found]:
    """What `work` makes of each, several at a time where the answers come from far away."""
    if not in_store:
        return [work(value) for value in values]
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="store") as pool:
        return list(pool.map(work, values))
