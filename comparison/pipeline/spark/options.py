"""What a user may choose about Spark besides the master and the memory; checked before anything starts."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

LOOPBACK = "127.0.0.1"
#: Below this Spark refuses to start.
MEMORY_MIN_MB = 512
#: Where an environment is unpacked, in the working directory of every executor.
ENVIRONMENT_FOLDER = "environment"

_UNITS_MB = {"m": 1, "g": 1024, "t": 1024 * 1024}
_ARCHIVES = (".tar.gz", ".tgz", ".tar", ".zip")
#: Settings that we read ourselves.
_COUNTS = ("spark.sql.shuffle.partitions", "spark.default.parallelism")
#: Others would see them on the JVM's command line, and the clients in Python do not know them.
_CREDENTIALS = re.compile(r"spark\.hadoop\.fs\.s3a\.(?:.*\.)?(?:access\.key|secret\.key|session\.token)")
_OURS = "the driver is started without spark-submit's launcher"
#: Settings that would break the analysis, and what to do instead.
REFUSED: Mapping[str, str] = {
    "spark.master": "use --master",
    "spark.driver.memory": "use --memory",
    "spark.driver.host": "use --driver-host",
    "spark.driver.bindAddress": "use --bind-address",
    "spark.archives": "use --environment",
    "spark.pyspark.python": "use --executor-python",
    "spark.pyspark.driver.python": "the driver is this command",
    "spark.submit.deployMode": "the driver is this command",
    "spark.remote": "use --master sc://HOST:PORT",
    "spark.api.mode": "use --master sc://HOST:PORT",
    "spark.local.dir": "set TMPDIR to another disk",
    "spark.driver.extraJavaOptions": _OURS,
    "spark.driver.defaultJavaOptions": _OURS,
    "spark.driver.extraClassPath": _OURS,
    "spark.driver.extraLibraryPath": _OURS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """Raises ConfigurationError for a value that cannot work."""

    conf: Mapping[str, str] = field(default_factory=dict)  #: Spark's settings, by Spark's names
    driver_host: str | None = None  #: the driver's address as executors see it; None for loopback
    bind_address: str | None = None  #: where the driver listens; None for the driver's host
    environment: str | None = None  #: a packed Python environment for executors: a file, or a URI that Spark can read
    executor_python: str | None = None  #: the Python of executors; None for the environment's, or ours

    def __post_init__(self) -> None:
        for name, value in self.conf.items():
            if not name.startswith("spark."):
                raise ConfigurationError(f"{name!r} is not a Spark setting: its name must begin with 'spark.'")
            if name in REFUSED:
                raise ConfigurationError(f"{name} cannot be set: {REFUSED[name]}")
            if _CREDENTIALS.fullmatch(name):
                raise ConfigurationError(f"{name} cannot be set: give credentials in the environment only")
            if name in _COUNTS and not re.fullmatch(r"[1-9][0-9]{0,5}", value):
                raise ConfigurationError(f"{name} is {value!r}: must be between 1 and 999999")
        if self.driver_host is not None:
            _check_resolved("--driver-host", self.driver_host)
        if self.bind_address is not None or self.driver_host is not None:
            _check_bindable(self.bind_on)
        if self.environment is not None and ":/" not in self.environment:
            _check_archive(Path(self.environment))

    @property
    def host(self) -> str:
        return self.driver_host or LOOPBACK

    @property
    def bind_on(self) -> str:
        return self.bind_address or self.host

    @property
    def python(self) -> str | None:
        """The Python of executors; None for the one that runs this."""
        if self.executor_python is None and self.environment is not None:
            return f"./{ENVIRONMENT_FOLDER}/bin/python"
        return self.executor_python


def checked_memory(size: str) -> str:
    """A size for `-Xmx` and Spark alike, as `2g` or `1500m`. Raises ConfigurationError for any other."""
    parts = re.fullmatch(r"([0-9]{1,6})([mgt])b?", size.strip().lower())
    if parts is None:
        raise ConfigurationError(f"--memory {size!r} is not a size. Give a number with a unit, such as 1500m or 2g")
    if int(parts[1]) * _UNITS_MB[parts[2]] < MEMORY_MIN_MB:
        raise ConfigurationError(f"memory is {size}: Spark needs at least {MEMORY_MIN_MB}m")
    return parts[1] + parts[2]


def _check_resolved(option: str, host: str) -> None:
    try:
        socket.getaddrinfo(host, None)
    except OSError as error:
        raise ConfigurationError(f"{option} is {host}: {error.strerror}. Give an address of this machine") from None


def _check_bindable(address: str) -> None:
    _check_resolved("--bind-address", address)
    family, kind, protocol, _, place = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        try:
            probe.bind(place)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {address}: {error.strerror}. Give an address of this machine with --bind-address"
            ) from None


def _check_archive(path: Path) -> None:
    if not path.name.endswith(_ARCHIVES):
        raise ConfigurationError(f"--environment {path} is not a packed environment. Give one ({', '.join(_ARCHIVES)})")
    if not path.is_file():
        raise ConfigurationError(f"there is no file {path}. Give another --environment")
