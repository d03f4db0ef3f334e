"""Sets every count of every message to absurd values, in a process with little memory: `python -m
tests.support.wire.absurd_counts`.

kio reserves memory for an announced count, and a failed allocation aborts the process, so this runs as a child process
with a memory limit. It prints how many frames were refused, and fails at the first one that was not.
"""

from __future__ import annotations

import random
import resource
import struct
import sys
from collections.abc import Iterator

from kernel.wire.codec import decode_request, decode_response
from kernel.wire.errors import MalformedFrame
from kernel.wire.tags import uvarint
from tests.support.wire.marked_frames import MESSAGES, Kind, Mark, Message, marks, random_body

MEMORY_BYTES = 1_500_000_000


def attacks(frame: bytes, count: Mark) -> Iterator[bytes]:
    """`frame` with other counts, followed by all of its bytes or none. Frames come without their size."""
    before, behind = frame[4 : count.at], frame[count.at + count.size :]
    for rest in (behind, b""):
        if count.is_compact:
            absurd = [uvarint(number + 1) for number in (len(rest) + 1, 2**28, 2**31 - 1, 2**32 - 2)]
        else:
            numbers = (len(rest) + 1, 2**28, 2**31 - 1, -2, -(2**31))
            absurd = [struct.pack(">i", number) for number in numbers]
        for announced in absurd:
            yield before + announced + rest


def decode(message: Message, frame: bytes) -> None:
    if message.is_request:
        decode_request(frame)
    else:
        decode_response(message.api, message.version, frame)


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    rng = random.Random(14)
    refused = attacked = 0
    for message in MESSAGES:
        frame = message.encoded(random_body(message.entity, rng))
        decode(message, frame[4:])
        counts = [mark for mark in marks(message, frame) if mark.kind is Kind.COUNT]
        attacked += bool(counts)
        for count in counts:
            for attack in attacks(frame, count):
                try:
                    decode(message, attack)
                except MalformedFrame:
                    refused += 1
                else:
                    raise AssertionError(f"{message}: {count.name} was accepted as {attack.hex()}")
    sys.stdout.write(f"{len(MESSAGES)} messages, {attacked} with counts, {refused} frames refused\n")


if __name__ == "__main__":
    main()
