"""Mutated answers and record batches, decoded in a process with little memory: `python -m
tests.hostile.decoded_in_a_child NUMBER SEED`.

A hostile broker may send these to our clients. Only our own errors may be raised; anything that passes the bounds check
aborts the process. It prints how many of each were refused.
"""

from __future__ import annotations

import itertools
import random
import resource
import sys

from kernel.records.compression import CODECS
from kernel.records.record_check import checked
from kernel.records.records import NewRecord, RefusedBatch, accepted, build_batch, readable
from kernel.values import TopicPartition
from kernel.wire.codec import decode_response
from kernel.wire.errors import ProtocolError
from tests.hostile.mutated_frames import MutatedFrames
from tests.support.wire.absurd_counts import MEMORY_BYTES
from tests.support.wire.bad_batches import HEADER_BYTES, repaired
from tests.support.wire.marked_frames import MESSAGES

ANSWERS = tuple(message for message in MESSAGES if not message.is_request)
#: One batch per this many answers.
ANSWERS_A_BATCH = 10


def refused_answers(number: int, seed: int) -> int:
    frames = MutatedFrames(seed)
    refused = 0
    for message in itertools.islice(itertools.cycle(ANSWERS), number):
        frame = frames.frame(message)
        try:
            decode_response(message.api, message.version, frame.data[4:])
        except ProtocolError:
            refused += 1
        except BaseException:
            sys.stderr.write(f"{frame.name}\n")
            raise
    return refused


def refused_batches(number: int, seed: int) -> int:
    rng = random.Random(seed)
    good = [
        build_batch([NewRecord(b"value" * 9, b"k", 1, (("h", b"x"),))] * records, codec=codec)
        for codec, records in itertools.product(CODECS, (1, 5, 300))
    ]
    refused = 0
    for _ in range(number):
        batch = bytearray(rng.choice(good))
        for _ in range(rng.randrange(1, 4)):
            batch[rng.randrange(HEADER_BYTES - 4 if rng.random() < 0.7 else 21, len(batch))] = rng.randrange(256)
        data = repaired(bytes(batch[: rng.choice((len(batch), rng.randrange(HEADER_BYTES, len(batch) + 1)))]))
        found = readable(TopicPartition("t", 0), data, 0)
        assert found.corrupt is None or str(found.corrupt), data.hex()
        try:
            checked(accepted(data, max_bytes=1_000_000))
        except RefusedBatch:
            refused += 1
        else:
            assert found.corrupt is None, f"accepted, but unreadable: {found.corrupt} {data.hex()}"
    return refused


def main() -> None:
    number, seed = int(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    batches = number // ANSWERS_A_BATCH
    answers_refused, batches_refused = refused_answers(number, seed), refused_batches(batches, seed)
    sys.stdout.write(f"{number} answers, {answers_refused} refused; {batches} batches, {batches_refused} refused\n")


if __name__ == "__main__":
    main()
