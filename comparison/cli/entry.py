"""The console script: it handles signals from its first import on, and to the end of the process."""

from __future__ import annotations

import os

from comparison.interrupts import end_at_once, to_the_end


def main(arguments: list[str] | None = None) -> None:
    """Import and run the command line, or answer a shell that completes one."""
    end_at_once()
    if "_REBALANCE_LAB_COMPLETE" in os.environ:
        from comparison.cli.completing.shells import answer_the_shell

        answer_the_shell()
        return
    from comparison.cli.main import main as command_line

    to_the_end(lambda: command_line(arguments))


if __name__ == "__main__":
    main()
