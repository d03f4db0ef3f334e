"""Names of Kafka's tests of a group coordinator, and why we have no test for some.

The names are those of Kafka's trunk of October 2024. A name is covered by tests that are marked with it,
`@pytest.mark.kafka("testName", ...)`, or by a text that names it (`tests.support.kafka_names.markers`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tests.support.kafka_names.consumer import CONSUMER_CLASSES, CONSUMER_REASONS
from tests.support.kafka_names.migration import MIGRATION_CLASSES

#: GroupCoordinatorTest.scala: group of names -> the names.
SCALA: Mapping[str, str] = {
    "Static membership": """
        testStaticMembersJoinGroupWithMaxSize staticMemberJoinAsFirstMember
        staticMemberReJoinWithExplicitUnknownMemberId staticMemberFenceDuplicateRejoinedFollower
        staticMemberFenceDuplicateSyncingFollowerAfterMemberIdChanged
        staticMemberFenceDuplicateRejoiningFollowerAfterMemberIdChanged staticMemberRejoinWithKnownMemberId
        staticMemberRejoinWithLeaderIdAndUnknownMemberId staticMemberRejoinWithLeaderIdAndKnownMemberId
        staticMemberRejoinWithLeaderIdAndUnexpectedDeadGroup
        staticMemberRejoinWithLeaderIdAndUnexpectedEmptyGroup
        staticMemberRejoinWithFollowerIdAndChangeOfProtocol
        staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWithSelectedProtocolChanged
        staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchangedPersistenceFailure
        staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsButCannotPersistChange
        staticMemberRejoinWithUpdatedSessionAndRebalanceTimeoutsAndPersistChange
        staticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchanged
        staticMemberRejoinWithKnownLeaderIdToTriggerRebalanceAndFollowerWithChangeOfProtocol
        staticMemberRejoinAsFollowerWithUnknownMemberId
        staticMemberRejoinAsFollowerWithKnownMemberIdAndNoProtocolChange
        staticMemberRejoinAsFollowerWithMismatchedMemberId staticMemberRejoinAsLeaderWithMismatchedMemberId
        staticMemberSyncAsLeaderWithInvalidMemberId staticMemberHeartbeatLeaderWithInvalidMemberId
        shouldGetDifferentStaticMemberIdAfterEachRejoin staticMemberCommitOffsetWithInvalidMemberId
        staticMemberJoinWithUnknownInstanceIdAndKnownMemberId staticMemberReJoinWithIllegalStateAsUnknownMember
        testStaticMemberFollowerFailToRejoinBeforeRebalanceTimeout
        testStaticMemberLeaderFailToRejoinBeforeRebalanceTimeout testTxnCommitOffsetWithFencedInstanceId
        testLeaveGroupWithFencedInstanceId testLeaveGroupStaticMemberWithUnknownMemberId
        testStaticMembersValidBatchLeaveGroup testStaticMembersWrongCoordinatorBatchLeaveGroup
        testStaticMembersUnknownGroupBatchLeaveGroup testStaticMembersFencedInstanceBatchLeaveGroup
        testStaticMembersUnknownInstanceBatchLeaveGroup testDescribeGroupStableForStaticMember
    """,
    "Max group size": """
        testJoinGroupShouldReceiveErrorIfGroupOverMaxSize
        testDynamicMembersJoinGroupWithMaxSizeAndRequiredKnownMember testDynamicMembersJoinGroupWithMaxSize
        testDynamicMembersCanReJoinGroupWithMaxSizeWhileRebalancing
        testLastJoiningMembersAreKickedOutWhenReJoiningGroupWithMaxSize
    """,
    "Initial rebalance delay": """
        shouldDelayInitialRebalanceByGroupInitialRebalanceDelayOnEmptyGroup
        shouldResetRebalanceDelayWhenNewMemberJoinsGroupInInitialRebalance
        shouldDelayRebalanceUptoRebalanceTimeout
    """,
    "Pending members / new-member timeouts": """
        testNewMemberTimeoutCompletion testNewMemberJoinExpiration testNewMemberFailureAfterJoinGroupCompletion
        testNewMemberFailureAfterSyncGroupCompletion testSecondMemberPartiallyJoinAndTimeout
        testJoinGroupCompletionWhenPendingMemberJoins testJoinGroupCompletionWhenPendingMemberTimesOut
        testPendingMembersLeavesGroup testFetchPendingTxnOffsetsWithAbort testFetchPendingTxnOffsetsWithCommit
        testPendingMemberBatchLeaveGroup
    """,
    "JoinGroup validation and protocol vote": """
        testJoinGroupWrongCoordinator testJoinGroupSessionTimeoutTooSmall testJoinGroupSessionTimeoutTooLarge
        testJoinGroupUnknownConsumerNewGroup testInvalidGroupId testValidJoinGroup
        testJoinGroupInconsistentProtocolType testJoinGroupWithEmptyProtocolType
        testJoinGroupWithEmptyGroupProtocol testJoinGroupInconsistentGroupProtocol
        testJoinGroupUnknownConsumerExistingGroup testJoinGroupUnknownConsumerNewDeadGroup
        testJoinGroupSecondJoinInconsistentProtocol testJoinGroupProtocolTypeIsNotProvidedWhenAnErrorOccurs
        testJoinGroupReturnsTheProtocolType testJoinGroupFromUnchangedFollowerDoesNotRebalance
        testJoinGroupFromUnchangedLeaderShouldRebalance testDeleteGroupWithInvalidGroupId
    """,
    "SyncGroup and sync timeout": """
        testSyncDeadGroup testSyncGroupReturnsAnErrorWhenProtocolTypeIsInconsistent
        testSyncGroupReturnsAnErrorWhenProtocolNameIsInconsistent
        testSyncGroupSucceedWhenProtocolTypeAndNameAreNotProvided
        testSyncGroupSucceedWhenProtocolTypeAndNameAreConsistent testSyncGroupEmptyAssignment
        testSyncGroupNotCoordinator testSyncGroupFromUnknownGroup testSyncGroupFromUnknownMember
        testSyncGroupFromIllegalGeneration testRebalanceTimesOutWhenSyncRequestIsNotReceived
        testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromFollowers
        testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromLeaders
        testRebalanceDoesNotTimeOutWhenAllSyncAreReceived testLeaderFailureInSyncGroup
        testSyncGroupFollowerAfterLeader testSyncGroupLeaderAfterFollower
    """,
    "Rebalance mechanics and leader": """
        testLeaderFailToRejoinBeforeFinalRebalanceTimeoutWithLongSessionTimeout
        testLeaderRejoinBeforeFinalRebalanceTimeoutWithLongSessionTimeout testHeartbeatRebalanceInProgress
        testHeartbeatIllegalGeneration testSessionTimeoutDuringRebalance testRebalanceCompletesBeforeMemberJoins
        testCommitOffsetWithDefaultGeneration testCommitOffsetInCompletingRebalance
        testCommitOffsetInCompletingRebalanceFromUnknownMemberId
        testCommitOffsetInCompletingRebalanceFromIllegalGeneration testTxnCommitOffsetWithIllegalGeneration
        testTxnCommitOffsetWithLegalGeneration testHeartbeatDuringRebalanceCausesRebalanceInProgress
        testGenerationIdIncrementsOnRebalance
    """,
    "Heartbeat and session": """
        testHeartbeatWrongCoordinator testHeartbeatUnknownGroup testHeartbeatDeadGroup testHeartbeatEmptyGroup
        testHeartbeatUnknownConsumerExistingGroup testValidHeartbeat testSessionTimeout
        testHeartbeatMaintainsSession testCommitMaintainsSession testCompleteHeartbeatWithGroupDead
        testCompleteHeartbeatWithMemberAlreadyRemoved
    """,
    "LeaveGroup": """
        testLeaveGroupWrongCoordinator testLeaveGroupUnknownGroup testLeaveGroupUnknownConsumerExistingGroup
        testSingleLeaveDeadGroup testBatchLeaveDeadGroup testValidLeaveGroup
    """,
    "Transactions": """
        testBasicFetchTxnOffsets testFetchTxnOffsetsWithAbort testFetchTxnOffsetsIgnoreSpuriousCommit
        testFetchTxnOffsetsOneProducerMultipleGroups testFetchTxnOffsetsMultipleProducersOneGroup
        testTxnCommitOffsetWithInvalidMemberId testTxnCommitOffsetWithKnownMemberId
        testVerificationErrorsForTxnOffsetCommits testTxnOffsetMetadataTooLarge
    """,
    "Offset commit / fetch": """
        testOffsetsRetentionMsIntegerOverflow testOffsetCommitDeadGroup testCommitOffsetFromUnknownGroup
        testCommitOffsetsAfterGroupIsEmpty testFetchOffsets testCommitAndFetchOffsetsWithEmptyGroup
        testFetchOffsetForUnknownPartition testFetchOffsetNotCoordinatorForGroup testFetchAllOffsets
        testManualCommitOffsetShouldNotValidateMemberIdAndInstanceId
    """,
    "Delete / describe / list": """
        testListGroupsIncludesStableGroups testListGroupsIncludesRebalancingGroups testListGroupsWithStates
        testListGroupsWithTypes testDescribeGroupWrongCoordinator testDescribeGroupInactiveGroup
        testDescribeGroupStableForDynamicMember testDescribeGroupRebalancing testDeleteNonEmptyGroup
        testDeleteGroupWithWrongCoordinator testDeleteEmptyGroup testDeleteEmptyGroupWithStoredOffsets
        testDeleteOffsetOfNonExistingGroup testDeleteOffsetOfNonEmptyNonConsumerGroup
        testDeleteOffsetOfEmptyNonConsumerGroup testDeleteOffsetOfConsumerGroupWithUnparsableProtocol
        testDeleteOffsetOfDeadConsumerGroup testDeleteOffsetOfEmptyConsumerGroup
        testDeleteOffsetOfStableConsumerGroup
    """,
    "Load": """
        testRequestHandlingWhileLoadingInProgress
    """,
}

#: GroupMetadataManagerTest.java, what is about classic groups.
JAVA: Mapping[str, str] = {
    "Replay of records": """
        testReplayGroupMetadataRecords testReplayConsumerGroupMemberMetadata
        testReplayConsumerGroupMemberMetadataTombstone testReplayConsumerGroupMetadata
        testReplayConsumerGroupMetadataTombstone testReplayConsumerGroupPartitionMetadata
        testReplayConsumerGroupPartitionMetadataTombstone testReplayConsumerGroupTargetAssignmentMember
        testReplayConsumerGroupTargetAssignmentMemberTombstone testReplayConsumerGroupTargetAssignmentMetadata
        testReplayConsumerGroupTargetAssignmentMetadataTombstone testReplayConsumerGroupCurrentMemberAssignment
        testReplayConsumerGroupCurrentMemberAssignmentTombstone
    """,
    "Static membership": """
        testStaticMembersJoinGroupWithMaxSize testStaticMemberJoinAsFirstMember
        testStaticMemberRejoinWithExplicitUnknownMemberId testJoinGroupReplaceStaticMember
        testReplaceStaticMemberInStableStateNoError
        testReplaceStaticMemberInStableStateWithUpdatedProtocolTriggersRebalance
        testReplaceStaticMemberInStableStateErrors testReplaceStaticMemberInStableStateSucceeds
        testReplaceStaticMemberInCompletingRebalanceStateTriggersRebalance
        testStaticMemberFenceDuplicateRejoinedFollower
        testStaticMemberFenceDuplicateSyncingFollowerAfterMemberIdChanged
        testStaticMemberFenceDuplicateRejoiningFollowerAfterMemberIdChanged
        testStaticMemberRejoinWithKnownMemberId testStaticMemberRejoinWithLeaderIdAndUnknownMemberId
        testStaticMemberRejoinWithLeaderIdAndKnownMemberId
        testStaticMemberRejoinWithLeaderIdAndUnexpectedDeadGroup
        testStaticMemberRejoinWithLeaderIdAndUnexpectedEmptyGroup
        testStaticMemberRejoinWithFollowerIdAndChangeOfProtocol
        testStaticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWithSelectedProtocolChanged
        testStaticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchangedPersistenceFailure
        testStaticMemberRejoinWithUnknownMemberIdAndChangeOfProtocolWhileSelectProtocolUnchanged
        testStaticMemberRejoinWithKnownLeaderIdToTriggerRebalanceAndFollowerWithChangeofProtocol
        testStaticMemberRejoinAsFollowerWithUnknownMemberId
        testStaticMemberRejoinAsFollowerWithKnownMemberIdAndNoProtocolChange
        testStaticMemberRejoinAsFollowerWithMismatchedInstanceId
        testStaticMemberRejoinAsLeaderWithMismatchedInstanceId testStaticMemberSyncAsLeaderWithInvalidMemberId
        testGetDifferentStaticMemberIdAfterEachRejoin testStaticMemberJoinWithUnknownInstanceIdAndKnownMemberId
        testStaticMemberReJoinWithIllegalStateAsUnknownMember
        testStaticMemberFollowerFailToRejoinBeforeRebalanceTimeout
        testStaticMemberLeaderFailToRejoinBeforeRebalanceTimeout
        testStaticMemberHeartbeatLeaderWithInvalidMemberId
        testGroupStuckInRebalanceTimeoutDueToNonjoinedStaticMember testLeaveGroupWithFencedInstanceId
        testLeaveGroupStaticMemberWithUnknownMemberId testStaticMembersValidBatchLeaveGroup
        testStaticMembersLeaveUnknownGroup testStaticMembersFencedInstanceBatchLeaveGroup
        testStaticMembersUnknownInstanceBatchLeaveGroup
    """,
    "Load, unload, persistence errors, metrics": """
        testUpdateClassicGroupSizeCounter testGenerateRecordsOnNewClassicGroup
        testGenerateRecordsOnNewClassicGroupFailureTransformsError
        testOnLoadedExceedGroupMaxSizeTriggersRebalance testOnLoadedSchedulesClassicGroupMemberHeartbeats
        testJoinGroupAppendErrorConversion testSyncGroupAsLeaderAppendFailureTransformsError
        testClassicGroupDelete testClassicGroupMaybeDelete testConsumerGroupDelete testConsumerGroupMaybeDelete
        testClassicGroupCompletedRebalanceSensor testConsumerGroupRebalanceSensor
        testOnClassicGroupStateTransitionOnLoading testOnConsumerGroupStateTransition
        testOnConsumerGroupStateTransitionOnLoading testClassicGroupOnUnloadedEmptyAndPreparingRebalance
        testClassicGroupOnUnloadedCompletingRebalance
    """,
    "Max group size": """
        testJoinGroupShouldReceiveErrorIfGroupOverMaxSize
        testDynamicMembersJoinGroupWithMaxSizeAndRequiredKnownMember
        testDynamicMembersJoinGroupWithMaxSizeAndNotRequiredKnownMember
        testDynamicMembersCanRejoinGroupWithMaxSizeWhileRebalancing
        testLastJoiningMembersAreKickedOutWhenRejoiningGroupWithMaxSize
    """,
    "Initial rebalance delay": """
        testDelayInitialRebalanceByGroupInitialRebalanceDelayOnEmptyGroup
        testResetRebalanceDelayWhenNewMemberJoinsGroupDuringInitialRebalance
        testDelayRebalanceUptoRebalanceTimeout
    """,
    "Pending and new members": """
        testNewMemberJoinExpiration testHeartbeatExpirationShouldRemovePendingMember
        testJoinGroupExistingPendingMemberWithGroupInstanceIdThrowsException testNewMemberTimeoutCompletion
        testNewMemberFailureAfterJoinGroupCompletion testJoinGroupCompletionWhenPendingMemberJoins
        testJoinGroupCompletionWhenPendingMemberTimesOut testSecondMemberPartiallyJoinAndTimeout
        testPendingMembersLeaveGroup testPendingMemberBatchLeaveGroup
        testJoinedMemberPendingMemberBatchLeaveGroup
        testJoinedMemberPendingMemberBatchLeaveGroupWithUnknownMember
    """,
    "JoinGroup": """
        testJoinGroupUnknownMemberNewGroup testClassicGroupJoinInconsistentProtocolType
        testJoinGroupWithEmptyProtocolType testJoinGroupWithEmptyGroupProtocol
        testJoinGroupInconsistentGroupProtocol testJoinGroupSecondJoinInconsistentProtocol
        testJoinGroupUnknownConsumerExistingGroup testJoinGroupUnknownConsumerNewDeadGroup
        testJoinGroupProtocolTypeIsNotProvidedWhenAnErrorOccurs testJoinGroupReturnsTheProtocolType
        testExistingMemberJoinDeadGroup testJoinGroupExistingMemberUpdatedMetadataTriggersRebalance
        testJoinGroupAsExistingLeaderTriggersRebalanceInStableState
        testJoinGroupAsExistingMemberWithUpdatedMetadataTriggersRebalanceInStableState
        testJoinGroupExistingMemberDoesNotTriggerRebalanceInStableState testJoinGroupExistingMemberInEmptyState
        testCompleteJoinRemoveNotYetRejoinedDynamicMembers testCompleteJoinPhaseInEmptyStateSkipsRebalance
        testCompleteJoinPhaseNoMembersRejoinedExtendsJoinPhase
        testJoinGroupFromUnchangedFollowerDoesNotRebalance testJoinGroupFromUnchangedLeaderShouldRebalance
        testRebalanceCompletesBeforeMemberJoins
    """,
    "SyncGroup": """
        testSyncGroupReturnsAnErrorWhenProtocolTypeIsInconsistent
        testSyncGroupReturnsAnErrorWhenProtocolNameIsInconsistent
        testSyncGroupSucceedWhenProtocolTypeAndNameAreNotProvided
        testSyncGroupSucceedWhenProtocolTypeAndNameAreConsistent testSyncGroupFromUnknownGroup
        testSyncGroupFromUnknownMember testSyncGroupFromIllegalGeneration testLeaderFailureInSyncGroup
        testSyncGroupFollowerAfterLeader testSyncGroupLeaderAfterFollower testSyncGroupEmptyAssignment
        testRebalanceTimesOutWhenSyncRequestIsNotReceived
        testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromFollowers
        testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromLeaders
        testRebalanceDoesNotTimeOutWhenAllSyncAreReceived
    """,
    "Heartbeat and session": """
        testHeartbeatExpirationShouldRemoveMember testHeartbeatUnknownGroup testHeartbeatDeadGroup
        testHeartbeatEmptyGroup testHeartbeatUnknownMemberExistingGroup testHeartbeatDuringPreparingRebalance
        testHeartbeatDuringCompletingRebalance testHeartbeatIllegalGeneration testValidHeartbeat
        testClassicGroupMemberSessionTimeout testClassicGroupMemberHeartbeatMaintainsSession
        testClassicGroupMemberSessionTimeoutDuringRebalance
        testHeartbeatDuringRebalanceCausesRebalanceInProgress
    """,
    "Rebalance and leader": """
        testGenerationIdIncrementsOnRebalance
    """,
    "LeaveGroup": """
        testLeaveGroupInvalidGroup testLeaveGroupUnknownGroup testLeaveGroupUnknownMemberIdExistingGroup
        testLeaveDeadGroup testValidLeaveGroup
    """,
    "Describe and list": """
        testListGroups testConsumerGroupDescribeNoErrors testConsumerGroupDescribeWithErrors
        testConsumerGroupDescribeBeforeAndAfterCommittingOffset testDescribeGroupStable
        testDescribeGroupRebalancing testDescribeGroupsGroupIdNotFoundException
    """,
    "Settings": """
        testConsumerGroupDynamicConfigs
    """,
}

#: Whole groups of GroupMetadataManagerTest.java that are left out: group -> reason.
GROUPS_LEFT_OUT: Mapping[str, str] = MappingProxyType(
    {"Share groups (19 names)": "KIP-932's protocol is not among the designs"}
)

_METRICS = "tests Kafka's metrics; here a change of state is a trace event"

_REASONS: Mapping[str, str] = {
    **CONSUMER_REASONS,
    _METRICS: """
        testUpdateClassicGroupSizeCounter testClassicGroupCompletedRebalanceSensor
        testOnClassicGroupStateTransitionOnLoading testConsumerGroupRebalanceSensor
        testOnConsumerGroupStateTransition testOnConsumerGroupStateTransitionOnLoading testStateTransitionMetrics
    """,
    "a null group id cannot be sent in the protocol": "testDeleteGroupWithInvalidGroupId",
    "a member id is returned without waiting for the empty group's record, because nothing depends on that record": (
        "testGenerateRecordsOnNewClassicGroupFailureTransformsError"
    ),
}

#: Name -> the reason why no test is marked with it.
LEFT_OUT: Mapping[str, str] = MappingProxyType(
    {name: reason for reason, names in _REASONS.items() for name in names.split()}
)

#: Kafka's test class -> group -> names.
CLASSES: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        title: {group: tuple(names.split()) for group, names in groups.items()}
        for title, groups in {
            "GroupCoordinatorTest.scala": SCALA,
            "GroupMetadataManagerTest.java": JAVA,
            **CONSUMER_CLASSES,
            **MIGRATION_CLASSES,
        }.items()
    }
)
NAMES = frozenset(name for groups in CLASSES.values() for names in groups.values() for name in names)
