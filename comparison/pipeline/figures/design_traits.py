"""The designs that have something in common by which they are judged; what they are made of is in kernel.designs."""

from __future__ import annotations

from kernel.designs import ALL_AT_ONCE, CLASSIC, COORDINATED, DELAYED, DESIGN_NAMES, SERVER, STATIC, ZOOKEEPER

#: Designs in which the counts of a restart can be predicted.
RESTARTS = tuple(design for design in COORDINATED if design != DELAYED)
#: Designs in which unsubscribing means leaving at once.
LEAVING = tuple(design for design in COORDINATED if design not in (STATIC, DELAYED))
#: Designs in which a process that comes back is somebody else.
NAMELESS = (ZOOKEEPER, *LEAVING)
#: Designs in which a watch tells of new partitions; in CLASSIC the leader looks from time to time.
WATCHING = tuple(design for design in DESIGN_NAMES if design not in CLASSIC)
#: Designs in which any change of the members stops all partitions.
STOPPING = (ZOOKEEPER, SERVER, *ALL_AT_ONCE)
#: Of these, those whose consumers call listeners and can pause.
LISTENING = (SERVER, *ALL_AT_ONCE)
#: Their members' sessions are the coordinator's.
HEARTBEATS = tuple(design for design in COORDINATED if design != SERVER)
#: Their members do not stop when they lose ZooKeeper; come back under another id.
UNSTOPPED, DYNAMIC = (ZOOKEEPER, *HEARTBEATS), tuple(design for design in DESIGN_NAMES if design != STATIC)
