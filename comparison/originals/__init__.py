"""Original Kafka beside ours: its own consumers, its brokers, its ZooKeeper-era behaviour, run and watched.

Optional (`pip install 'rebalance-lab[originals]'`, and once a connection to a Maven repository). No code of Kafka is
here: jars are fetched by their coordinates, checked against a SHA-256 that is, and started.

    with RealBroker("1.1.1", folder, zookeeper="127.0.0.1:2181/chroot") as broker:          # brokers.py
        broker.create_topic("t", 4)                                                         # led when it returns
        client = ClusterClient([("127.0.0.1", broker.port)], "test")                        # ours
        with OriginalHost("0.8.2.2", folder) as host:                                       # hosts.py: a JVM
            await host.produce(broker.bootstrap, "t", {0: [b"0", b"1"]})
            member = await host.join("c1", zookeeper=zk, group="g", topics={"t": 1}, properties={...})
            await member.read_until(2)                  # member.messages: [Message(topic, partition, offset, ...)]
            await member.commit()
            await member.leave()
            host.kill()                                 # SIGKILL: all its members at once

A `join` that fails raises `OriginalFailed` (`error.java_class == "ConsumerRebalanceFailedException"`); the member is
then registered and idle, as 0.8 leaves it: `host.member(...)` makes the handle first, `await handle.join()` joins.
Wildcards: `topics=Pattern("white_list", "a|b", streams=2)`. `listener="record"` or "raise" (1.1.1 only).

What cannot be had raises `jars.OriginalsUnavailable` with the reason and the remedy.
"""
