"""Conversations with the deciding table: what a member asks of ZooKeeper, gets, and has done, line by line.

Each file in `conversations/` holds prose, commands (`> ...`) and, below each command, what the table wanted and
what the model of ZooKeeper answered. `REWRITE_CONVERSATIONS=1` records the answers anew: read the diff.

Commands: `broker N`, `no broker N`, `topic T PARTITIONS`, `put PATH DATA`, `put SESSION PATH DATA` (ephemeral),
`remove PATH`, `kafka has T PARTITION OFFSET`, `owners`, and for a member C: `C joins T:STREAMS,... [key=value ...]`,
`C matches KIND PATTERN:STREAMS [key=value ...]`, `C runs` (until idle), `C runs to STEP` (until STEP is what it does
next), either one with `quietly` behind it (what happens is not shown), `C steps` (one batch), `C fails REASON` (one
batch whose last effect fails), `C hears`, `C disconnects`, `C reconnects`, `C is reminded of TOKEN`,
`C loses its session`, `C has a new session`, `C closes`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kernel.values import TopicPartition
from tests.support.rebalance_world import ModelMember, World
from zkconsumer.rebalance import effects

FILES = sorted((Path(__file__).parent / "conversations").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_conversation(path: Path) -> None:
    recorded = path.read_text(encoding="utf-8")
    played = play(recorded)
    if os.environ.get("REWRITE_CONVERSATIONS"):
        path.write_text(played, encoding="utf-8")
    assert played.splitlines() == recorded.splitlines()


def play(script: str) -> str:
    world = World()
    lines: list[str] = []
    in_answer = False
    for line in script.splitlines():
        if line.startswith("> "):
            in_answer = True
            lines += [line, *perform(world, line[2:].split())]
        elif not line.strip() or line.startswith("#"):
            in_answer = False
            lines.append(line)
        else:
            assert in_answer, f"neither a command nor a comment nor an answer: {line}"
    return "\n".join(lines) + "\n"


def perform(world: World, words: list[str]) -> list[str]:
    zookeeper = world.zookeeper
    match words:
        case ["broker", number]:
            zookeeper.set_broker(int(number))
        case ["no", "broker", number]:
            zookeeper.remove(f"/brokers/ids/{number}")
        case ["topic", name, partitions]:
            zookeeper.set_topic(name, int(partitions))
        case ["kafka", "has", topic, partition, offset]:
            zookeeper.kafka[TopicPartition(topic, int(partition))] = int(offset)
        case ["put", session, path, *data] if session.isdigit():
            zookeeper.put(path, " ".join(data).encode(), int(session))
        case ["put", path, *data]:
            zookeeper.put(path, " ".join(data).encode())
        case ["remove", path]:
            zookeeper.remove(path)
        case ["owners"]:
            return [f"{tp}: {owner}" for tp, owner in sorted(zookeeper.owners().items())] or ["nobody"]
        case [name, "joins", topics, *rules]:
            subscription = {topic: int(count) for topic, _, count in (one.partition(":") for one in topics.split(","))}
            return answers(world.join(name, subscription, **options(rules)))
        case [name, "matches", kind, pattern, *rules]:
            expression, _, streams = pattern.rpartition(":")
            return answers(world.join(name, {expression: int(streams)}, kind, **options(rules)))
        case [name, *rest]:
            member = world.members[name]
            do(member, rest)
            return answers(member)
        case _:
            raise AssertionError(words)
    return []


def options(words: list[str]) -> dict[str, object]:
    told: dict[str, object] = {}
    for word in words:
        name, _, value = word.partition("=")
        told[name] = int(value) if value.isdigit() else value
        if name == "offsets_from":
            told[name] = frozenset(value.split("+"))
        elif isinstance(told[name], int) and not name.endswith(("_ms", "_retries")):
            told[name] = bool(told[name])
    return told


#: What others tell a member in words.
EVENTS = {
    "disconnects": effects.Disconnected(),
    "reconnects": effects.Reconnected(),
    "closes": effects.CloseDemanded(),
}


def do(member: ModelMember, words: list[str]) -> None:
    match words:
        case [event] if event in EVENTS:
            member.tell(EVENTS[event])
        case ["is", "reminded", "of", token]:
            member.tell(effects.Reminded(int(token)))
        case ["steps"]:
            member.take_step()
        case ["fails", *reason]:
            member.take_step(failure=" ".join(reason))
        case ["hears"]:
            if member.hear() == 0:
                member.told.append("    nothing")
        case ["loses", "its", "session"]:
            member.lose_session()
        case ["has", "a", "new", "session"]:
            member.renew_session()
        case ["runs", *rest]:
            run(member, rest)
        case _:
            raise AssertionError(words)


def run(member: ModelMember, rest: list[str]) -> None:
    match rest:
        case [] | ["quietly"]:
            while member.batch:
                member.take_step()
        case ["to", target, *_]:
            while member.next_step != target:
                assert member.batch, f"{member.name} is idle and never came to {target}"
                member.take_step()
        case _:
            raise AssertionError(rest)
    if rest[-1:] == ["quietly"]:
        member.told.clear()


def answers(member: ModelMember) -> list[str]:
    told, member.told = member.told, []
    return told
