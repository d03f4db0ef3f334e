"""The one shape of an error at the command line: `Error: what was wrong (where). What to do.`

Our own errors say all of it (`kernel.suggestions`). Click's are about one command, whose help says what to do; of names
that do not exist we say which may be meant.
"""

from __future__ import annotations

from typing import Any

import click

from comparison.screen.printable import printable
from kernel.suggestions import closest, did_you_mean, whole_sentences

PREFIX = "Error: "


class OneOf(click.Choice[str]):
    """Some words; the complaint about another one says which may be meant."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        known = [self.normalize_choice(each, ctx) for each in self.choices]
        return super().get_invalid_choice_message(value, ctx).removesuffix(".") + did_you_mean(str(value), known)


def error_line(complaint: str) -> str:
    """A complaint as the line that a command prints."""
    return f"{PREFIX}{printable(whole_sentences(complaint))}"


def usage_complaint(error: click.ClickException) -> str:
    """What click complains of, and where to look."""
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
        return _unknown_option(error.option_name, context.command)
    return error.format_message()


def _unknown_option(given: str, command: click.Command) -> str:
    """What all options begin with makes none of them alike."""
    spelled = ["--help", *(option for each in command.params for option in (*each.opts, *each.secondary_opts))]
    meant = closest(given.lstrip("-"), [each.removeprefix("--") for each in spelled if each.startswith("--")])
    return f"no such option {given!r}" + (f". Did you mean '--{meant}'?" if meant else "")


def _lowered(text: str) -> str:
    """Click begins with a capital letter, which our complaints do not."""
    return text[:1].lower() + text[1:]
