"""Names of Kafka's tests of groups that migrate between the classic and the consumer protocol, as `kafka_names`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

#: GroupMetadataManagerTest.java.
MANAGER: Mapping[str, str] = {
    "Migration: classic to consumer": """
        testConsumerGroupHeartbeatWithNonEmptyClassicGroup testConsumerGroupHeartbeatWithEmptyClassicGroup
        testConsumerGroupHeartbeatWithStableClassicGroup testConsumerGroupHeartbeatWithPreparingRebalanceClassicGroup
        testConsumerGroupHeartbeatWithCompletingRebalanceClassicGroup
        testConsumerGroupHeartbeatToClassicGroupFromExistingStaticMember
        testConsumerGroupHeartbeatFromExistingClassicStaticMember
    """,
    "Migration: consumer to classic": """
        testClassicGroupJoinWithEmptyConsumerGroup testLastConsumerProtocolMemberLeavingConsumerGroup
        testLastConsumerProtocolMemberSessionTimeoutInConsumerGroup
        testLastConsumerProtocolMemberRebalanceTimeoutInConsumerGroup
        testLastStaticConsumerProtocolMemberReplacedByClassicProtocolMember
        testNoConversionWhenSizeExceedsClassicMaxGroupSize
    """,
    "Migration: classic members join": """
        testJoiningConsumerGroupThrowsExceptionIfGroupOverMaxSize
        testJoiningConsumerGroupThrowsExceptionIfProtocolIsNotSupported testJoiningConsumerGroupWithNewDynamicMember
        testJoiningConsumerGroupFailingToPersistRecords testJoiningConsumerGroupWithNewStaticMember
        testJoiningConsumerGroupReplacingExistingStaticMember
        testJoiningConsumerGroupWithExistingStaticMemberAndNewSubscription
        testStaticMemberJoiningConsumerGroupWithUnknownInstanceId
        testStaticMemberJoiningConsumerGroupWithUnmatchedMemberId
        testReconciliationInJoiningConsumerGroupWithEagerProtocol
        testReconciliationInJoiningConsumerGroupWithCooperativeProtocol
    """,
    "Migration: classic members sync": """
        testClassicGroupSyncToConsumerGroupWithAllConsumerProtocolVersions
        testClassicGroupSyncToConsumerGroupWithUnknownMemberId
        testClassicGroupSyncToConsumerGroupWithFencedInstanceId
        testClassicGroupSyncToConsumerGroupWithInconsistentGroupProtocol
        testClassicGroupSyncToConsumerGroupWithIllegalGeneration
        testClassicGroupSyncToConsumerGroupRebalanceInProgress
    """,
    "Migration: classic members stay and leave": """
        testClassicGroupHeartbeatToConsumerGroupMaintainsSession
        testClassicGroupHeartbeatToConsumerGroupRebalanceInProgress
        testClassicGroupHeartbeatToConsumerWithUnknownMember testClassicGroupHeartbeatToConsumerWithFencedInstanceId
        testClassicGroupHeartbeatToConsumerWithIllegalGenerationId
        testClassicGroupHeartbeatToConsumerWithMemberNotUsingClassicProtocol
        testConsumerGroupMemberUsingClassicProtocolFencedWhenSessionTimeout
        testConsumerGroupMemberUsingClassicProtocolFencedWhenJoinTimeout
        testConsumerGroupMemberUsingClassicProtocolBatchLeaveGroup
        testConsumerGroupMemberUsingClassicProtocolBatchLeaveGroupUpdatingSubscriptionMetadata
        testClassicGroupLeaveToConsumerGroupWithoutValidLeaveGroupMember
    """,
}

GROUP: Mapping[str, str] = {
    "Migration": """
        testClassicMembersSupportedProtocols testNumClassicProtocolMembers
        testCreateGroupTombstoneRecordsWithReplacedMember testFromClassicGroup
    """
}

#: Kafka's test class -> group of names -> the names.
MIGRATION_CLASSES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {"GroupMetadataManagerTest.java, migration": MANAGER, "ConsumerGroupTest.java, migration": GROUP}
)
