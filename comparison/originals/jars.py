"""The originals' jars: named by Maven coordinates in lock files, cached, and used only if their SHA-256 matches.

A lock file (`kafka-1.1.1.lock`) has a line `group:artifact:version sha256 bytes` for each jar. It has no address: the
user chooses the repository (`download.py`). Cached files are checked at each use, since disks fail and caches are
shared. A file appears in the cache only when it is complete, under its final name.

The cache is $REBALANCE_LAB_CACHE, or `rebalance-lab` in the cache folder of the XDG convention.
$REBALANCE_LAB_OFFLINE disables network access.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kernel.errors import EnvironmentFault
from kernel.platform.cache_folder import CACHE_VARIABLE, cache_dir
from kernel.platform.interpreter import module_command

#: The versions of Kafka with a lock file.
VERSIONS = ("0.8.2.2", "1.1.1", "3.9.1", "4.1.1")

OFFLINE_VARIABLE = "REBALANCE_LAB_OFFLINE"

#: Timeout for all jars of one version; the largest has about 130 MB.
_DOWNLOAD_S = 300.0

_LINE = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+) ([0-9a-f]{64}) ([0-9]{1,18})")


class OriginalsUnavailable(EnvironmentFault):
    """An original cannot be run; the message says why and what to do."""


class JarRefused(EnvironmentFault):
    """A repository returned another file than the lock file names. It was not used."""


class LockFileBroken(EnvironmentFault):
    """A lock file has been damaged since its release."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar: its coordinates, digest and size."""

    group: str
    artifact: str
    version: str
    sha256: str
    size: int  #: bytes

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


#: Downloads jars into an empty folder; for each jar's coordinates, its path or why it failed.
Downloader = Callable[[Sequence[Jar], Path], Mapping[str, Path | str]]


def locked_jars(version: str) -> tuple[Jar, ...]:
    """The jars of one version of Kafka, from its lock file, in the order of the class path."""
    if version not in VERSIONS:
        raise OriginalsUnavailable(f"no lock file for Kafka {version}. Use one of {', '.join(VERSIONS)}")
    return parse_lock((Path(__file__).parent / f"kafka-{version}.lock").read_text(encoding="ascii"))


def parse_lock(text: str) -> tuple[Jar, ...]:
    """The jars of a lock file. Raises `LockFileBroken` at a malformed line."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise LockFileBroken(f"line {number} is not 'group:artifact:version sha256 bytes': {line[:100]!r}")
        group, artifact, version, sha256, size = match.groups()
        found.append(Jar(group, artifact, version, sha256, int(size)))
    return tuple(found)


def class_path(version: str, *, cache: Path | None = None, offline: bool | None = None) -> tuple[Path, ...]:
    """The jars of one version of Kafka, downloaded if they are not cached.

    Raises `OriginalsUnavailable` (offline, or no repository answers) and `JarRefused`.
    """
    folder = (cache or cache_dir()) / "jars"
    asked = bool(os.environ.get(OFFLINE_VARIABLE)) if offline is None else offline
    return provide(locked_jars(version), folder, download=None if asked else download_by_name)


def provide(jars: Sequence[Jar], folder: Path, *, download: Downloader | None) -> tuple[Path, ...]:
    """The checked path of each jar below `folder`, in order. `download` (None: offline) fetches missing ones."""
    try:
        with ThreadPoolExecutor(8) as pool:
            ready = list(pool.map(lambda jar: is_the_one(_place(jar, folder), jar), jars))
        missing = [jar for jar, there in zip(jars, ready, strict=True) if not there]
        if missing:
            _fetch(missing, folder, download)
    except OSError as error:
        raise OriginalsUnavailable(
            f"the cache {folder} cannot be used: {error.strerror or error}. Set {CACHE_VARIABLE} to your own folder."
        ) from error
    return tuple(_place(jar, folder) for jar in jars)


def is_the_one(path: Path, jar: Jar) -> bool:
    """Whether the file exists with the locked size and SHA-256."""
    try:
        if path.stat().st_size != jar.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
    except FileNotFoundError:
        return False


def _place(jar: Jar, folder: Path) -> Path:
    return folder / jar.group / jar.file_name


def _fetch(missing: Sequence[Jar], folder: Path, download: Downloader | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # In the cache's own file system, so that the last step is a rename.
    with tempfile.TemporaryDirectory(dir=folder, prefix=".arriving-") as arriving:
        wanted = [jar for jar in missing if not _take_from_local_maven(jar, folder, Path(arriving))]
        if not wanted:
            return
        if download is None:
            names = ", ".join(jar.coordinates for jar in wanted[:3]) + (", ..." if len(wanted) > 3 else "")
            spoilt = [jar.file_name for jar in wanted if _place(jar, folder).exists()]
            damaged = f" ({', '.join(spoilt)}: found, but with another SHA-256 than in the lock file)" if spoilt else ""
            raise OriginalsUnavailable(
                f"offline, and {len(wanted)} of the jars are not in {folder}{damaged}: {names}. "
                f"Unset {OFFLINE_VARIABLE} to fetch them."
            )
        got = download(wanted, Path(arriving))
        for jar in wanted:
            _adopt(jar, got.get(jar.coordinates, "no result"), folder)


def _adopt(jar: Jar, got: Path | str, folder: Path) -> None:
    """Move a downloaded jar to its place, if it matches the lock file."""
    if isinstance(got, str):
        raise OriginalsUnavailable(
            f"{jar.coordinates} cannot be fetched: {got}. The originals need a Maven repository once: Maven Central, "
            "or a mirror named by MAVEN_REPOSITORY_URL or ~/.m2/settings.xml; REQUESTS_CA_BUNDLE names certificates."
        )
    if not is_the_one(got, jar):
        with got.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        raise JarRefused(
            f"{jar.coordinates} was not used: its SHA-256 is {found}, the lock file says {jar.sha256}. "
            "Check the repository in your settings."
        )
    place = _place(jar, folder)
    place.parent.mkdir(parents=True, exist_ok=True)
    got.replace(place)


def _take_from_local_maven(jar: Jar, folder: Path, arriving: Path) -> bool:
    """Copy a jar from the user's Maven cache, if it matches the lock file."""
    theirs = Path.home() / ".m2" / "repository" / jar.group.replace(".", "/") / jar.artifact / jar.version
    if not is_the_one(theirs / jar.file_name, jar):
        return False
    copied = Path(shutil.copy(theirs / jar.file_name, arriving / f"{jar.group}-{jar.file_name}"))
    _adopt(jar, copied, folder)
    return True


def download_by_name(jars: Sequence[Jar], folder: Path) -> Mapping[str, Path | str]:
    """Download jars with jgo, in a process of its own: its HTTP client is configured only by the environment, and
    leaves sockets open. A `Downloader`. Raises `OriginalsUnavailable` when jgo is not installed.
    """
    if importlib.util.find_spec("jgo") is None:
        raise OriginalsUnavailable("jgo, which fetches jars, is not installed. Run 'pip install jgo==3.2.*'")
    environment = dict(os.environ)
    if "SSL_CERT_FILE" in environment:
        # Python's variable; the HTTP client of jgo reads the other one.
        environment.setdefault("REQUESTS_CA_BUNDLE", environment["SSL_CERT_FILE"])
    command = module_command("comparison.originals.download", str(folder), warnings="ignore")
    try:
        done = subprocess.run(
            [*command, *(jar.coordinates for jar in jars)],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_DOWNLOAD_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise OriginalsUnavailable(
            f"timed out after {_DOWNLOAD_S:g} s downloading {len(jars)} jars. Try again, or set MAVEN_REPOSITORY_URL"
        ) from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise OriginalsUnavailable(
            f"the download failed with exit code {done.returncode}: {said[-1] if said else 'no message'}"
        )
    found = msgspec.json.decode(done.stdout, type=dict[str, dict[str, str]])
    return {coordinates: Path(each["path"]) if "path" in each else each["error"] for coordinates, each in found.items()}
