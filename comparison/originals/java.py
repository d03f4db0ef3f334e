"""JVM options for the originals: memory, class path, log. Only child processes use them."""

from __future__ import annotations

from pathlib import Path

#: Small and quick to start.
OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",  # no file in /tmp that a kill leaves behind
    "-Xss512k",
)


def logging_options(level: str) -> list[str]:
    """Log everything to standard error, with either of the two logging libraries that versions use."""
    return [
        f"-Dlog4j.configuration={(Path(__file__).parent / 'log4j.properties').as_uri()}",
        f"-Doriginals.log.level={level}",
        f"-Dorg.slf4j.simpleLogger.defaultLogLevel={level.lower()}",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss,SSS",
        "-Dorg.slf4j.simpleLogger.showLogName=false",
        "-Dorg.slf4j.simpleLogger.showShortLogName=true",
        "-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper=warn",
    ]
