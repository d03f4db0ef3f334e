"""The scripts for bash, zsh and fish, and the answers to them: click's, from the table instead of from the commands."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete, split_arg_string

from comparison.cli.completing.cache import cached_table
from comparison.cli.completing.values import values_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem, ShellComplete

    from comparison.cli.completing.table import About, Table

PROGRAM = "rebalance-lab"
#: How the scripts call the program; the value is the shell's name and `_complete`.
VARIABLE = "_REBALANCE_LAB_COMPLETE"

#: Unlike click's: names that go on (`name=`, `folder/`) get no space, and a value after `=` is completed, where bash
#: sees another word.
_BASH = """\
%(complete_func)s() {
    local response type value
    COMPREPLY=()
    response=$(env %(complete_var)s=bash_complete COMP_WORDS="${COMP_LINE:0:COMP_POINT}" \\
        COMP_WORDBREAKS="$COMP_WORDBREAKS" "$1" 2>/dev/null)
    while IFS=',' read -r type value; do
        case $type in
            dir) compopt -o dirnames 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
            plain)
                COMPREPLY+=("$value")
                [[ $value == *[/=] ]] && compopt -o nospace 2>/dev/null
                ;;
        esac
    done <<< "$response"
    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_INSTALLED = {
    "bash": """\
# Completion of rebalance-lab for bash 4.4 or newer. To install it, add this line to ~/.bashrc:
#   eval "$(rebalance-lab completion bash)"
""",
    "zsh": """\
#compdef rebalance-lab
# Completion of rebalance-lab for zsh. To install it, add this line to ~/.zshrc, after compinit:
#   eval "$(rebalance-lab completion zsh)"
""",
    "fish": """\
# Completion of rebalance-lab for fish. To install it:
#   rebalance-lab completion fish > ~/.config/fish/completions/rebalance-lab.fish
""",
}


class _Bash(BashComplete):
    """Reads the line up to the cursor, and answers with what follows the last character that breaks words."""

    source_template = _BASH

    def source(self) -> str:
        return self.source_template % self.source_vars()  # click's would look for a bash first

    def get_completion_args(self) -> tuple[list[str], str]:
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1].isspace() else ""
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem) -> str:
        _, incomplete = self.get_completion_args()
        breaks = [each for each in "=:" if each in os.environ.get("COMP_WORDBREAKS", "=:")]
        kept = max((incomplete.rfind(each) + 1 for each in breaks), default=0)
        return f"{item.type},{item.value[kept:] if item.type == 'plain' else ''}"


class _Zsh(ZshComplete):
    """Adds no space after names that go on."""

    source_template = (
        ZshComplete.source_template.replace("#compdef %(prog_name)s\n", "")
        .replace("    local -a completions\n", "    local -a completions\n    local -a unfinished\n")
        .replace(
            'if [[ "$descr" == "_" ]]; then',
            'if [[ "$key" == *[/=] ]]; then\n                unfinished+=("$key")\n'
            '            elif [[ "$descr" == "_" ]]; then',
        )
        .replace(
            '    if [ -n "$completions" ]; then',
            '    if [ -n "$unfinished" ]; then\n        compadd -U -S "" -V unsorted -a unfinished\n    fi\n\n'
            '    if [ -n "$completions" ]; then',
        )
    )


_SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": FishComplete}
SHELLS = tuple(_SHELLS)


def script_for(shell: str) -> str:
    """The script that a shell reads once."""
    made = _SHELLS[shell](click.Group(PROGRAM), {}, PROGRAM, VARIABLE)
    return _INSTALLED[shell] + made.source()


def answer(table: Table, shell: str) -> str:
    """What may follow on the line that the shell has put into the environment."""
    words, _ = _SHELLS[shell](click.Group(PROGRAM), {}, PROGRAM, VARIABLE).get_completion_args()
    return _SHELLS[shell](command_of(table.root, table, ""), {"obj": words}, PROGRAM, VARIABLE).complete()


def answer_the_shell() -> None:
    """Answer the script that has called the program. A line that nothing can follow is no error."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 2)  # an error of ours must not be printed into a user's line
    shell, _, asked = os.environ[VARIABLE].partition("_")
    if shell in _SHELLS and asked == "complete":
        click.echo(answer(cached_table(), shell))


def command_of(about: About, table: Table, path: str) -> click.Command:
    """A command that does nothing but to be completed."""
    name, text = about["name"], about["help"]
    parameters = [_parameter_of(each, table, path) for each in about["params"]]
    if "commands" not in about:
        return click.Command(name, params=parameters, help=text, add_help_option=False)
    below = {each: command_of(found, table, f"{path} {each}".strip()) for each, found in about["commands"].items()}
    return click.Group(name, below, params=parameters, help=text, add_help_option=False)


def _parameter_of(about: About, table: Table, path: str) -> click.Parameter:
    name, complete = about["name"], values_of(about, table, path)
    if about["param_type_name"] == "argument":
        return click.Argument([name], nargs=about["nargs"], required=False, shell_complete=complete)
    spelled = list(about["opts"])
    if about["secondary_opts"]:
        spelled[0] = f"{spelled[0]}/{about['secondary_opts'][0]}"
    if about["count"]:
        return click.Option([name, *spelled], count=True, help=about["help"])
    kept = {key: about[key] for key in ("is_flag", "multiple", "nargs", "help")}
    return click.Option([name, *spelled], shell_complete=complete, **kept)
