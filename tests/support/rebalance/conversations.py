"""Plays conversations with the deciding table: a script of commands, and the lines that they print.

Commands: `broker N`, `no broker N`, `topic T PARTITIONS`, `put PATH DATA`, `put SESSION PATH DATA` (ephemeral), `remove
PATH`, `kafka has T PARTITION OFFSET`, `owners`, and for a member C: `C joins T:STREAMS,... [key=value ...]`, `C matches
KIND PATTERN:STREAMS [key=value ...]`, `C runs` (until idle), `C runs to STEP` (until STEP is next), either one with
`quietly` after it (effects are not shown), `C steps` (one batch), `C fails REASON` (one batch whose last effect fails),
`C hears`, `C disconnects`, `C reconnects`, `C is reminded of TOKEN`, `C loses its session`, `C has a new session`, `C
closes`.
"""

from __future__ import annotations

from pathlib import Path

from kernel.values import TopicPartition
from tests.support.rebalance.world import ModelMember, World
from zkconsumer.rebalance import effects

FILES = sorted((Path(__file__).parents[2] / "zkconsumer" / "rebalance" / "conversations").glob("*.txt"))


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
            assert in_answer, f"not a command, a comment or an answer: {line}"
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
        case [name, "joins", topics, *words]:
            subscription = {topic: int(count) for topic, _, count in (one.partition(":") for one in topics.split(","))}
            return answers(world.join(name, subscription, **options(words)))
        case [name, "matches", kind, pattern, *words]:
            expression, _, streams = pattern.rpartition(":")
            return answers(world.join(name, {expression: int(streams)}, kind, **options(words)))
        case [name, *rest]:
            member = world.members[name]
            do(member, rest)
            return answers(member)
        case _:
            raise AssertionError(words)
    return []


def options(words: list[str]) -> dict[str, object]:
    given: dict[str, object] = {}
    for word in words:
        name, _, value = word.partition("=")
        given[name] = int(value) if value.isdigit() else value
        if name == "offsets_from":
            given[name] = frozenset(value.split("+"))
        elif isinstance(given[name], int) and not name.endswith(("_ms", "_retries")):
            given[name] = bool(given[name])
    return given


#: Events from outside, as the commands name them.
EVENTS = {"disconnects": effects.Disconnected(), "reconnects": effects.Reconnected(), "closes": effects.CloseDemanded()}


def do(member: ModelMember, words: list[str]) -> None:
    match words:
        case [event] if event in EVENTS:
            member.post(EVENTS[event])
        case ["is", "reminded", "of", token]:
            member.post(effects.Reminded(int(token)))
        case ["steps"]:
            member.take_step()
        case ["fails", *reason]:
            member.take_step(failure=" ".join(reason))
        case ["hears"]:
            if member.hear() == 0:
                member.lines.append("    nothing")
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
        member.lines.clear()


def answers(member: ModelMember) -> list[str]:
    lines, member.lines = member.lines, []
    return lines
