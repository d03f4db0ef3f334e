"""The child of `hosts.py`: one JVM with any number of original consumers of one version, driven by JSON lines.

Requests come on standard input, each with an `id` and an `op`. Responses and events go to standard output:

    {"op": "join", "id": 1, "member": 7, "properties": {...}, "topics": {"t": 1}}       -> {"id": 1}
    {"op": "join", ..., "filter": ["white_list", "a|b", 2], "listener": "record"}       -> {"id": 1, "error": {...}}
    {"op": "leave" | "commit" | "consume", "id": 2, "member": 7}, {"op": "produce", ...}, {"op": "end"}
    {"event": "message", "member": 7, "stream": 0, "topic": "t", "partition": 0, "offset": 3, "at": ..., "value": "..."}

Each request is served on a thread of its own, since a join takes as long as its rebalance with all its retries. The
streams are drained on daemon threads. The consumers' own threads are not daemons, so this process ends by `os._exit`.
The end of standard input ends it at once: its members do not leave, as in a crash.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from typing import Any, NoReturn

import jpype

_OUTPUT = os.fdopen(os.dup(1), "wb", buffering=0)
_output_lock = threading.Lock()


def report(**said: object) -> None:
    """Write one line to the parent."""
    line = json.dumps(said).encode() + b"\n"
    with _output_lock:
        _OUTPUT.write(line)


def described(error: Any) -> dict[str, str]:
    """A Java exception: its class without the package, and its message."""
    return {"java_class": type(error).__name__.rpartition(".")[2], "message": str(error.getMessage())}


def properties_of(given: dict[str, str]) -> Any:
    made = jpype.JClass("java.util.Properties")()
    for key, value in given.items():
        made.setProperty(key, value)
    return made


class Member:
    """One original consumer, and the threads that drain its streams."""

    def __init__(self, number: int, request: dict[str, Any]) -> None:
        self.number = number
        self.consuming = threading.Event()
        if request["consuming"]:
            self.consuming.set()
        self._ended = False
        #: Held while a message is taken and reported, so that none is after a leave or a pause.
        self._turn = threading.Lock()
        config = jpype.JClass("kafka.consumer.ConsumerConfig")(properties_of(request["properties"]))
        self.connector = jpype.JClass("kafka.consumer.Consumer").createJavaConsumerConnector(config)
        if request["listener"]:
            self.connector.setConsumerRebalanceListener(listener(number, raising=request["listener"] == "raise"))

    def join(self, request: dict[str, Any]) -> None:
        """Create the streams, which registers and rebalances; then drain them."""
        if request.get("filter"):
            kind, pattern, count = request["filter"]
            made = jpype.JClass("kafka.consumer." + {"white_list": "Whitelist", "black_list": "Blacklist"}[kind])(
                pattern
            )
            streams = list(self.connector.createMessageStreamsByFilter(made, count))
        else:
            topics = jpype.JClass("java.util.HashMap")()
            for topic, count in request["topics"].items():
                topics.put(topic, jpype.JClass("java.lang.Integer")(count))
            by_topic = self.connector.createMessageStreams(topics)
            streams = [stream for topic in by_topic.keySet() for stream in by_topic.get(topic)]
        for number, stream in enumerate(streams):
            threading.Thread(target=self._drain, args=(number, stream.iterator()), daemon=True).start()

    def consume(self, on: bool) -> None:
        with self._turn:
            if on:
                self.consuming.set()
            else:
                self.consuming.clear()

    def leave(self) -> None:
        with self._turn:
            self._ended = True
        self.consuming.set()
        self.connector.shutdown()

    def _drain(self, number: int, iterator: Any) -> None:
        while True:
            self.consuming.wait()
            try:
                if not iterator.hasNext():
                    return
                with self._turn:
                    if self._ended:
                        return
                    if self.consuming.is_set():
                        self._take(number, iterator.next())
            except jpype.JException as error:
                report(event="stream_error", member=self.number, stream=number, at=time.monotonic(), **described(error))
                if type(error).__name__ != "kafka.consumer.ConsumerTimeoutException":
                    return

    def _take(self, number: int, message: Any) -> None:
        value = message.message()
        report(
            event="message",
            member=self.number,
            stream=number,
            topic=str(message.topic()),
            partition=int(message.partition()),
            offset=int(message.offset()),
            at=time.monotonic(),
            value=None if value is None else bytes(value).decode("latin-1"),
        )


def listener(number: int, *, raising: bool) -> Any:
    """1.1's rebalance listener, which reports its calls; `raising`: it raises before a release instead.

    An exception fails the attempt before the release, and so the attempts of all other members. Unintended exceptions
    are caught and reported.
    """

    @jpype.JImplements(jpype.JClass("kafka.javaapi.consumer.ConsumerRebalanceListener"))
    class Listener:
        @jpype.JOverride  # type: ignore[untyped-decorator]  # JPype has no types
        def beforeReleasingPartitions(self, owned: Any) -> None:  # noqa: N802  # Kafka's name
            if raising and len(list(owned.keySet())):
                report(event="listener_raises", member=number, at=time.monotonic())
                raise RuntimeError("asked to raise")
            by_topic = {str(topic): sorted(_numbers(owned.get(topic))) for topic in owned.keySet()}
            report(event="before_release", member=number, at=time.monotonic(), owned=by_topic)

        @jpype.JOverride  # type: ignore[untyped-decorator]  # JPype has no types
        def beforeStartingFetchers(self, consumer_id: Any, assignment: Any) -> None:  # noqa: N802
            decided = {}
            for topic in assignment.keySet():
                threads = assignment.get(topic)
                decided[str(topic)] = {str(p): str(threads.get(p)) for p in threads.keySet()}
            report(
                event="before_start", member=number, at=time.monotonic(), consumer=str(consumer_id), assignment=decided
            )

    return Listener()


def _numbers(a_set: Any) -> list[int]:
    """Declared as java.util.Set but a Scala set, which has an iterator and is not iterable for JPype."""
    found = []
    iterator = a_set.iterator()
    while iterator.hasNext():
        found.append(int(iterator.next()))
    return found


def produce(request: dict[str, Any]) -> None:
    """Send values (latin-1) by partition, in order, and wait until the last of each is acknowledged."""
    serializer = "org.apache.kafka.common.serialization.ByteArraySerializer"
    settings = {
        "bootstrap.servers": request["bootstrap"],
        "acks": "1",
        "key.serializer": serializer,
        "value.serializer": serializer,
    }
    producer = jpype.JClass("org.apache.kafka.clients.producer.KafkaProducer")(
        properties_of({**settings, **request["properties"]})
    )
    record = jpype.JClass("org.apache.kafka.clients.producer.ProducerRecord")
    integer, array = jpype.JClass("java.lang.Integer"), jpype.JArray(jpype.JByte)
    sent = [
        producer.send(record(request["topic"], integer(int(partition)), None, array(value.encode("latin-1"))))
        for partition, values in request["values"].items()
        for value in values
    ]
    try:
        for future in sent:
            future.get()
    finally:
        producer.close()


class Server:
    """Serves requests until the input ends."""

    def __init__(self) -> None:
        self._members: dict[int, Member] = {}

    def serve(self, request: dict[str, Any]) -> None:
        try:
            self._perform(request)
        except jpype.JException as error:
            report(id=request["id"], error=described(error))
        else:
            report(id=request["id"])

    def _perform(self, request: dict[str, Any]) -> None:
        number = request.get("member", -1)
        match request["op"]:
            case "join":
                self._members[number] = Member(number, request)
                self._members[number].join(request)
            case "leave":
                self._members.pop(number).leave()
            case "commit":
                self._members[number].connector.commitOffsets()
            case "consume":
                self._members[number].consume(request["on"])
            case "produce":
                produce(request)
            case "ready":
                jpype.JClass("java.lang.System").nanoTime()  # blocks while the JVM is stopped


def _crash(failed: threading.ExceptHookArgs) -> NoReturn:
    """A bug of ours on any thread ends the process, so that no caller waits for a response."""
    traceback.print_exception(failed.exc_type, failed.exc_value, failed.exc_traceback)
    sys.stderr.flush()
    os._exit(70)


def main() -> None:
    os.dup2(2, 1)  # output of libraries goes to the log, not between our lines
    threading.excepthook = _crash
    options, class_path = json.loads(sys.argv[1]), json.loads(sys.argv[2])
    jpype.startJVM(jpype.getDefaultJVMPath(), *options, classpath=class_path, convertStrings=True)
    server = Server()
    for line in sys.stdin:
        threading.Thread(target=server.serve, args=(json.loads(line),), daemon=True).start()
    os._exit(0)


if __name__ == "__main__":
    main()
