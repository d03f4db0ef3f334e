"""Names of Kafka's tests of consumer groups (KIP-848), by class and group, and why we have no test for some.

As `kafka_names`, which joins both. A name that two classes have is written with its class.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

#: GroupMetadataManagerTest.java, what is about consumer groups alone.
MANAGER: Mapping[str, str] = {
    "Consumer groups: requests and epochs": """
        testConsumerHeartbeatRequestValidation testConsumerHeartbeatRegexValidation testMemberIdGeneration
        testUnknownGroupId testUnknownMemberIdJoinsConsumerGroup testConsumerGroupMemberEpochValidation
        testConsumerGroupMemberEpochValidationForStaticMember testNewMemberIsRejectedWithMaximumMembersIsReached
    """,
    "Consumer groups: static members": """
        testGroupEpochBumpWhenNewStaticMemberJoins testStaticMemberGetsBackAssignmentUponRejoin
        testStaticMemberRejoinsWithNewSubscribedTopics testNoGroupEpochBumpWhenStaticMemberTemporarilyLeaves
        testLeavingStaticMemberBumpsGroupEpoch testShouldThrownUnknownMemberIdExceptionWhenUnknownStaticMemberJoins
        testShouldThrowFencedInstanceIdExceptionWhenStaticMemberWithDifferentMemberIdJoins
        testShouldThrowUnknownMemberIdExceptionWhenUnknownStaticMemberLeaves
        testShouldThrowFencedInstanceIdExceptionWhenStaticMemberWithDifferentMemberIdLeaves
        testSessionTimeoutExpirationStaticMember
    """,
    "Consumer groups: assignments and states": """
        testMemberJoinsEmptyConsumerGroup testUpdatingSubscriptionTriggersNewTargetAssignment
        testNewJoiningMemberTriggersNewTargetAssignment testLeavingMemberBumpsGroupEpoch
        testShouldThrownUnreleasedInstanceIdExceptionWhenNewMemberJoinsWithInUseInstanceId
        testConsumerGroupHeartbeatFullResponse testReconciliationProcess testConsumerGroupStates
        testPartitionAssignorExceptionOnRegularHeartbeat
    """,
    "Consumer groups: topics": """
        testSubscriptionMetadataRefreshedAfterGroupIsLoaded
        testSubscriptionMetadataRefreshedAgainAfterWriteFailure testGroupIdsByTopics
        testOnNewMetadataImageWithEmptyDelta testOnNewMetadataImage
    """,
    "Consumer groups: timers and loading": """
        testSessionTimeoutLifecycle testSessionTimeoutExpiration testRebalanceTimeoutLifecycle
        testRebalanceTimeoutExpiration testOnLoaded
    """,
}

RECONCILIATION: Mapping[str, str] = {
    "From each state to each": """
        testStableToStable testStableToStableWithNewPartitions testStableToUnrevokedPartitions
        testStableToUnreleasedPartitions
        testStableToUnreleasedPartitionsWithOwnedPartitionsNotHavingRevokedPartitions
        testUnrevokedPartitionsToStable testRemainsInUnrevokedPartitions
        testUnrevokedPartitionsToUnrevokedPartitions testUnrevokedPartitionsToUnreleasedPartitions
        testUnreleasedPartitionsToStable testUnreleasedPartitionsToStableWithNewPartitions
        testUnreleasedPartitionsToUnreleasedPartitions testUnreleasedPartitionsToUnrevokedPartitions
        testUnknownState
    """
}

TARGET: Mapping[str, str] = {
    "Targets": """
        testCreateMemberSubscriptionSpecImpl testEmpty testAssignmentHasNotChanged testAssignmentSwapped
        testNewMember TargetAssignmentBuilderTest.testUpdateMember testPartialAssignmentUpdate testDeleteMember
        testReplaceStaticMember
    """
}

GROUP: Mapping[str, str] = {
    "Members": """
        testGetOrCreateMember ConsumerGroupTest.testUpdateMember testNoStaticMember
        testGetStaticMemberByInstanceId testRemoveMember testRemoveStaticMember
    """,
    "Owners of partitions": """
        testUpdatingMemberUpdatesPartitionEpoch
        testUpdatingMemberUpdatesPartitionEpochWhenPartitionIsReassignedBeforeBeingRevoked
        testUpdatingMemberUpdatesPartitionEpochWhenPartitionIsNotReleased testRemovePartitionEpochs
        testAddPartitionEpochs testDeletingMemberRemovesPartitionEpoch testWaitingOnUnreleasedPartition
        testUpdateInvertedAssignment
    """,
    "States, subscriptions and assignors": """
        testGroupState testPreferredServerAssignor testUpdateSubscriptionMetadata
        testUpdateSubscribedTopicNamesAndSubscriptionType testMetadataRefreshDeadline testIsSubscribedToTopic
        testStateTransitionMetrics
    """,
    "Offsets, lists and descriptions": """
        testValidateTransactionalOffsetCommit testValidateOffsetCommit testValidateOffsetFetch
        testValidateDeleteGroup testOffsetExpirationCondition testAsListedGroup testAsDescribedGroup
        testIsInStatesCaseInsensitive testGroupTypeFromString
    """,
}

#: Kafka's test class -> group of names -> the names.
CONSUMER_CLASSES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "GroupMetadataManagerTest.java, consumer groups": MANAGER,
        "CurrentAssignmentBuilderTest.java": RECONCILIATION,
        "TargetAssignmentBuilderTest.java": TARGET,
        "ConsumerGroupTest.java": GROUP,
    }
)

CONSUMER_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "4.1 keeps a hash of the topics instead, in the group's epoch": """
            testReplayConsumerGroupPartitionMetadata testReplayConsumerGroupPartitionMetadataTombstone
            testUpdateSubscriptionMetadata
        """,
        "an exception in one of our assignors is an internal error, which stops the partition": (
            "testPartitionAssignorExceptionOnRegularHeartbeat"
        ),
        "tests an index that our targets do not need": "testUpdateInvertedAssignment",
    }
)
