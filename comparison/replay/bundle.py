"""Several ES modules as one script that loads nothing. Pure.

Only the forms of `import` and `export` that the modules use are known: names in braces, from a file beside it, and
`export` before a declaration. Anything else is an error here, not in somebody's browser.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";\n', re.M)
_EXPORT = re.compile(r"^export ((?:async )?(?:const|let|function|class) (\w+))", re.M)
_LEFT = re.compile(r"^\s*(?:import|export)\b.*$|\bimport\(.*$", re.M)


def bundled(main: str, modules: Mapping[str, str]) -> str:
    """One script that does what the module `main` does; the modules by their names. Raises ValueError."""
    order: dict[str, None] = {}
    _add(main, modules, order, ())
    names = {name: f"m{number}" for number, name in enumerate(order)}
    parts = [_wrapped(modules[name], names[name], names) for name in order]
    return "\n".join(['"use strict";', "(() => {", *parts, "})();", ""])


def _add(name: str, modules: Mapping[str, str], order: dict[str, None], above: tuple[str, ...]) -> None:
    """Those that a module imports come before it."""
    if name in above:
        raise ValueError(f"modules import each other: {' -> '.join((*above, name))}")
    if name not in modules:
        raise ValueError(f"no module {name}, which {above[-1] if above else 'nobody'} imports")
    for wanted, other in _IMPORT.findall(modules[name]):
        _add(other, modules, order, (*above, name))
        lacking = {each.strip() for each in wanted.split(",")} - {*_exported(modules[other])} - {""}
        if lacking:
            raise ValueError(f"{other} does not export {', '.join(sorted(lacking))}, which {name} imports")
    order.setdefault(name)


def _wrapped(text: str, own: str, names: Mapping[str, str]) -> str:
    body = _EXPORT.sub(r"\1", _IMPORT.sub(lambda found: f"const {{{found[1]}}} = {names[found[2]]};\n", text))
    if left := _LEFT.search(body):
        raise ValueError(f"not a form that can be bundled: {left[0].strip()}")
    return f"const {own} = (() => {{\n{body}\nreturn {{ {', '.join(_exported(text))} }};\n}})();"


def _exported(text: str) -> list[str]:
    return [name for _, name in _EXPORT.findall(text)]
