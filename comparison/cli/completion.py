"""`rebalance-lab completion`: the script by which a shell completes our commands."""

from __future__ import annotations

import click

from comparison.cli.complaints import OneOf
from comparison.cli.completing.cache import cached_table
from comparison.cli.completing.shells import SHELLS, script_for


@click.command(
    epilog="""\b
Examples:
  eval "$(rebalance-lab completion bash)"
      for this shell; in ~/.bashrc, for every one
  eval "$(rebalance-lab completion zsh)"           in ~/.zshrc, after compinit
  rebalance-lab completion fish > \\
      ~/.config/fish/completions/rebalance-lab.fish

\b
It completes commands, options, scenarios (and files of your own), designs,
settings and their values, metrics, and folders of runs. The names are kept in
the cache folder; after an update the first completion takes some seconds."""
)
@click.argument("shell", type=OneOf(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes commands and names in a shell."""
    cached_table()  # or the first TAB would have to wait for it
    click.echo(script_for(shell), nl=False)
