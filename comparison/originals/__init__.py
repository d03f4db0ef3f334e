"""Runs original Kafka: its consumers of the ZooKeeper era and its brokers, to compare ours with.

Optional (`pip install '.[originals]'`, and a connection to a Maven repository once). It contains no Kafka
code: jars are fetched by their coordinates, checked against a locked SHA-256, and started.

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

A failed `join` raises `OriginalFailed` (`error.java_class == "ConsumerRebalanceFailedException"`). As in 0.8, the
member then stays registered and idle: to use it, create it with `host.member(...)` and join with `await handle.join()`.
Wildcards: `topics=Pattern("white_list", "a|b", streams=2)`. `listener="record"` or "raise" (1.1.1 only).

If something is not available, `jars.OriginalsUnavailable` has the reason and the remedy.
"""
