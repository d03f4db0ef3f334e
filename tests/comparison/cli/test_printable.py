"""No text of a record, a trace or a broker reaches the terminal or a picture with control characters."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comparison.cli.diagram import diagram
from comparison.cli.printing import Printer
from comparison.screen.printable import printable, printable_all
from comparison.topic_admin import SettingDescription, TopicAdmin, TopicDescription, TopicRefused
from kernel.values import Batch, Record
from tests.support.commands.called import code_of, output_of

RECORDED = Path(__file__).parents[1] / "report" / "crash"
#: Clears the screen, sets the title, forges a line, ends a script, and reverses what follows.
HOSTILE = "\x1b[2J\x1b]0;title\x07\nrecord: t-0 @99 forged</script>\u202e"


@given(st.text(st.characters()))
def test_printable_text_is_kept_and_the_rest_becomes_escapes(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    if text.isprintable():
        assert shown == text


def test_every_text_of_a_result_is_made_printable() -> None:
    given = {"a\n": ["b\x1b", 1, None, {"c": ("d\x07",)}]}
    assert printable_all(given) == {"a\\n": ["b\\x1b", 1, None, {"c": ["d\\x07"]}]}


def test_a_record_cannot_forge_another_line(capsys: pytest.CaptureFixture[str]) -> None:
    record = Record("t", 0, 1, 0, None, HOSTILE.encode())
    Printer("text").batch(Batch(0, record.topic_partition, (record,)))
    shown = capsys.readouterr().out
    assert shown.count("\n") == 1
    assert shown.rstrip("\n").isprintable()
    assert "\\x1b[2J" in shown


def test_a_brokers_topics_settings_and_errors_have_no_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    described = TopicDescription(HOSTILE, None, False, (), (SettingDescription(HOSTILE, HOSTILE, ""),))

    async def listing(_admin: TopicAdmin) -> dict[str, int]:
        return {HOSTILE: 1}

    async def describe(_admin: TopicAdmin, _name: str) -> TopicDescription:
        return described

    async def refused(_admin: TopicAdmin, name: str) -> None:
        raise TopicRefused(f"topic {name!r} was not deleted: UNKNOWN_SERVER_ERROR ({HOSTILE})")

    for name, answer in (("list", listing), ("describe", describe), ("delete", refused)):
        monkeypatch.setattr(TopicAdmin, name, answer)
    for arguments in (["list"], ["describe", "t"], ["delete", "t"]):
        code_of("topic", *arguments, "--bootstrap-server", "127.0.0.1:1")
        captured = capsys.readouterr()
        shown = captured.out + captured.err
        assert "forged" in shown
        assert "\nrecord: t-0 @99 forged" not in shown
        assert not set(shown) & set("\x1b\x07\u202e"), arguments


@pytest.fixture
def hostile_traces(tmp_path: Path) -> Path:
    """A recorded run in which a member has a hostile name."""
    traces = tmp_path / "trace"
    traces.mkdir()
    for path in RECORDED.glob("*.jsonl"):
        escaped = HOSTILE.replace("\x1b", "\\u001b").replace("\x07", "\\u0007").replace("\n", "\\n")
        (traces / path.name).write_text(path.read_text().replace('"m2"', f'"{escaped}<b>"'))
    shutil.copy(RECORDED / "runner.jsonl", traces / "runner.jsonl")
    return traces


@pytest.mark.parametrize("form", ["svg", "markdown", "mermaid", "list"])
def test_a_diagram_of_hostile_names_has_no_control_characters(hostile_traces: Path, form: str) -> None:
    asked = ["--list"] if form == "list" else ["--format", form]
    shown = output_of(diagram, hostile_traces, *asked)
    assert "forged" in shown
    assert "\nrecord: t-0 @99 forged" not in shown
    assert not set(shown) & set("\x1b\x07\u202e")
    if form == "svg":
        ElementTree.fromstring(shown)
    if form == "markdown":
        assert not [line for line in shown.splitlines() if line.startswith("#") and "<b>" in line]
