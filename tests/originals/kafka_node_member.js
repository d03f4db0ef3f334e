// A consumer of kafka-node: node kafka_node_member.js MODULE ZOOKEEPER GROUP TOPIC
//
// Prints a line for each record, and commits every fifth of a second. SIGTERM: it commits, gives its partitions up and
// ends.
'use strict';

const [, , module_, zookeeper, groupId, topic] = process.argv;
const kafka = require(module_);

const client = new kafka.Client(zookeeper, 'kafka-node', { sessionTimeout: 30000 });
const consumer = new kafka.HighLevelConsumer(client, [{ topic }], {
  groupId,
  autoCommitIntervalMs: 200,
  fetchMaxWaitMs: 100,
  rebalanceRetry: { retries: 60, factor: 1, minTimeout: 200, maxTimeout: 200 },
});

consumer.on('message', (message) => console.log(JSON.stringify([message.partition, message.offset])));
consumer.on('error', (error) => console.error('error', error));
process.on('SIGTERM', () => consumer.close(true, () => process.exit(0)));
