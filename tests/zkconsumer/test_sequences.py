"""Our members compared with recordings of the running originals: every ZooKeeper request and notification, in order.

`sequences-V.json` holds what a proxy saw of original consumers of 0.8.2.2 and 1.1.1: stage by stage and member by
member, requests with their path, result, watch bit and ephemeral flag, and the notifications between them. Here our
members play the same stages through our proxy. What may differ is in the tables below, each entry with its reason.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from kernel.broker.broker import Broker
from kernel.errors import RebalanceLabError
from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.consumers.zookeeper import Member, new_member, running_broker, wait_for_id
from tests.support.zookeeper.count_model import Shape, failed_attempt, reads_of_expiry, rebalances_of_expiry
from tests.support.zookeeper.proxy import Mark, Op, ZooKeeperProxy
from tests.support.zookeeper.sessions import end_session, opened
from zkconsumer.znodes.filters import TopicFilter

HERE = Path(__file__).parent
RECORDED = {
    version: json.loads((HERE / f"sequences-{version}.json").read_text(encoding="utf-8"))
    for version in ("0.8.2.2", "1.1.1")
}
BACKOFF_MS = 300
SETTINGS = {
    "rebalance_backoff_ms": str(BACKOFF_MS),
    "rebalance_max_retries": "10",
    "auto_commit_interval_ms": "3600000",
    "zookeeper_session_timeout_ms": "30000",  # longer than any pause of a busy machine; expiries are forced
    "refresh_leader_backoff_ms": "3600000",  # one leader lookup per start, however late a new topic has leaders
}

#: Where we differ from 0.8.2.2: {stage: {member: our lines for theirs}}.
OURS_INSTEAD = {
    # kazoo cannot send setWatches: reads replace it, in an order in which no change is missed.
    "short disconnect": {
        "g_c2": {
            "setWatches data:/consumers/g/ids data:/brokers/topics/t child:/consumers/g/ids ok": [
                "exists /brokers/topics/t ok watch",
                "getChildren /consumers/g/ids ok watch",
                "exists /consumers/g/ids ok watch",
            ]
        }
    }
}
#: Where the original iterates over a hash map and we go by name: the order is not compared, the numbers are.
UNORDERED = (
    (re.compile(r"/(owners|offsets)/\w+/\d+"), r"/\1/*/*"),
    (re.compile(r"/(owners|offsets)/\w+"), r"/\1/*"),
    (re.compile(r"/consumers/(\w+)/ids/\w+"), r"/consumers/\1/ids/*"),
    (re.compile(r"/brokers/topics/\w+"), r"/brokers/topics/*"),
)
#: With two topics, that order also decides which topic's parent is missing first: their requests are compared sorted.
FOLDERS_ANYWHERE = {"first wildcard join", "second wildcard join without conflict", "a matching topic appears"}
TOPIC_READ = re.compile(r"getData /brokers/topics/\S+ ok watch")
#: From this request on the leader finder and the watch of the topics run concurrently, in both.
SIDE_BY_SIDE = {"first wildcard join": ("w_w1",), "second wildcard join without conflict": ("w_w2",)}
#: Where 1.1 differs from 0.8.2, and so from ours without `kafka.release=1.1`: its lines, and 0.8.2's in their place.
CHANGED_IN_1_1 = (
    # It creates the whole path top down at once, where 0.8.2 tries the node and then creates what is missing.
    (["create /consumers NodeExists", "create /consumers/G NodeExists", "create /consumers/G/ids NodeExists"], []),
    (
        ["create /consumers NodeExists", "create /consumers/G ok", "create /consumers/G/ids ok"],
        [
            "create /consumers/G/ids/* NoNode ephemeral",
            "create /consumers/G/ids NoNode",
            "create /consumers/G ok",
            "create /consumers/G/ids ok",
        ],
    ),
    # A connector checks the chroot once, before its first claim.
    (["exists / ok"], []),
)


# -- playing -----------------------------------------------------------------------------------------------------


class Play:
    """Members of one script behind one proxy, and the traffic of each stage."""

    def __init__(self, proxy: ZooKeeperProxy, again: ZooKeeperProxy, release: str) -> None:
        self.proxy = proxy
        self.settings = SETTINGS | {"kafka_release": release}
        self.again = again  #: for the member that has the same id as another
        self.taken: dict[str, dict[str, list[str]]] = {}
        self.members: dict[str, Member] = {}

    async def join(
        self,
        group: str,
        name: str,
        topics: Mapping[str, int] | TopicFilter,
        *,
        waits_ms: int | None = None,
        **more: str,
    ) -> None:
        """See `wait_for_id`."""
        proxy = self.again if name.endswith("again") else self.proxy
        made = new_member(proxy.connect_string, name.removesuffix(" again"), group=group, **{**self.settings, **more})
        self.members[f"{group}_{name}"] = made
        await made.consumer.start()
        if waits_ms is not None:
            wait_for_id(made, waits_ms)
        if isinstance(topics, TopicFilter):
            await made.consumer.subscribe_pattern(topics, 1, made)
        else:
            await made.consumer.subscribe(topics, made)

    async def leave(self, member: str) -> None:
        await self.members.pop(member).consumer.close()

    async def close(self) -> None:
        for member in list(self.members):
            await self.leave(member)

    async def quiet(self) -> None:
        await self.proxy.quiet(0.4)
        await self.again.quiet(0.4)

    def marks(self) -> tuple[Mark, Mark]:
        return self.proxy.mark(), self.again.mark()

    async def take(self, stage: str, since: tuple[Mark, Mark]) -> None:
        """Record everything since then, once the traffic ends."""
        await self.quiet()
        taken: dict[str, list[tuple[float, str]]] = {}
        for proxy, mark, suffix in zip((self.proxy, self.again), since, ("", " again"), strict=True):
            for op in proxy.operations(mark):
                if op.op not in ("connect", "reconnect"):
                    taken.setdefault(op.connection + suffix, []).append((op.at, line(op)))
            for event in proxy.events(mark):
                notified = f"event {event.event} {event.path}"
                taken.setdefault(event.connection + suffix, []).append((event.at, notified))
        self.taken[stage] = {member: [text for _, text in sorted(lines)] for member, lines in taken.items()}

    def count(self, member: str, since: Mark, wanted: Callable[[Op], bool]) -> int:
        return sum(wanted(op) for op in self.proxy.operations(since, connection=member))


def line(op: Op) -> str:
    words = [op.op, op.path, op.result or "", "watch" if op.watch else "", "ephemeral" if op.ephemeral else ""]
    return " ".join(word for word in words if word)


def lists_brokers(member: str) -> Callable[[Op], bool]:
    """Matches a member's reads of the broker list, two per attempt."""
    return lambda op: op.connection == member and op.op == "getChildren" and op.path == paths.BROKER_IDS


def nth(number: int, matches: Callable[[Op], bool]) -> Callable[[Op], bool]:
    """Matches the `number`-th request that matches, counting from one; each request is passed in once."""
    seen = itertools.count(1)
    return lambda op: matches(op) and next(seen) == number


async def without_conflict(play: Play, group: str, joiner: str, holder: str, topics: Mapping[str, int] | TopicFilter):
    """The joiner is held before its first read until the holder has rebalanced."""
    holding = play.members[f"{group}_{holder}"]
    pause = play.proxy.pause_at(lists_brokers(f"{group}_{joiner}"))
    done = holding.rebalances()
    joining = asyncio.create_task(play.join(group, joiner, topics))
    await pause.reached()
    await until(lambda: holding.rebalances() > done, 60, "the holder's rebalance")
    pause.release()
    await joining


async def expired(play: Play, server: str) -> None:
    """c2's session ends while it is cut off, and c1 takes everything."""
    c1, c2 = play.members["g_c1"], play.members["g_c2"]
    done = c1.rebalances()
    play.proxy.refuse(True, "g_c2")
    play.proxy.cut("g_c2")
    await asyncio.to_thread(end_session, server, c2.session.credentials)
    await until(lambda: c1.rebalances() > done, 60, "c1 to own all partitions")


async def back(play: Play) -> None:
    """c2 returns in a new session; as in `without_conflict` it rebalances after c1."""
    c1, c2 = play.members["g_c1"], play.members["g_c2"]
    done = c1.rebalances(), c2.rebalances()
    pause = play.proxy.pause_at(lists_brokers("g_c2"))
    play.proxy.refuse(False, "g_c2")
    await pause.reached()
    await until(lambda: c1.rebalances() > done[0], 60, "c1's rebalance")
    pause.release()
    await until(lambda: c2.rebalances() >= done[1] + 2, 60, "c2 to return")


async def play_static(play: Play, broker: Broker, server: str) -> None:
    since = play.marks()
    await play.join("g", "c1", {"t": 1})
    await play.take("first join of a new group", since)
    since = play.marks()
    await without_conflict(play, "g", "c2", "c1", {"t": 1})
    await play.take("join without conflict", since)
    c1 = play.members["g_c1"]
    since, before = play.marks(), c1.rebalances()
    await play.leave("g_c2")
    await until(lambda: c1.rebalances() > before, 60, "c1 to own all partitions")
    await play.take("graceful leave", since)

    since, before = play.marks(), c1.rebalances()
    pause = play.proxy.pause_at(lambda op: op.connection == "g_c1" and op.op == "delete")
    third = play.proxy.pause_at(nth(5, lists_brokers("g_c2")))
    joining = asyncio.create_task(play.join("g", "c2", {"t": 1}))
    await pause.reached()
    await third.reached()
    assert play.count("g_c2", since[0], reads_owner) == 4, "two failed attempts of c2"
    pause.release()
    await until(lambda: c1.rebalances() > before, 60, "c1 to release its partitions")
    third.release()
    await joining
    await play.take("join with conflict and retry", since)

    since = play.marks()
    await expired(play, server)
    await back(play)
    await play.take("session expiry and return", since)

    since = play.marks()
    play.proxy.cut("g_c2")
    await until(lambda: play.count("g_c2", since[0], lambda op: op.op == "reconnect") == 1, 60, "c2 to return")
    await until(lambda: play.count("g_c2", since[0], lambda op: op.watch) >= 3, 60, "c2 to set its watches again")
    await play.take("short disconnect", since)

    since = play.marks()
    await expired(play, server)
    await play.take("crash", since)
    await back(play)
    await play.quiet()
    c2 = play.members["g_c2"]

    since, done = play.marks(), (c1.rebalances(), c2.rebalances())
    await broker.cluster.grow_topic("t", partitions=6)
    await until(lambda: c1.rebalances() > done[0] and c2.rebalances() > done[1], 60, "both members after the growth")
    await play.take("the topic grows from 4 to 6 partitions", since)


def reads_owner(op: Op) -> bool:
    return op.op == "getData" and "/owners/" in op.path


async def play_wildcards(play: Play, broker: Broker) -> None:
    pattern = TopicFilter.white("t|u|v")
    since = play.marks()
    await play.join("w", "w1", pattern)
    await play.take("first wildcard join", since)
    since = play.marks()
    await without_conflict(play, "w", "w2", "w1", pattern)
    await play.take("second wildcard join without conflict", since)
    since = play.marks()
    done = {name: play.members[name].rebalances() for name in ("w_w1", "w_w2")}
    # The folder of the new topic's owners is w1's to make, as it happened to be in the recordings.
    pause = play.proxy.pause_at(lambda op: op.connection == "w_w2" and op.op == "create" and "/owners/v/" in op.path)
    await broker.cluster.create_topic("v", partitions=2, replication_factor=1)
    await pause.reached()
    await until(lambda: play.members["w_w1"].rebalances() > done["w_w1"], 60, "w1 to create the parent znode")
    pause.release()
    await until(lambda: all(play.members[n].rebalances() > d for n, d in done.items()), 60, "both to see topic v")
    await play.take("a matching topic appears", since)


async def play_same_id(play: Play) -> None:
    since = play.marks()
    await play.join("x", "x1", {"u": 1})
    fourth = play.again.pause_at(nth(4, lambda op: op.op == "create" and op.ephemeral))
    second = asyncio.create_task(play.join("x", "x1 again", {"u": 1}, waits_ms=500))
    await fourth.reached()
    await play.take("the same id twice", since)
    since = play.marks()
    await play.leave("x_x1")
    fourth.release()
    await second
    await play.take("the first of the same id leaves", since)
    await play.leave("x_x1 again")


async def play_same_id_as_1_1(play: Play) -> None:
    since = play.marks()
    await play.join("x", "x1", {"u": 1})
    with pytest.raises(RebalanceLabError, match="x_x1"):
        await play.join("x", "x1 again", {"u": 1})
    await play.take("the same id twice", since)
    since = play.marks()
    await play.leave("x_x1")
    await play.take("the first of the same id leaves", since)


async def play_fail_on_conflict(play: Play) -> None:
    """1.1's rule for a taken id, as an option."""
    await play.join("y", "y1", {"u": 1})
    await play.quiet()
    since = play.marks()
    with pytest.raises(RebalanceLabError, match="y_y1"):
        await play.join("y", "y1 again", {"u": 1}, registration_conflict="fail")
    await play.take("the same id twice, not waiting", since)


async def played_script(server: str, chroot: str, data_dir: Path, release: str) -> dict[str, dict[str, list[str]]]:
    with ZooKeeperProxy(chroot) as proxy, ZooKeeperProxy(chroot) as again:
        play = Play(proxy, again, release)
        try:
            async with opened(chroot) as session:
                await session.ensure_path("/consumers")  # Kafka's brokers create it, ours leave it to the groups
            async with running_broker(chroot, data_dir, {"t": 4, "u": 2}) as broker:
                await play_static(play, broker, chroot)
                await play.close()
                await play_wildcards(play, broker)
                await play.close()
                if release == "1.1":
                    await play_same_id_as_1_1(play)
                else:
                    await play_same_id(play)
                    await play_fail_on_conflict(play)
                await play.close()
            since = play.marks()
            await play.join("n", "n1", {"u": 1})
            await play.take("join without a broker", since)
        finally:
            await play.close()
    return play.taken


def play_as(release, zookeeper, tmp_path_factory):
    """{stage: {member: lines}} of our members."""
    folder = f"/sequences-{release}"

    async def script() -> dict[str, dict[str, list[str]]]:
        async with opened(zookeeper.connect_string) as session:
            await session.ensure_path(folder)
        server = zookeeper.connect_string
        return await played_script(server, f"{server}{folder}", tmp_path_factory.mktemp("broker"), release)

    return asyncio.run(script())


@pytest.fixture(scope="module")
def played(zookeeper, tmp_path_factory):
    return play_as("0.8.2", zookeeper, tmp_path_factory)


@pytest.fixture(scope="module")
def played_as_1_1(zookeeper, tmp_path_factory):
    return play_as("1.1", zookeeper, tmp_path_factory)


# -- comparing ---------------------------------------------------------------------------------------------------


def comparable(lines: Sequence[str]) -> list[str]:
    """The lines without the names that depend on a hash map's order."""
    shown = []
    for text in lines:
        plain = text
        for what, instead in UNORDERED:
            plain = what.sub(instead, plain)
        shown.append(plain)
    return shown


def runs_sorted(lines: Sequence[str]) -> list[str]:
    """The lines, sorted within each run of requests about owners or about offsets."""
    result: list[str] = []
    run: list[str] = []
    kind = ""
    for text in [*lines, ""]:
        about = next((part for part in ("/owners/*", "/offsets/*", "/owners", "/offsets") if part in text), "")
        about = about.removesuffix("/*")
        if about != kind:
            result += sorted(run)
            run, kind = [], about
        if about:
            run.append(text)
        elif text:
            result.append(text)
    return result


def as_0_8_2(lines: Sequence[str]) -> list[str]:
    """A recording of 1.1.1 with the changes since 0.8.2 undone."""
    text = "\n".join(lines)
    for theirs, before in CHANGED_IN_1_1:
        pattern = re.escape("\n".join(theirs)).replace("/G", r"/(?P<group>\w+)", 1).replace("/G", "/(?P=group)")
        text = re.sub(
            pattern + r"(?=\n|$)\n?",
            lambda found, before=before: "".join(f"{b}\n" for b in before).replace(
                "/G", f"/{found.groupdict().get('group', '')}"
            ),
            text,
        )
    return topics_first(text.rstrip("\n").split("\n"))


def topics_first(lines: Sequence[str]) -> list[str]:
    """0.8.2 reads the topics' nodes in R6 before it lists the members, 1.1 before it lists them once more."""
    result: list[str] = []
    listed = 0  #: index of the last listing of the members
    for text in lines:
        if TOPIC_READ.fullmatch(text) and listed and not result[-1].startswith("exists"):
            result.insert(listed, text)
            listed += 1
            continue
        if text.startswith("getChildren /consumers/"):
            listed = len(result)
        result.append(text)
    return result


def expected(version: str, stage: str, member: str, *, undone: bool = True) -> list[str]:
    """What the original did; of 1.1.1 with the changes since 0.8.2 `undone`."""
    recorded = comparable(RECORDED[version][stage][member])
    if version == "1.1.1" and undone:
        recorded = as_0_8_2(recorded)
    instead = OURS_INSTEAD.get(stage, {}).get(member, {})
    substitutes = {comparable([theirs])[0]: comparable(ours) for theirs, ours in instead.items()}
    return [ours for text in recorded for ours in substitutes.get(text, [text])]


EXACT = [
    (stage, member)
    for stage, members in RECORDED["0.8.2.2"].items()
    for member in members
    if stage != "session expiry and return" or member != "g_c2"
]
ONLY_0_8_2 = {
    # 1.1 raises where 0.8.2 waits; see the test of `registration.conflict=fail`.
    ("the same id twice", "x_x1 again"),
    ("the first of the same id leaves", "x_x1 again"),
}


@pytest.mark.parametrize("version", RECORDED)
@pytest.mark.parametrize(("stage", "member"), EXACT)
def test_requests_have_the_order_of_the_original(played, version, stage, member):
    if version == "1.1.1" and (stage, member) in ONLY_0_8_2:
        assert member not in RECORDED[version][stage] or len(RECORDED[version][stage][member]) == 5
        return
    assert_same_requests(stage, member, played[stage][member], expected(version, stage, member))


@pytest.mark.parametrize(("stage", "member"), [each for each in EXACT if each not in ONLY_0_8_2])
def test_requests_of_kafka_release_1_1_have_the_order_of_1_1_1(played_as_1_1, stage, member):
    theirs = expected("1.1.1", stage, member, undone=False)
    assert_same_requests(stage, member, played_as_1_1[stage][member], theirs)


def test_id_that_is_taken_is_refused_by_kafka_release_1_1_with_the_requests_of_1_1_1(played_as_1_1):
    stage, member = "the same id twice", "x_x1 again"
    ours = comparable(played_as_1_1[stage][member])
    assert [text for text in ours if text.startswith(("create", "get"))] == comparable(RECORDED["1.1.1"][stage][member])


def assert_same_requests(stage: str, member: str, played: Sequence[str], theirs: list[str]) -> None:
    ours = comparable(played)
    if stage in FOLDERS_ANYWHERE:
        ours, theirs = runs_sorted(ours), runs_sorted(theirs)
    if member in SIDE_BY_SIDE.get(stage, ()):
        ours, theirs = apart(ours), apart(theirs)
    assert ours == theirs


def apart(lines: list[str]) -> list[str]:
    """After the last claim: the leader finder's requests first, then the others, each in their order."""
    last = max(i for i, text in enumerate(lines) if text.startswith("create") and "/owners/" in text) + 1
    return lines[:last] + sorted(lines[last:], key=lambda text: paths.BROKER_IDS not in text)


@pytest.mark.parametrize("version", RECORDED)
def test_expired_member_returns_with_the_requests_of_the_original(played, version):
    """It registers and rebalances without a release; then listeners are notified, and 1 to 1 + T more rebalances
    follow.

    From the first listener on, two sequences run side by side: notifications and rebalances.
    """
    stage, member, topics = "session expiry and return", "g_c2", 1
    ours, theirs = comparable(played[stage][member]), expected(version, stage, member)
    notified = theirs.index("exists /consumers/g/ids ok watch")
    claims = [i for i, text in enumerate(theirs[:notified]) if "create /consumers/g/owners" in text]
    assert ours[: claims[0]] == theirs[: claims[0]]
    assert not any(text.startswith("delete") for text in ours[: claims[0]])
    of_listeners = [text for text in theirs if text.startswith("exists")]
    assert [text for text in ours if text.startswith("exists")] == of_listeners
    assert set(ours) <= set(theirs)
    shape = Shape(2, 4)
    for lines in (ours, theirs):
        attempts = sum(text.startswith("getData /consumers/g/ids/") for text in lines) // 4  # N + 2 an attempt
        rebalances = (
            lines.count("getChildren /brokers/ids ok") - 2 * attempts
        )  # those of the leader finder, one for each
        fewest, most = rebalances_of_expiry(topics)
        assert fewest <= rebalances <= most
        conflicts = sum(text.startswith("getData /consumers/g/owners/") for text in lines)
        reads = sum(text.startswith(("get", "exists")) for text in lines)
        of_failed = (attempts - rebalances) * failed_attempt(shape, 2, 0) + conflicts
        assert reads == reads_of_expiry(shape, owned=2, rebalances=rebalances) + of_failed


def test_an_id_that_is_taken_is_refused_at_once_as_in_1_1(played):
    ours = comparable(played["the same id twice, not waiting"]["y_y1 again"])
    theirs = as_0_8_2(comparable(RECORDED["1.1.1"]["the same id twice"]["x_x1 again"]))
    assert [text.replace("/y/", "/x/") for text in ours if text.startswith(("create", "get"))] == theirs
