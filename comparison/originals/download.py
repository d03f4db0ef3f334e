"""Downloads jars from the user's Maven repository: `python -m comparison.originals.download FOLDER G:A:V...`

It uses jgo. The repository is, in this order: $MAVEN_REPOSITORY_URL; the mirror of Maven Central in
`~/.m2/settings.xml`, with its server's user and password; Maven Central. Certificates and proxies are those of
Python's `requests` (REQUESTS_CA_BUNDLE, HTTPS_PROXY). Java downloads nothing here: a Java from PyPI has its own list
of trusted certificates, and would not connect behind a proxy with another one.

Writes {"G:A:V": {"path": ...} or {"error": why}} to standard output.
"""

from __future__ import annotations

import os
import re
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from jgo.maven import MavenContext

REPOSITORY_VARIABLE = "MAVEN_REPOSITORY_URL"

_AT_ONCE = 8
_TIMEOUT_S = 30
_STANDS_FOR_CENTRAL = {"*", "central", "external:*"}
_PLACEHOLDER = re.compile(r"\$\{env\.(\w+)\}")
_CREDENTIALS = re.compile(r"//[^/@\s]+@")


def repository(settings: Path) -> str | None:
    """The address of the repository, with credentials; None for Maven Central.

    Raises `ElementTree.ParseError` when `settings` is not XML.
    """
    chosen = os.environ.get(REPOSITORY_VARIABLE) or mirror_of_central(settings)
    return chosen.rstrip("/") if chosen else None


def mirror_of_central(settings: Path) -> str | None:
    """The first mirror of Maven Central in a Maven settings file, as Maven chooses it."""
    try:
        root = ElementTree.fromstring(settings.read_bytes())
    except FileNotFoundError:
        return None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # with or without Maven's namespace
    for mirror in root.findall("mirrors/mirror"):
        named = {name.strip() for name in _text(mirror, "mirrorOf").split(",")}
        if _text(mirror, "blocked") != "true" and "!central" not in named and named & _STANDS_FOR_CENTRAL:
            return _with_credentials(_text(mirror, "url"), root, _text(mirror, "id"))
    return None


def _with_credentials(url: str, root: Element, server_id: str) -> str:
    for server in root.findall("servers/server"):
        if _text(server, "id") == server_id and _text(server, "username"):
            quoted = [urllib.parse.quote(_text(server, key), safe="") for key in ("username", "password")]
            parts = urllib.parse.urlsplit(url)
            return urllib.parse.urlunsplit(parts._replace(netloc=f"{':'.join(quoted)}@{parts.netloc}"))
    return url


def _text(element: Element, name: str) -> str:
    """A child's text, with ${env.NAME} replaced as Maven does."""
    text = (element.findtext(name) or "").strip()
    return _PLACEHOLDER.sub(lambda match: os.environ.get(match.group(1), match.group()), text)


def context_of(folder: Path, url: str | None) -> MavenContext:
    """What resolves and downloads jars into `folder`."""
    from jgo.maven import MavenContext, PythonResolver

    repositories = {"central": url} if url else None
    return MavenContext(
        resolver=PythonResolver(), repo_cache=folder, local_repos=[], remote_repos=repositories, timeout=_TIMEOUT_S
    )


def fetch(coordinates: str, folder: Path, url: str | None) -> dict[str, str]:
    """Download one jar into `folder`; {"path": ...} or {"error": why}, without credentials."""
    import requests

    group, artifact, version = coordinates.split(":")
    try:
        return {"path": str(context_of(folder, url).project(group, artifact).at_version(version).artifact().resolve())}
    except (requests.RequestException, OSError) as error:
        return {"error": _CREDENTIALS.sub("//", f"{type(error).__name__}: {error}")}
    except RuntimeError:  # jgo raises this for any status but 200
        return {"error": "the repository does not have it"}


def main() -> None:
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    settings = Path.home() / ".m2" / "settings.xml"
    try:
        url = repository(settings)
    except (ElementTree.ParseError, OSError) as error:
        sys.exit(f"{settings} cannot be read: {error}")
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(pool.map(lambda name: fetch(name, folder, url), wanted))
    sys.stdout.buffer.write(msgspec.json.encode(dict(zip(wanted, results, strict=True))))


if __name__ == "__main__":
    main()
