"""The console script: it handles signals from its first import on."""

from __future__ import annotations

from comparison.cli.interrupts import end_at_once


def main() -> None:
    """Import and run the command line."""
    end_at_once()
    from comparison.cli.main import main as command_line

    command_line()


if __name__ == "__main__":
    main()
