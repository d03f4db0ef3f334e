"""Paths in HDFS that say as text which server has them, as Spark needs them; universal-pathlib's own leave it out."""

from __future__ import annotations

import os

import fsspec
import hdfs_native  # noqa: F401  # fsspec would try Hadoop's C library without it
from upath.implementations.hdfs import HDFSPath
from upath.registry import register_implementation


class HdfsPlace(HDFSPath):
    """A path of `hdfs://HOST:PORT/...`."""

    __slots__ = ()

    def __str__(self) -> str:
        server = (self.storage_options.get("host"), self.storage_options.get("port"))
        return f"hdfs://{':'.join(str(part) for part in server if part)}{self.path}"


register_implementation("hdfs", HdfsPlace, clobber=True)
# fsspec clears its cache in a forked child. There a client would wait for its threads for ever, which are not there.
os.register_at_fork(before=fsspec.get_filesystem_class("hdfs").clear_instance_cache)
