"""The one shape of an error at the command line: `Error: what was wrong (where). What to do.`

Our own errors say all of it (`kernel.suggestions`). Click's are about one command, whose help says what to do.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from comparison.screen.printable import printable
from kernel.suggestions import closest, did_you_mean, whole_sentences

if TYPE_CHECKING:
    from collections.abc import Iterable

PREFIX = "Error: "
#: How click's `Choice` complains: a value in quotes, and all the choices.
_NOT_ONE_OF = re.compile(r"""(?P<quote>['"])(?P<value>[^'"]*)(?P=quote) is not one of (?P<choices>.*)""", re.DOTALL)
#: How its numbers complain, with a range and without.
_NOT_A_NUMBER = re.compile(r"(?P<value>.*) is not a valid (?P<kind>integer|float)( range)?\.?", re.DOTALL)
_NUMBERS = {"integer": "a whole number", "float": "a number"}
#: How its `Path` complains of a file where a folder is wanted.
_IS_A_FILE = re.compile(r"Directory (?P<path>'.*'|\".*\") is a file\.?$", re.DOTALL)


def error_line(complaint: str) -> str:
    """A complaint as the line that a command prints."""
    return f"{PREFIX}{printable(whole_sentences(complaint))}"


def usage_complaint(error: click.ClickException) -> str:
    """What click complains of, in our words where there is something to suggest."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return error.format_message()
    return f"{whole_sentences(_lowered(_said(error, context)))} See `{context.command_path} --help`"


def _said(error: click.ClickException, context: click.Context) -> str:
    if isinstance(error, click.exceptions.NoSuchCommand):
        assert isinstance(context.command, click.Group)
        known = context.command.list_commands(context)
        return f"no such command {error.command_name!r}{did_you_mean(error.command_name, known)}"
    if isinstance(error, click.NoSuchOption):
        return _unknown_option(error.option_name, options_of(context.command))
    said = error.format_message()
    if not isinstance(error, click.BadParameter):
        return said
    if found := _NOT_ONE_OF.search(said):
        return said.removesuffix(".") + did_you_mean(found["value"], re.findall(r"'(.*?)'", found["choices"]))
    if (found := _NOT_A_NUMBER.fullmatch(error.message)) and error.param is not None:
        return f"{max(error.param.opts, key=len)} is {found['value']}: must be {_NUMBERS[found['kind']]}"
    return _IS_A_FILE.sub(r"\g<path> is a file, not a folder", said)


def options_of(command: click.Command) -> list[str]:
    """Every spelling of a command's options."""
    long = [option for each in command.params for option in (*each.opts, *each.secondary_opts)]
    return [*(option for option in long if option.startswith("--")), "--help"]


def _unknown_option(given: str, known: Iterable[str]) -> str:
    """What all options begin with makes none of them alike."""
    meant = closest(given.lstrip("-"), [each.removeprefix("--") for each in known])
    return f"no such option {given!r}" + (f". Did you mean '--{meant}'?" if meant else "")


def _lowered(text: str) -> str:
    """Click begins with a capital letter, which our complaints do not."""
    return text[:1].lower() + text[1:]
