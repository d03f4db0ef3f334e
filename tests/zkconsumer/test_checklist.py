"""The two tables of `docs/`: each fault and each peers' test has a test here that exists, or a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pages.fault_tables import TEST, cards, missing, rows
from zkconsumer.settings import ZK_CONSUMER_SETTINGS

ROOT = Path(__file__).parents[2]
WEAKNESSES = ROOT / "docs" / "weaknesses.md"
PEERS = ROOT / "docs" / "peer-test-checklist.md"

#: The faults of the specification and those seen on the originals, without those about peers and deadlocks.
FAULTS = {
    *("ownership conflict", "failed rebalance", "registered but idle", "rollback gap", "unreadable member"),
    *("broker vanishes", "round robin's precondition", "no brokers at the start", "streams created twice"),
    *("herd effect", "many leave at once", "stale reads", "lost watch", "kazoo's pitfalls", "blocked event thread"),
    *("unconditional delete", "two owners", "old claim taken for ours", "same consumer.id", "listener that raises"),
    *("cut from ZooKeeper only", "zombie window", "frozen member", "stale commit", "stale start offset"),
    *("prefetched record", "delivered and not committed"),
}

#: The peers' tests by project, as they name them.
PEER_TESTS = {
    "Kafka 0.8.2, and what 0.9 to 1.1 added": """
        PartitionAssignorTest.testRoundRobinPartitionAssignor PartitionAssignorTest.testRangePartitionAssignor
        ZookeeperConsumerConnectorTest.testBasic ZookeeperConsumerConnectorTest.testCompression
        ZookeeperConsumerConnectorTest.testCompressionSetConsumption ZookeeperConsumerConnectorTest.testConsumerDecoder
        ZookeeperConsumerConnectorTest.testLeaderSelectionForPartition
        ZookeeperConsumerConnectorTest.testConsumerRebalanceListener javaapi.ZookeeperConsumerConnectorTest.testBasic
        ConsumerIteratorTest.testConsumerIteratorDeduplicationDeepIterator
        ConsumerIteratorTest.testConsumerIteratorDecodingFailure TopicFilterTest.testWhitelists
        TopicFilterTest.testBlacklists TopicFilterTest.testWildcardTopicCountGetTopicCountMapEscapeJson
        FetcherTest.testFetcher AutoOffsetResetTest.testResetToEarliestWhenOffsetTooHigh
        AutoOffsetResetTest.testResetToEarliestWhenOffsetTooLow AutoOffsetResetTest.testResetToLatestWhenOffsetTooHigh
        AutoOffsetResetTest.testResetToLatestWhenOffsetTooLow OffsetCommitTest.testUpdateOffsets
        OffsetCommitTest.testCommitAndFetchOffsets OffsetCommitTest.testLargeMetadataPayload
        ZKEphemeralTest.testEphemeralNodeCleanup ZKEphemeralTest.testZkWatchedEphemeral
        ZKEphemeralTest.testOverlappingSessions ZKEphemeralTest.testSameSession
    """,
    "pykafka: BalancedConsumer": """
        test_unicode_consumer_group test_consume_returns test_consume_graceful_stop test_decide_partitions_range
        test_decide_partitions_roundrobin test_extra_consumer test_a_rebalance_unblock_event test_rebalance_callbacks
        test_rebalance_callbacks_surfaces_errors test_consume_earliest test_consume_latest test_external_kazoo_client
        test_no_partitions test_zk_conn_lost
    """,
    "wvanbergen/kafka and kazoo-go": """
        Test_PartitionDivision TestIntegrationMultipleTopicsSingleConsumer TestIntegrationSingleTopicParallelConsumers
        TestSingleTopicSequentialConsumer TestConsumergroups TestConsumergroupInstances TestConsumergroupInstanceCrash
        TestConsumergroupWatchInstances TestConsumergroupInstanceClaimPartition
        TestConsumergroupInstanceClaimPartitionSame TestConsumergroupOffsets
    """,
    "kazoo: SetPartitioner and watchers": """
        test_party_of_one test_party_of_two test_party_expansion test_more_members_than_set_items
        test_party_session_failure test_connection_loss test_race_condition_new_partitioner_during_the_lock
        test_race_condition_new_partitioner_steals_the_lock test_child_watch_session_loss
        test_child_stop_on_session_loss test_datawatch_across_session_expire test_child_watcher_remove_session_watcher
        PatientChildrenWatch.test_watch PatientChildrenWatch.test_exception PatientChildrenWatch.test_watch_iterations
    """,
}


def test_every_fault_has_a_test_that_exists():
    weaknesses = cards(WEAKNESSES)
    assert [card["name"] for card in weaknesses] == list(dict.fromkeys(card["name"] for card in weaknesses))
    assert {card["name"] for card in weaknesses} == FAULTS
    for card in weaknesses:
        fault, tests = card["name"], card["tests"]
        assert all(card.get(label) for label in ("text", "Fixed by", "Option here")), f"{fault} lacks something"
        assert TEST.search(tests), f"{fault} has no test"
        elsewhere = missing(tests, ROOT / "tests" / "zkconsumer")
        assert not [test for test in missing(tests, ROOT / "tests") if test in elsewhere], fault


def test_every_page_that_a_table_refers_to_exists():
    for page in (WEAKNESSES, PEERS):
        for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).is_file(), f"{page.name} refers to {link}"


def test_every_option_that_takes_a_fault_away_is_named_and_exists():
    options = " ".join(card["Option here"] for card in cards(WEAKNESSES))
    named = {name.partition("=")[0] for name in re.findall(r"`([\w.=]+)`", options)}
    named = {name for name in named if "." in name and not name[-1].isdigit()} | {"roundrobin.release"}
    assert named <= set(ZK_CONSUMER_SETTINGS)
    assert named >= {name for name in ZK_CONSUMER_SETTINGS if name.startswith("fix.")}


@pytest.mark.parametrize("project", PEER_TESTS)
def test_every_test_of_the_peers_has_one_here_or_a_reason(project):
    table = rows(PEERS)[project]
    theirs = [row[0] for row in table]
    wanted = PEER_TESTS[project].split()
    assert [name for name in theirs if not name.startswith("the same tests")] == wanted
    for name, ours in table:
        reason = ours.startswith("none: ") and len(ours.split()) > 5
        assert bool(TEST.search(ours)) != reason, f"{name} needs a test or a reason"
        assert not missing(ours, ROOT / "tests"), name


def test_a_test_that_is_not_there_is_found():
    assert missing("`test_checklist.py::test_of_nobody`", Path(__file__).parent) == [
        "test_checklist.py::test_of_nobody"
    ]
    assert missing("`test_nowhere.py::test_x`", Path(__file__).parent) == ["test_nowhere.py::test_x"]
    assert not missing("`test_checklist.py::test_a_test_that_is_not_there_is_found`", Path(__file__).parent)
