"""Ask Java and Kafka 0.8.2.2 in a JVM child process how they read patterns and JSON.

    asked = {"patterns": [...], "subjects": [...], "json": [...], "raw": [...], "texts": [...]}
    answers = ask(asked)
    answers["matches"][i]   # one bool per subject, or None if java.util.regex refuses the pattern
    answers["json"][i]      # ["value", ...], ["none"] or ["error"], from kafka.utils.Json
    answers["cleaned"][i]   # TopicFilter's pattern for a raw one, or None where it refuses
    answers["escaped"][i]   # Utils.JSONEscapeString

Run as a module it is that child: the question on standard input, the answer on standard output.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.support.java.child import answer_from_jvm, answered_by

VERSION = "0.8.2.2"


def ask(asked: dict[str, list[str]], *, timeout_s: float = 120) -> dict[str, list[Any]]:
    """Run the JVM and wait for it. Call `tests.support.java.originals.require` first."""
    answer: dict[str, list[Any]] = answered_by("tests.support.java.patterns", asked=asked, timeout_s=timeout_s)
    return answer


def _plain(value: Any) -> Any:
    """A value of Scala's JSON parser as Python's would be."""
    import jpype

    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, jpype.JClass("java.lang.Boolean")):
        return bool(value)
    if isinstance(value, jpype.JClass("java.lang.Integer")):
        return int(value)
    items = value.iterator()
    found = []
    while items.hasNext():
        found.append(items.next())
    if isinstance(value, jpype.JClass("scala.collection.Map")):
        return {str(pair._1()): _plain(pair._2()) for pair in found}
    return [_plain(item) for item in found]


def _answer(asked: dict[str, list[str]]) -> dict[str, list[Any]]:
    import jpype

    pattern = jpype.JClass("java.util.regex.Pattern")
    parser = jpype.JClass("kafka.utils.Json")
    white = jpype.JClass("kafka.consumer.Whitelist")
    utils = jpype.JClass("kafka.utils.Utils")

    def matches(text: str) -> list[bool] | None:
        try:
            compiled = pattern.compile(text)
        except jpype.JException:
            return None
        return [bool(compiled.matcher(subject).matches()) for subject in asked["subjects"]]

    def parsed(text: str) -> list[Any]:
        try:
            found = parser.parseFull(text)
        except jpype.JException:
            return ["error"]
        return ["value", _plain(found.get())] if found.isDefined() else ["none"]

    def cleaned(text: str) -> str | None:
        try:
            return str(white(text).regex())
        except jpype.JException:
            return None

    return {
        "matches": [matches(text) for text in asked["patterns"]],
        "json": [parsed(text) for text in asked["json"]],
        "cleaned": [cleaned(text) for text in asked["raw"]],
        "escaped": [str(utils.JSONEscapeString(text)) for text in asked["texts"]],
    }


if __name__ == "__main__":
    answer_from_jvm(VERSION, lambda: _answer(json.load(sys.stdin)))
