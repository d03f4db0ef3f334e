"""The tutorial as data: its blocks of commands with their outputs, and what of an output is the same in every run.

A block is a fence of the kind `console` after a comment that readers do not see:

    <!-- play: m1 until="^assigned: .*orders-5" same="^assigned" -->

The first word names the terminal; `sh` is the one whose commands run to their end, in the others one command runs on.
`until`  wait for this pattern: in `sh` the command is repeated until its output has it
`same`   only lines with this pattern are compared
`last`   only the last line with this pattern is compared
`mask`   what this pattern matches is not compared
`trim`   lines of the output that the page shows; a line `[... 9 more lines]` stands for the others
`rebalances`  `shown`, where the page shows what a consumer says of how long its rebalances took
`exit`   the exit code, if it is not 0

Lines `$ command` are typed (in a terminal `(m1) $ command`, or `(m1) ^C`), and the rest is output. A command goes on in
the next line after a backslash. After `(m1)` alone a terminal shows more.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

SHELL = "sh"
OPTIONS = ("until", "same", "last", "mask", "trim", "rebalances", "exit")
_MARK = re.compile(r"<!-- play: (.*) -->")
_TYPED = re.compile(r"(?:\((\w+)\) )?\$ .*|\((\w+)\)(?: \^C)?")
_CHAPTER = re.compile(r"## (.*)")


class MalformedPage(Exception):
    """A block that cannot be played; the message names its line."""


@dataclass(slots=True)
class Step:
    """What is typed, as it is on the page, and what is shown then."""

    typed: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    @property
    def command(self) -> str:
        joined = " ".join(line.removesuffix("\\").strip() for line in self.typed)
        return joined.partition("$ ")[2]

    @property
    def is_interrupt(self) -> bool:
        return self.typed[0].endswith("^C")


@dataclass(slots=True)
class Block:
    """One fence. `first` and `last` are the indices of the lines between its marks."""

    terminal: str
    chapter: str
    options: dict[str, str]
    first: int
    last: int
    steps: list[Step]

    def text(self) -> list[str]:
        return [line for step in self.steps for line in (*step.typed, *step.shown)]


def blocks_of(page: str) -> list[Block]:
    """The blocks in their order. Raises `MalformedPage`."""
    lines, found, chapter, number = page.splitlines(), [], "", 0
    while number < len(lines):
        line = lines[number]
        if match := _CHAPTER.fullmatch(line):
            chapter = match[1]
        if line.startswith("```console"):
            raise MalformedPage(f"line {number + 1}: a block without a comment that says how it is played")
        if line.startswith("```"):  # something else, up to its end
            number = lines.index("```", number + 1)
        elif match := _MARK.fullmatch(line):
            if lines[number + 1] != "```console":
                raise MalformedPage(f"line {number + 2}: not the beginning of a block")
            first = number + 2
            number = lines.index("```", first)
            terminal, options = _options(match[1], first)
            found.append(Block(terminal, chapter, options, first, number, _steps(lines[first:number], terminal, first)))
        number += 1
    return found


def _options(text: str, line: int) -> tuple[str, dict[str, str]]:
    terminal, *pairs = shlex.split(text)
    options = dict(pair.split("=", 1) for pair in pairs)
    if unknown := options.keys() - set(OPTIONS):
        raise MalformedPage(f"line {line}: no such option: {', '.join(sorted(unknown))}")
    return terminal, options


def _steps(lines: list[str], terminal: str, first: int) -> list[Step]:
    steps: list[Step] = []
    goes_on = False
    for number, line in enumerate(lines, first + 1):
        match = _TYPED.fullmatch(line)
        if goes_on:
            steps[-1].typed.append(line)
        elif match is not None:
            if (match[1] or match[2] or SHELL) != terminal:
                raise MalformedPage(f"line {number}: {line} is not typed in {terminal}")
            steps.append(Step([line]))
        elif not steps:
            raise MalformedPage(f"line {number}: output before anything is typed")
        else:
            steps[-1].shown.append(line)
        goes_on = not steps[-1].shown and line.endswith("\\")
    if terminal != SHELL and len(steps) > 1:
        raise MalformedPage(f"line {first}: one command in a block of {terminal}")
    return steps


def rewritten(page: str, blocks: list[Block]) -> str:
    """The page with the blocks' present text."""
    lines = page.splitlines()
    for block in reversed(blocks):
        lines[block.first : block.last] = block.text()
    return "\n".join(lines) + "\n"


# -- what is the same in every run -------------------------------------------------------------------------------------

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
#: What varies, and what stands for it.
_VARIES = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"\b\d\d:\d\d:\d\d(?:\.\d+)?\b", "TIME"),
        (r"(\bpid[ =]|kill -9 )\d+", r"\1PID"),
        (r'("timestamp":")\d+', r"\1TIME"),
        (r"rebalance: (\w+) at .*", r"rebalance: \1"),
        (r"[a-z]\w*_[\w.-]+?-\d{13}-[0-9a-f]{1,8}", "ID"),
        (rf"\bconsume-{_UUID}", "ID"),
        (_UUID, "UUID"),
    )
)
#: Whether a try fails on a conflict depends on who comes first; what the members end with does not. On a busy machine,
#: ZooKeeper may be slow to answer.
_NOT_COMPARED = re.compile(r"ID: attempt \d of \d to rebalance failed: .*|no ZooKeeper answers at \S+ yet; waiting .*")
#: A line of 40 words about a rebalance that went well.
_TOOK = "rebalance: done at "
_LEFT_OUT = re.compile(r"\[\.\.\. \d+ more lines?\]")
_COUNTED = re.compile(r"(\d+)(?: each)? of (\S+) up to @(\d+)")
_RESET = re.compile(r"(\S+) to (@\d+)(?:, | \()")
_RANGE = re.compile(r"(.+-)(\d+)\.\.(\d+)")


def normalised(lines: list[str], options: dict[str, str]) -> list[str]:
    """What is compared of an output."""
    found = [" ".join(_without_what_varies(line).split()) for line in lines]
    found = [line for line in found if line and not _NOT_COMPARED.fullmatch(line)]
    found = _merged(found)
    if "same" in options:
        found = [line for line in found if re.search(options["same"], line)]
    if "last" in options:
        found = [line for line in found if re.search(options["last"], line)][-1:]
    if "mask" in options:
        found = [re.sub(options["mask"], "*", line) for line in found]
    return [_LEFT_OUT.sub("[...]", line) for line in found]


def trimmed(lines: list[str], options: dict[str, str]) -> list[str]:
    """The lines as the page shows them, with a visible mark for the end that is left out."""
    if "rebalances" not in options:
        lines = [line for line in lines if not line.startswith(_TOOK)]
    most = int(options.get("trim", len(lines)))
    left_out = len(lines) - most
    if left_out <= 0:
        return lines
    return [*lines[:most], f"[... {left_out} more line{'' if left_out == 1 else 's'}]"]


def _without_what_varies(line: str) -> str:
    for pattern, instead in _VARIES:
        line = pattern.sub(instead, line)
    return line


def _merged(lines: list[str]) -> list[str]:
    """Successive lines of counts as one, and those of resets: how many lines there are depends on the time."""
    merged: list[str] = []
    counts: dict[str, tuple[int, int]] = {}
    resets: set[str] = set()
    for line in [*lines, ""]:
        if line.startswith("records: "):
            for count, shown, last in _COUNTED.findall(line):
                for partition in _each(shown):
                    before, _ = counts.get(partition, (0, 0))
                    counts[partition] = (before + int(count), int(last))
            continue
        if counts:
            parts = ", ".join(f"{count} of {tp} up to @{last}" for tp, (count, last) in sorted(counts.items()))
            merged.append(f"records: {sum(count for count, _ in counts.values())}: {parts}")
            counts = {}
        if line.startswith("reset: "):
            resets.update(f"{each} to {to}" for shown, to in _RESET.findall(line) for each in _each(shown))
            continue
        if resets:
            merged.append(f"reset: {', '.join(sorted(resets))}")
            resets = set()
        merged.append(line)
    return merged[:-1]


def _each(shown: str) -> list[str]:
    """The partitions of a range, `t-0..2`, or the partition."""
    if (match := _RANGE.fullmatch(shown)) is None:
        return [shown]
    return [f"{match[1]}{number}" for number in range(int(match[2]), int(match[3]) + 1)]
