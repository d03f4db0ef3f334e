"""The replay's file: bounded, without its script too, and with nothing of the traces as markup."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from comparison.replay.captions import Caption
from comparison.replay.columns import Column, columns_of
from comparison.replay.page import ROWS_MAX, replay
from comparison.replay.steps import Event
from kernel.errors import UserError
from tests.support.runs.replayed import stream_in
from tests.support.runs.seen_runs import ATTACK, write_cut, write_hostile
from tests.support.trace.traces import e


def columns_in(folder: Path) -> list[Column]:
    return columns_of([stream_in(run) for run in sorted((folder / "split-brain").iterdir(), reverse=True)])


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="text/plain" id="data">([^<]+)</script>', text)
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    write_cut(tmp_path)
    assert replay(columns_in(tmp_path)) == replay(columns_in(tmp_path))


def test_steps_of_all_columns_are_in_one_order(tmp_path: Path) -> None:
    write_cut(tmp_path)
    data = data_of(replay(columns_in(tmp_path), [Caption(at=1.0, text="now", part="lanes")]))
    assert [each["design"] for each in data["first"]["groups"]] == ["zookeeper", "eager"]
    moments = [step[0] for step in data["steps"]]
    assert moments == sorted(moments)
    assert {step[1] for step in data["steps"]} == {0, 1}
    assert data["captions"] == [{"at": 1.0, "text": "now", "part": "lanes"}]
    assert data["machines"]["zookeeper"] == []
    assert len(data["machines"]["eager"]) > 5


def test_a_longer_run_is_shown_in_less_detail_and_the_page_says_so(tmp_path: Path) -> None:
    write_cut(tmp_path)
    (zookeeper, _) = columns_in(tmp_path)
    where = {"version": 1, "correlation": 1, "broker": 1}
    noise = [
        Event(
            at, "member", e(at, "m1", "request_answered", api="JoinGroup", error="", **where, cause=f"correlation:{at}")
        )
        for at in range(1000, 9000)
    ]
    longer = zookeeper._replace(events=sorted([*zookeeper.events, *noise], key=lambda each: each.at_ms))
    whole = replay([longer])
    assert "are no steps of their own" not in whole
    least = len(replay([zookeeper]).encode())
    shorter = replay([longer], bytes_max=least + 1000)
    assert len(shorter.encode()) <= least + 1000
    assert "requests and ZooKeeper operations that succeeded are no steps of their own" in shorter
    with pytest.raises(UserError, match="has more than 50,000 bytes, in its least detail too"):
        replay([longer], bytes_max=50_000)


def test_without_script_there_are_the_sentences_of_what_happened(tmp_path: Path) -> None:
    write_cut(tmp_path)
    text = replay(columns_in(tmp_path))
    table = re.search(r"<noscript>(.*?)</noscript>", text, re.S)[1]
    rows = re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td></tr>", table)
    assert ("0.0", "eager", "m1 is cut off from the coordinator") in rows
    assert [float(seconds) for seconds, _, _ in rows] == sorted(float(seconds) for seconds, _, _ in rows)
    assert len(rows) <= ROWS_MAX


def test_nothing_of_a_trace_is_markup(tmp_path: Path) -> None:
    write_hostile(tmp_path)
    text = replay(columns_in(tmp_path), [Caption(at=0.0, text=ATTACK)], [ATTACK])
    assert "<img" not in text
    assert text.count("</script>") == 2
    assert not {"\x1b", "\u202e"} & set(text)
