"""Log lines on standard error, in the form of Kafka's own tools; processes that a command starts inherit the level.

Without a level nothing changes: warnings and errors are printed as they are.
"""

from __future__ import annotations

import logging
import os
import sys

from comparison.printable import printable

LEVEL_VARIABLE = "REBALANCE_LAB_LOG_LEVEL"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
#: Our packages, which in a wheel are below the first; of others' loggers, only warnings are shown.
_OURS = ("rebalance_lab", "kernel", "zkconsumer", "coordinator", "comparison")
_LOG4J_NAMES = {"WARNING": "WARN", "CRITICAL": "FATAL"}


class KafkaFormatter(logging.Formatter):
    """`[2018-07-18 14:09:26,123] INFO text (logger)`: the pattern in Kafka's log4j.properties."""

    def format(self, record: logging.LogRecord) -> str:
        level = _LOG4J_NAMES.get(record.levelname, record.levelname)
        line = f"[{self.formatTime(record)}] {level} {printable(record.getMessage())} ({record.name})"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Handler(logging.StreamHandler):  # type: ignore[type-arg]  # generic only for type checkers
    """The handler that `set_level` has added."""


def set_level(level: str) -> None:
    """Print our log lines of at least this level, and let child processes do the same."""
    root = logging.getLogger()
    if not any(isinstance(handler, _Handler) for handler in root.handlers):
        handler = _Handler(sys.stderr)
        handler.setFormatter(KafkaFormatter())
        root.addHandler(handler)
    number = logging.getLevelNamesMapping()[level]
    root.setLevel(max(number, logging.WARNING))
    for name in _OURS:
        logging.getLogger(name).setLevel(number)
    os.environ[LEVEL_VARIABLE] = level


def set_inherited_level() -> None:
    """Use the level that this process was started with, if any."""
    level = os.environ.get(LEVEL_VARIABLE, "").upper()
    if level in LEVELS:
        set_level(level)
