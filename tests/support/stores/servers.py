"""Servers of stores for tests, which are skipped, with the reason, if what they are made of is not available.

    with s3() as store: ...          # moto, which answers as S3 does; Spark's connector for it
    with hdfs(folder) as store: ...  # Hadoop's own mini cluster: a name node and a data node in one JVM

The jars are of the version of Hadoop that Spark has, and are fetched as Kafka's are. `hadoop-minicluster.lock` is of
`hadoop-client-minicluster` and, since its classes need it, of `junit-jupiter-api`. `hadoop-aws.lock` is of `hadoop-aws`
and of the modules of Amazon's SDK that it uses, instead of all of them in one jar of 600 MB.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import s3fs

from comparison.originals.jars import OFFLINE_VARIABLE, OriginalsUnavailable, download_by_name, parse_lock, provide
from comparison.originals.java import OPTIONS
from kernel.platform.cache_folder import cache_dir
from kernel.platform.jre import find_java
from kernel.platform.ports import LOOPBACK
from kernel.platform.processes import start_child, stop_child
from kernel.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_START_S = 120.0
_BUCKET = "bucket"
_CLUSTER = "org.apache.hadoop.test.MiniDFSClusterManager"
#: What Hadoop does that Java 25 warns of.
_PERMITTED = ("--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow")


@dataclass(frozen=True)
class Store:
    """A folder in a store, and what a command needs to use it."""

    uri: str
    environment: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


@contextmanager
def s3() -> Iterator[Store]:
    """A bucket; the environment of this process names its server and has the credentials, too."""
    if importlib.util.find_spec("moto") is None:
        pytest.skip("moto is not installed: pip install '.[originals]'")
    from moto.server import ThreadedMotoServer

    jars = ",".join(map(str, _jars("hadoop-aws")))
    server = ThreadedMotoServer(ip_address=LOOPBACK, port=0, verbose=False)
    server.start()
    secrets = ("AKIAUNLIKELYTOOCCUR", "a-secret-that-nobody-may-see")
    environment = {
        "AWS_ACCESS_KEY_ID": secrets[0],
        "AWS_SECRET_ACCESS_KEY": secrets[1],
        "AWS_ENDPOINT_URL": "http://{}:{}".format(*server.get_host_and_port()),
        "AWS_REGION": "us-east-1",
    }
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            s3fs.S3FileSystem.clear_instance_cache()
            s3fs.S3FileSystem().mkdir(_BUCKET)
            yield Store(f"s3a://{_BUCKET}/lab", environment, ("--spark-conf", f"spark.jars={jars}"), secrets)
            s3fs.S3FileSystem.clear_instance_cache()
    finally:
        server.stop()


@contextmanager
def hdfs(folder: Path) -> Iterator[Store]:
    """A file system of its own, which is in `folder`."""
    class_path = os.pathsep.join(map(str, _jars("hadoop-minicluster")))
    details, log_path = folder / "details.json", folder / "hdfs.log"
    arguments = ["-format", "-nnport", "0", "-datanodes", "1", "-writeDetails", str(details)]
    command = [str(find_java().path), *OPTIONS, *_PERMITTED, "-Xmx256m", "-cp", class_path, _CLUSTER, *arguments]
    with log_path.open("wb") as log:
        child = start_child(command, stdout=log, stderr=log, cwd=folder)
    try:
        wait_until(
            lambda: child.poll() is not None or details.is_file(),
            _START_S,
            lambda: f"the name node; its log has {log_path.read_text()[-2_000:]}",
        )
        assert child.poll() is None, log_path.read_text()
        port = json.loads(details.read_bytes())["namenode_port"]
        yield Store(f"hdfs://{LOOPBACK}:{port}/lab")
    finally:
        stop_child(child)


@functools.cache
def _jars(name: str) -> tuple[Path, ...]:
    """The jars of a lock file here."""
    jars = parse_lock((Path(__file__).parent / f"{name}.lock").read_text(encoding="ascii"))
    try:
        download = None if os.environ.get(OFFLINE_VARIABLE) else download_by_name
        return provide(jars, cache_dir() / "jars", download=download)
    except OriginalsUnavailable as error:
        pytest.skip(f"{name} cannot be run: {error}")
