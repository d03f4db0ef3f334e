"""Fits what follows a command's options in its help, examples and prose, into a terminal of 80 columns."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

#: click indents by two.
WIDTH = 78
#: A paragraph that click is not to wrap.
_AS_IT_IS = "\b"
_OF_OPTION = re.compile(r"(\s-{1,2}[\w-]+) (?=[^-\s])")
_BETWEEN = re.compile(r"(?<=\S) {2,}(?=\S)")


def with_fitted_epilogs(command: click.Command) -> click.Command:
    """Fit the epilogs of a command and its subcommands. Does nothing the second time."""
    if command.epilog is not None:
        command.epilog = fitted(command.epilog)
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            with_fitted_epilogs(subcommand)
    return command


def fitted(epilog: str) -> str:
    """The epilog with no line longer than WIDTH that can be broken.

    A line that is indented is an example: a long one has its comment below it, or goes on in the next line after a
    backslash. Other lines are prose; one that does not end a sentence goes on in the next.
    """
    lines: list[str] = []
    for line in _sentences(epilog.splitlines()):
        if len(line) <= WIDTH:
            lines.append(line)
        elif line.startswith("  "):
            lines += _example(line)
        else:
            lines += textwrap.wrap(line, WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def _sentences(lines: list[str]) -> Iterator[str]:
    """The lines, with those of a sentence joined."""
    prose = ""
    for line in lines:
        if line.startswith("  ") or line in ("", _AS_IT_IS):
            yield from [prose] if prose else []
            yield line
            prose = ""
            continue
        prose = f"{prose} {line}" if prose else line
        if prose.endswith((".", ":", ";")):
            yield prose
            prose = ""
    yield from [prose] if prose else []


def _example(line: str) -> list[str]:
    command, *comment = _BETWEEN.split(line, maxsplit=1)
    if comment and len(closer := f"{command}  {comment[0]}") <= WIDTH:
        return [closer]
    whole = _OF_OPTION.sub(r"\1\0", command.strip())  # an option stays with its value
    rows = textwrap.wrap(whole, WIDTH - 4, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    rows = [row.replace("\0", " ") for row in rows]
    remark = textwrap.wrap(comment[0], WIDTH - 6) if comment else []
    return [*(f"  {row} \\" for row in rows[:-1]), f"  {rows[-1]}", *(f"      {row}" for row in remark)]
