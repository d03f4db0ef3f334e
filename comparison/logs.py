"""Log lines on standard error, in the form of Kafka's own tools; processes that a command starts inherit the level.

Without a level only warnings and errors are printed, without anything around them. No line has a character from outside
that a terminal acts on, or shows as something else.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any

from comparison.screen.printable import printable

LEVEL_VARIABLE = "REBALANCE_LAB_LOG_LEVEL"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
#: Our packages, which in a wheel are below the first; of others' loggers, only warnings are shown.
_OURS = ("rebalance_lab", "kernel", "zkconsumer", "coordinator", "comparison")
_LOG4J_NAMES = {"WARNING": "WARN", "CRITICAL": "FATAL"}


class PrintableFormatter(logging.Formatter):
    """The text of a record on one line, and below it the lines of a traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # logging's name
        return printable(super().formatMessage(record))

    def formatException(self, exc_info: Any) -> str:  # noqa: N802  # logging's name
        return "\n".join(map(printable, super().formatException(exc_info).split("\n")))


class KafkaFormatter(PrintableFormatter):
    """`[2018-07-18 14:09:26,123] INFO text (logger)`: the pattern in Kafka's log4j.properties."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # as above
        level = _LOG4J_NAMES.get(record.levelname, record.levelname)
        return f"[{self.formatTime(record)}] {level} {super().formatMessage(record)} ({record.name})"


class _Handler(logging.StreamHandler):  # type: ignore[type-arg]  # generic only for type checkers
    """The handler that `set_level` has added: it prints where standard error is by then."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


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
    if logging.lastResort is not None:  # what prints warnings without a level
        logging.lastResort.setFormatter(PrintableFormatter())
    level = os.environ.get(LEVEL_VARIABLE, "").upper()
    if level in LEVELS:
        set_level(level)
