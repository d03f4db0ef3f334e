"""What MkDocs cannot do with the pages of `docs/` as they are: they also lead out of `docs/`, on a forge and on paper.

- CONTRIBUTING.md and CHANGELOG.md become pages of the site.
- A file that a page links to, such as a module, becomes a page with its text, so that the link works without the
  repository. Such pages are not searched.
- A recording that a page links to becomes the page that is made of it, with a link back. (A replay or report that
  somebody makes has none: it stands alone.)
- A picture in two colours, `<picture>`, becomes two, of which the site's style shows one: the reader may have chosen
  other colours than those of the system. A drawing needs no second file: browsers answer the media query of an image by
  the `color-scheme` of the page around it. (Older Safaris answer by the system, or light. Each has paper of its own.)
- Proposals (KIPs), tickets and pages of Kafka's wiki that a text names become links to them, by `sources.toml`.
- Names in code are marked, so that the site's style can keep them whole in narrow cells of tables.
- A wide picture leads to itself: on a phone it shows the whole at a glance, and alone it can be enlarged.

A link to what does not exist stays as it is, and MkDocs refuses it.
"""

from __future__ import annotations

import json
import posixpath
import re
import tomllib
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

from mkdocs.structure.files import File, InclusionLevel

from docs.generators.recorded_pages import pages as recorded_pages
from docs.generators.recording import SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
#: Pages outside `docs/`, and which pages of the site they are.
OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
#: What browsers show as it is.
_SHOWN = (".md", ".png", ".svg")
_LANGUAGES = {".py": "python", ".toml": "toml", ".sh": "bash", ".yaml": "yaml", ".json": "json"}
_LINK = re.compile(r"(?<=\]\()([\w./-]+)(?=(?:#[\w.-]*)?\))")
_FENCE = re.compile(r"^( *)(```+|~~~+).*?^\1\2`*$", re.MULTILINE | re.DOTALL)
#: Inline code that is one name, not a command or a path.
_NAME = re.compile(r"<code>([^<>\s]{1,36})</code>")
#: A picture, or a link around pictures, which leads elsewhere.
_SHOWN_PICTURE = re.compile(r'<a [^>]*>(?:<img [^>]*>)+</a>|<img [^>]*src="(?P<src>[^"#]+)[^>]*>')
#: A drawing that is wider than this shrinks on a phone to what nobody can read.
_WIDE = 760
_PICTURE = re.compile(
    r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="(?P<dark>[^"]+)">\s*'
    r'<img alt="(?P<alt>[^"]*)" src="(?P<light>[^"]+)">\s*</picture>'
)
#: What a page that is made of a recording begins with.
_HEADER = '<header>\n<a href="../recorded.html">← All recordings</a>'
_WIKI, _TICKETS = "https://cwiki.apache.org/confluence/", "https://issues.apache.org/jira/browse/"
_NAMED = re.compile(r"\b(?:KIP|KAFKA|ZOOKEEPER)-\d+\b")
_TAG = re.compile(r"(<[^>]*>)")
#: What stands in these is not linked: a link, code, a heading.
_UNLINKED = re.compile(r"<(/?)(?:a|code|pre|h[1-6]|script|style)\b", re.IGNORECASE)


@cache
def sources() -> dict[str, tuple[str, str]]:
    """What pages may name: its title and its address."""
    table = tomllib.loads((Path(__file__).parent / "sources.toml").read_text(encoding="utf-8"))
    found = {}
    for number, told in table["proposals"].items():
        title, at = (told, "") if isinstance(told, str) else (told["title"], told["at"])
        found[f"KIP-{number}"] = title, _WIKI + (at or f"display/KAFKA/{quote_plus(title)}")
    found |= {name: (f"{name}, Kafka's wiki", f"{_WIKI}display/KAFKA/{at}") for name, at in table["wiki"].items()}
    for project, numbers in table["tickets"].items():
        found |= {f"{project}-{number}": ("", f"{_TICKETS}{project}-{number}") for number in numbers}
    return found


def named(text: str) -> list[str]:
    """The proposals and tickets that a text names."""
    return _NAMED.findall(text)


@cache
def _sources_named() -> re.Pattern[str]:
    return re.compile("|".join(rf"\b{re.escape(name)}\b" for name in sources()))


def with_sources(html: str) -> str:
    """A page whose text leads to what it names."""

    def link(name: re.Match[str]) -> str:
        title, address = sources()[name.group()]
        told = f' title="{escape(title)}"' if title else ""
        return f'<a class="source" href="{address}"{told}>{name.group()}</a>'

    parts, depth = _TAG.split(html), 0
    for place, part in enumerate(parts):
        if not part.startswith("<"):
            parts[place] = part if depth else _sources_named().sub(link, part)
        elif tag := _UNLINKED.match(part):
            depth += -1 if tag[1] else 1
    return "".join(parts)


def place(path: str) -> str | None:
    """Where a file of the repository is on the site, None if it does not exist; both are paths from their roots."""
    if path in OUTSIDE:
        return OUTSIDE[path]
    if not (ROOT / path).is_file():
        return None
    if path.endswith(SUFFIX):
        return f"{path.removeprefix('docs/').removesuffix(SUFFIX)}.html"
    if path.startswith("docs/") and path.endswith(_SHOWN):
        return path.removeprefix("docs/")
    return f"source/{path}.md"


def origin(page: str) -> str:
    """The file of the repository that a page of the site is made from."""
    return next((path for path, made in OUTSIDE.items() if made == page and path != "README.md"), f"docs/{page}")


def outside_code(markdown: str, change: Callable[[str], str]) -> str:
    """Change what is not in a block of code."""
    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence.group()]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])


def linked(markdown: str, path: str) -> set[str]:
    """The files of the repository that a page there links to."""
    found: set[str] = set()

    def note(text: str) -> str:
        found.update(_resolved(link, path) for link in _LINK.findall(text))
        return text

    outside_code(markdown, note)
    return found


def for_site(markdown: str, path: str, page: str) -> str:
    """The Markdown of a file of the repository as that of a page of the site."""

    def moved(link: re.Match[str]) -> str:
        where = place(_resolved(link.group(), path))
        return link.group() if where is None else posixpath.relpath(where, posixpath.dirname(page) or ".")

    def changed(text: str) -> str:
        return _LINK.sub(moved, _PICTURE.sub(r"![\g<alt>](\g<light>#only-light)![\g<alt>](\g<dark>#only-dark)", text))

    return outside_code(markdown, changed)


def source_page(path: str) -> str:
    """A page with the text of a file."""
    text = (ROOT / path).read_text(encoding="utf-8")
    head = f"---\ntitle: {path}\nhide: [navigation, toc]\nsearch:\n  exclude: true\n---\n\n# {path}\n\n"
    if path.endswith(".ipynb"):
        cells = (("".join(cell["source"]), cell["cell_type"]) for cell in json.loads(text)["cells"])
        return head + "\n\n".join(_fenced(source, "python") if kind == "code" else source for source, kind in cells)
    return head + _fenced(text, _LANGUAGES.get(posixpath.splitext(path)[1], "text"))


def _fenced(text: str, language: str) -> str:
    fence = "`" * (2 + max((len(ticks) for ticks in re.findall(r"`+", f"{text}`")), default=1))
    return f"{fence} {language}\n{text.rstrip()}\n{fence}"


def _resolved(link: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


# -- what MkDocs calls -------------------------------------------------------------------------------------------------


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add pages for what is outside `docs/`, and for the recordings."""
    for name, page in recorded_pages().items():
        files.append(File.generated(config, f"recorded/{name}.html", content=page.replace("<header>", _HEADER, 1)))
    for path, page in OUTSIDE.items():
        if files.get_file_from_path(page) is None:
            files.append(File.generated(config, page, content=(ROOT / path).read_text(encoding="utf-8")))
    texts = {file.src_uri: file.content_string for file in files.documentation_pages()}
    cited = {path for page, text in texts.items() for path in linked(text, origin(page))}
    for path in sorted(cited):
        cited_page = place(path)
        if cited_page is not None and cited_page.startswith("source/"):
            made = File.generated(config, cited_page, content=source_page(path))
            made.inclusion = InclusionLevel.NOT_IN_NAV
            files.append(made)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let the links of a page lead to pages of the site."""
    uri = page.file.src_uri
    return markdown if uri.startswith("source/") else for_site(markdown, origin(uri), uri)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link what the page names, mark names that should not be broken, and let wide pictures be enlarged."""

    def enlarged(shown: re.Match[str]) -> str:
        source = shown["src"]
        if source is None or not _is_wide(Path(config.docs_dir, posixpath.dirname(page.file.src_uri), source)):
            return shown.group()
        return f'<a class="picture" href="{source}">{shown.group()}</a>'

    if not page.file.src_uri.startswith("source/"):
        html = with_sources(html)
    return _SHOWN_PICTURE.sub(enlarged, _NAME.sub(r'<code class="whole">\1</code>', html))


def _is_wide(picture: Path) -> bool:
    """Whether its text is small on a phone: a screenshot's is."""
    if picture.suffix != ".svg":
        return True
    width = re.search(r'<svg [^>]*\bwidth="(\d+)"', picture.read_text(encoding="utf-8"))
    return width is not None and int(width[1]) > _WIDE
