"""Create a lock file: `python -m comparison.originals.lock G:A:V... [--without G:A]... > kafka-V.lock` (maintainers).

Resolves the coordinates and their run-time dependencies, from the repository of `download.py`, and writes each jar's
coordinates, SHA-256 and size. The lock files here were created from `org.slf4j:slf4j-simple:1.7.36` and
`org.apache.kafka:kafka_2.13:V` (3.9.1, 4.1.1) or kafka_2.11 (0.8.2.2, 1.1.1), the latter two without
jars that are never loaded: scala-reflect in 1.1.1; in 0.8.2.2 junit, jline, netty, scala-xml, and slf4j-simple itself,
which is listed only for a newer slf4j-api, since 0.8.2.2 has a logger of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from pathlib import Path

from comparison.originals.download import context_of, fetch, repository


def resolved(coordinates: list[str], folder: Path, url: str | None) -> list[str]:
    """These jars and all that they depend on, as sorted G:A:V."""
    context = context_of(folder, url)
    wanted = [context.create_dependency(name) for name in coordinates]
    _, nodes = context.resolver.get_dependency_list(wanted)
    needed = {
        f"{node.dep.groupId}:{node.dep.artifactId}:{node.dep.version}"
        for node in nodes
        if node.dep.scope in ("compile", "runtime", None)
    }
    return sorted(needed | set(coordinates))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("coordinates", nargs="+", metavar="G:A:V")
    parser.add_argument("--without", action="append", default=[], metavar="G:A")
    options = parser.parse_args()
    url = repository(Path.home() / ".m2" / "settings.xml")
    with tempfile.TemporaryDirectory() as folder:
        for name in resolved(options.coordinates, Path(folder), url):
            if name.rpartition(":")[0] in options.without:
                continue
            got = fetch(name, Path(folder), url)
            if "error" in got:
                sys.exit(f"{name}: {got['error']}")
            jar = Path(got["path"])
            with jar.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            sys.stdout.write(f"{name} {digest} {jar.stat().st_size}\n")


if __name__ == "__main__":
    main()
