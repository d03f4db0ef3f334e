"""The `consumer` design's assignors beside Kafka 4.1.1's classes, on random groups that live on for some steps."""

from __future__ import annotations

import random
from typing import Any

from tests.support.groups.targets import answer, runs
from tests.support.java import targets as java_targets
from tests.support.java.originals import require

SIZES = (0, 1, 2, 5, 12, 13, 17, 24, 25, 48, 60)


class Life:
    """One group: its members come, go and change their minds, and topics grow."""

    def __init__(self, seed: str) -> None:
        self.drawn = random.Random(seed)
        topics = [f"t{n}" for n in range(self.drawn.choice((1, 2, 3, 5, 13, 30)))]
        self.partitions = {topic: self.drawn.choice(SIZES) for topic in topics}
        self.topic_ids = {topic: f"{self.drawn.getrandbits(128):032x}" for topic in topics}
        self.mixed = self.drawn.random() < 0.6
        self.members: dict[str, tuple[list[str], str | None]] = {}
        self.target: dict[str, set[tuple[str, int]]] = {}
        for _ in range(self.drawn.choice((1, 2, 3, 8, 13, 25, 50))):
            self.join()

    def topics(self) -> list[str]:
        every = list(self.partitions)
        return self.drawn.sample(every, self.drawn.randint(1, len(every))) if self.mixed else every

    def join(self) -> None:
        instance = f"i{len(self.members)}" if self.drawn.random() < 0.3 else None
        self.members[f"m{self.drawn.getrandbits(40):x}"] = (self.topics(), instance)

    def change(self) -> None:
        what = self.drawn.choice(("join", "leave", "topics", "grow", "gone"))
        member = self.drawn.choice(sorted(self.members))
        if what == "join":
            self.join()
        elif what == "leave" and len(self.members) > 1:
            del self.members[member]
        elif what == "topics" and self.mixed:
            self.members[member] = (self.topics(), self.members[member][1])
        elif what == "gone" and len(self.partitions) > 1:
            del self.partitions[self.drawn.choice(sorted(self.partitions))]
        else:
            self.partitions[self.drawn.choice(sorted(self.partitions))] += self.drawn.randint(1, 9)

    def step(self) -> dict[str, Any]:
        members = [[m, topics, i, runs(self.target.get(m, set())), None] for m, (topics, i) in self.members.items()]
        return {"partitions": dict(self.partitions), "topic_ids": self.topic_ids, "members": members}


def test_targets_equal_those_of_kafkas_classes():
    require("4.1.1")
    asked: list[tuple[str, dict[str, Any]]] = []
    ours = []
    for seed in range(60):
        life = Life(f"targets {seed}")
        strategy = "range" if seed % 4 == 0 else "uniform"
        for _ in range(4):
            step = life.step()
            life.target = answer(step, strategy)
            asked.append((strategy, step))
            ours.append(life.target)
            for _ in range(life.drawn.choice((1, 1, 3, 10))):
                life.change()
    for (strategy, step), mine, theirs in zip(asked, ours, java_targets.ask(asked), strict=True):
        found = {member: {(topic, number) for topic, number in owned} for member, owned in theirs.items()}
        if any(step["partitions"].get(topic) for _, topics, *_ in step["members"] for topic in topics):
            assert mine == found, (strategy, step)
        else:
            assert not any(mine.values())
