"""Runs in stores that Spark can read (hdfs://, s3a:// and others), by Hadoop's file systems in the driver's JVM.

What an analysis needs of such runs is copied to a local folder, a few files at a time: tasks need no client of the
store then, and files may be of any size. A copy has the size and the time of its original, so that the next analysis
copies only what is new; what is gone from the store goes from the folder.
"""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j publishes no types

from comparison.pipeline.spark.messages import in_short
from kernel.errors import EnvironmentFault, Unavailable, UserError
from kernel.platform.whole_file import own_folder, whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

_COPIERS = 4
_NS_PER_MS = 1_000_000
#: What an analysis reads.
_WANTED = re.compile(r"(^|/)(trace/[^/]+\.jsonl|run\.json|command\.json)$")
#: The Maven packages of connectors that PySpark lacks, by scheme; `{}` is Hadoop's version.
_CONNECTORS = {
    "s3a": "org.apache.hadoop:hadoop-aws:{}",
    "abfs": "org.apache.hadoop:hadoop-azure:{}",
    "abfss": "org.apache.hadoop:hadoop-azure:{}",
    "gs": "com.google.cloud.bigdataoss:gcs-connector:hadoop3-2.2.26",
}
_MISSING = ("ClassNotFoundException", "NoClassDefFoundError", "UnsupportedFileSystemException")
#: Hadoop would ask a server that does not answer for many minutes.
_PATIENCE = {"ipc.client.connect.max.retries": "2", "ipc.client.connect.max.retries.on.timeouts": "1"}


#: How Java complains of a server that is not there.
_UNREACHABLE = tuple(
    f"java.net.{name}Exception"
    for name in ("Connect", "NoRouteToHost", "PortUnreachable", "SocketTimeout", "UnknownHost")
)


class StoreFault(EnvironmentFault):
    """A store cannot be read; the message says what to do."""


class _File(NamedTuple):
    """A file in a store."""

    path: Any  #: Hadoop's
    name: str  #: below the folder
    size: int
    changed_ms: int


def copied(
    spark: SparkSession, uris: Sequence[str], folder: Path, progress: Callable[[str], None] = lambda _: None
) -> dict[Path, str]:
    """Copy the runs at these URIs, which may have wildcards, to `folder`: the copies' folders, and what they are of.

    Raises Unavailable if a store does not answer, StoreFault if it cannot be read, UserError if nothing is there.
    """
    java: Any = spark.sparkContext._jvm
    context: Any = spark.sparkContext
    conf = java.org.apache.hadoop.conf.Configuration(context._jsc.hadoopConfiguration())
    for name, value in _PATIENCE.items():
        if spark.conf.get(f"spark.hadoop.{name}", None) is None:
            conf.set(name, value)
    found: dict[Path, str] = {}
    for uri in uris:
        with _explained(uri, java):
            path = java.org.apache.hadoop.fs.Path(uri)
            store = path.getFileSystem(conf)
            matching = store.globStatus(path) or []
            places = [each.getPath() for each in matching if each.isDirectory()]
            copies = {place.toString(): _local_name(folder, place.toString()) for place in places}
            files = {place.toString(): list(_wanted_files(store, place)) for place in places}
            for name, of_one in files.items():
                _copy(java, store, of_one, copies[name], progress)
        if not any(files.values()):
            raise UserError(f"no run in {uri}. Give a folder that `run` or `compare` created")
        found |= {local: name for name, local in copies.items()}
    return found


def _local_name(folder: Path, uri: str) -> Path:
    scheme, _, rest = uri.partition(":")
    parts = [part for part in rest.split("/") if part not in ("", ".", "..")]
    return folder.joinpath(scheme, *parts)


def _wanted_files(store: Any, place: Any) -> Iterator[_File]:
    files = store.listFiles(place, True)
    begin = len(place.toUri().getPath().rstrip("/")) + 1
    while files.hasNext():
        status = files.next()
        name = status.getPath().toUri().getPath()[begin:]
        if _WANTED.search(name):
            yield _File(status.getPath(), name, status.getLen(), status.getModificationTime())


def _copy(java: Any, store: Any, files: Sequence[_File], folder: Path, progress: Callable[[str], None]) -> None:
    """Make `folder` hold these files and no others."""
    expected = {folder / file.name: file for file in files}
    for path in expected:
        own_folder(folder, *path.parent.relative_to(folder).parts)
    for path in folder.rglob("*"):
        if (path.is_file() or path.is_symlink()) and path not in expected:
            path.unlink()
    missing = {path: file for path, file in expected.items() if not _is_copy(path, file)}
    if not missing:
        return
    size = sum(each.size for each in missing.values())
    progress(f"{folder.name}: copying {len(missing)} of {len(files)} files, {size:,} bytes")
    pool = ThreadPoolExecutor(_COPIERS, thread_name_prefix="copying")
    try:
        for done in [pool.submit(_copy_file, java, store, file, path) for path, file in missing.items()]:
            done.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _is_copy(path: Path, file: _File) -> bool:
    try:
        about = path.stat()
    except OSError:
        return False
    return (about.st_size, about.st_mtime_ns) == (file.size, file.changed_ms * _NS_PER_MS)


def _copy_file(java: Any, store: Any, file: _File, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        target = java.org.apache.hadoop.fs.Path("file", None, str(temporary.absolute()))
        store.copyToLocalFile(False, file.path, target, True)
        os.utime(temporary, ns=(file.changed_ms * _NS_PER_MS, file.changed_ms * _NS_PER_MS))


@contextmanager
def _explained(uri: str, java: Any) -> Iterator[None]:
    """Translate what Hadoop raises."""
    try:
        yield
    except Py4JJavaError as error:
        raised = error.java_exception
        message = in_short(f"{raised.getClass().getName()}: {raised.getMessage()}")
        if any(name in message for name in _MISSING):
            raise StoreFault(f"{uri}: {_without_connector(uri, java)}") from None
        kind = Unavailable if message.startswith(_UNREACHABLE) else StoreFault
        raise kind(f"{uri} cannot be read: {message}") from None


def _without_connector(uri: str, java: Any) -> str:
    scheme = uri.partition(":")[0]
    package = _CONNECTORS.get(scheme)
    if package is None:
        return f"Spark has no connector for {scheme}://. Add --spark-conf spark.jars.packages=GROUP:NAME:VERSION"
    named = package.format(java.org.apache.hadoop.util.VersionInfo.getVersion())
    return f"Spark's connector for {scheme}:// is missing. Add --spark-conf spark.jars.packages={named}"
