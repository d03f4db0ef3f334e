"""What may follow on a command line, for each kind of value."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

from comparison.cli.completing.table import AXIS, BOUND, DESIGN, KINDS, METRIC, RUN, SCENARIO, SETTING, STEP, STRATEGY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import click

    from comparison.cli.completing.table import About, Table

    Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def values_of(parameter: About, table: Table, path: str) -> Complete:
    """The function that completes a parameter's values; `path` is its command.

    The context's `obj` is the words before the incomplete one.
    """
    kind = KINDS.get(f"{path} {parameter['name']}", KINDS.get(parameter["name"], ""))
    type_ = parameter["type"]

    def complete(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if "choices" in type_:
            return _items(incomplete, dict.fromkeys(type_["choices"], ""))
        if type_["param_type"] == "Path" and not kind:
            return [CompletionItem(incomplete, type="file" if type_["file_okay"] else "dir")]
        if kind == SCENARIO:
            return [*_items(incomplete, table.names[SCENARIO]), *_paths(incomplete, suffix=".toml")]
        if kind == RUN:
            return _paths(incomplete, suffix="")
        if kind in (DESIGN, STRATEGY, METRIC, BOUND):
            return _listed(incomplete, "", table.names[kind])
        if kind == STEP and context.obj[-1] not in parameter["opts"]:
            return []  # the second value, which is about the group
        if kind == SETTING:
            return _pairs(incomplete, {}, _settings(table, path, context.params))
        if kind == AXIS:
            return _pairs(incomplete, _axes(table), _settings(table, path, context.params))
        return _items(incomplete, table.names.get(kind, {}))

    return complete


def _items(incomplete: str, names: Mapping[str, str]) -> list[CompletionItem]:
    return [CompletionItem(name, help=text or None) for name, text in names.items() if name.startswith(incomplete)]


def _listed(incomplete: str, before: str, names: Iterable[str]) -> list[CompletionItem]:
    """The last name of a list with commas, none of it twice; `before` is what stands before the list."""
    *given, last = incomplete.split(",")
    start = f"{before}{','.join(given)}{',' if given else ''}"
    left = [name for name in names if name.startswith(last) and name not in given]
    told = names if isinstance(names, Mapping) else {}
    return [CompletionItem(f"{start}{name}", help=told.get(name) or None) for name in left]


def _pairs(
    incomplete: str, axes: Mapping[str, Iterable[str]], settings: Mapping[str, Iterable[str]]
) -> list[CompletionItem]:
    """`name=`, and after it the value, if it is one of some words; of an axis several."""
    name, equals, value = incomplete.partition("=")
    if not equals:
        return [CompletionItem(f"{each}=") for each in (*axes, *settings) if each.startswith(name)]
    return _listed(value, f"{name}=", axes.get(name, settings.get(name, ())))


def _axes(table: Table) -> dict[str, Iterable[str]]:
    known = {SCENARIO: table.names[SCENARIO], DESIGN: [each for each in table.names[DESIGN] if each != "all"]}
    return {name: known.get(name, ()) for name in table.names[AXIS]}


def _settings(table: Table, path: str, given: Mapping[str, object]) -> Mapping[str, Iterable[str]]:
    """Those of the command, in `consume` those of its design; or else all."""
    return table.settings.get(f"{path} {given.get('design')}", table.settings.get(path, table.settings[""]))


def _paths(incomplete: str, *, suffix: str) -> list[CompletionItem]:
    """Folders, each with a slash since there is more in it, but runs; and files with the suffix, if it is not ''."""
    above, _, start = incomplete.rpartition("/")
    folder = Path(os.path.expanduser(f"{above}/")) if "/" in incomplete else Path()
    try:
        found = sorted(each for each in folder.iterdir() if each.name.startswith(start))
    except OSError:
        return []
    prefix = f"{above}/" if "/" in incomplete else ""
    shown = []
    for each in found:
        if each.name.startswith(".") and not start:
            continue
        if each.is_dir():
            is_run = not suffix and (each / "trace").is_dir()
            shown.append(CompletionItem(f"{prefix}{each.name}{'' if is_run else '/'}"))
        elif suffix and each.name.endswith(suffix):
            shown.append(CompletionItem(f"{prefix}{each.name}"))
    return shown
