import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.FileReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.modern.TopicIds;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.image.TopicsImage;

/**
 * Kafka's assignor classes, timed inside one JVM. Compiled at start by Janino, which parses generics but ignores them
 * (hence the casts). assign_hosts.py sends lines
 *
 *     assignor TAB group file TAB answer file TAB (runs at most TAB seconds)*
 *
 * and gets JSON lines: "assigning" before each run, "run" after it, "done" or "failed" at the end. A call is repeated
 * as the pairs say: up to that many runs as long as one takes less than that many CPU seconds. The first run's answer
 * goes to the file; those of the others are compared with it.
 *
 * Timed separately: "decode" is ConsumerProtocol.deserializeSubscription of every member into a HashMap, "assign" is
 * assign() alone, "encode" is ConsumerProtocol.serializeAssignment for every member. CPU time is that of this thread
 * and of the serial collector's thread (without /proc, the collections' wall-clock time). Cluster metadata are made
 * before. The KIP-848 assignors read and write no bytes: their specification is made before, and their result is
 * turned into bytes after.
 */
public final class AssignorHost {
    private static PrintStream out;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    private static File collector;

    private String[] topics;
    private int[] sizes;
    private String[] members;
    private byte[][] subscriptions;
    private Cluster cluster;
    private byte[][] first;

    public static void main(String[] arguments) throws Exception {
        out = System.out;
        System.setOut(System.err);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        say("{\"event\": \"ready\", \"java\": \"" + System.getProperty("java.version") + "\"}");
        String line;
        while ((line = lines.readLine()) != null) {
            try {
                new AssignorHost().serve(line.split("\t"));
            } catch (Throwable problem) {
                problem.printStackTrace();
                say("{\"event\": \"failed\", \"error\": \"" + problem.getClass().getSimpleName() + "\"}");
            }
        }
    }

    private static void say(String line) {
        out.println(line);
        out.flush();
    }

    /** CPU time of the collector so far, which waiting for a core does not increase. */
    private static long collectingNanos() {
        try {
            if (collector == null) {
                File[] threads = new File("/proc/self/task").listFiles();
                for (int i = 0; threads != null && i < threads.length; i++) {
                    if (firstLine(new File(threads[i], "comm")).equals("VM Thread")) {
                        collector = new File(threads[i], "schedstat");
                    }
                }
            }
            if (collector != null) {
                return Long.parseLong(firstLine(collector).split(" ")[0]);
            }
        } catch (IOException gone) {
            collector = null;
        }
        long sum = 0;
        for (Iterator i = ManagementFactory.getGarbageCollectorMXBeans().iterator(); i.hasNext();) {
            sum += ((GarbageCollectorMXBean) i.next()).getCollectionTime() * 1000000L;
        }
        return sum;
    }

    private static String firstLine(File file) throws IOException {
        BufferedReader lines = new BufferedReader(new FileReader(file));
        try {
            return lines.readLine();
        } finally {
            lines.close();
        }
    }

    private void serve(String[] fields) throws Exception {
        load(fields[1]);
        Run run;
        int done = 0;
        boolean again = true;
        while (again) {
            boolean isServers = "uniform".equals(fields[0]) || "range".equals(fields[0]);
            run = isServers ? new ServerRun(fields[0]) : (Run) new ClientRun(fields[0]);
            byte[][] answers = run.perform();
            String same = "true";
            if (first == null) {
                first = answers;
                write(fields[2]);
            } else {
                for (int m = 0; m < answers.length; m++) {
                    if (!java.util.Arrays.equals(answers[m], first[m])) {
                        same = "false";
                    }
                }
            }
            say("{\"event\": \"run\", \"same\": " + same + ", " + run.figures() + "}");
            done++;
            again = false;
            for (int i = 3; i + 1 < fields.length; i += 2) {
                again |= done < Integer.parseInt(fields[i]) && run.seconds() < Double.parseDouble(fields[i + 1]);
            }
        }
        say("{\"event\": \"done\"}");
    }

    private void load(String path) throws Exception {
        DataInputStream in = new DataInputStream(new BufferedInputStream(new FileInputStream(path), 1 << 20));
        topics = new String[in.readInt()];
        sizes = new int[topics.length];
        for (int t = 0; t < topics.length; t++) {
            topics[t] = in.readUTF();
            sizes[t] = in.readInt();
        }
        members = new String[in.readInt()];
        subscriptions = new byte[members.length][];
        for (int m = 0; m < members.length; m++) {
            members[m] = in.readUTF();
            subscriptions[m] = new byte[in.readInt()];
            in.readFully(subscriptions[m]);
        }
        in.close();
    }

    /** The cluster's metadata, which a leader has. */
    private Cluster cluster() {
        Node node = new Node(1, "h", 9092);
        Node[] nodes = new Node[] {node};
        List infos = new ArrayList();
        for (int t = 0; t < topics.length; t++) {
            for (int p = 0; p < sizes[t]; p++) {
                infos.add(new PartitionInfo(topics[t], p, node, nodes, nodes));
            }
        }
        return new Cluster("c", Collections.singletonList(node), infos, Collections.emptySet(), Collections.emptySet());
    }

    /** Writes the first run's answer: for each member its id and the bytes. */
    private void write(String path) throws Exception {
        DataOutputStream to = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(path), 1 << 20));
        to.writeInt(members.length);
        for (int m = 0; m < members.length; m++) {
            to.writeUTF(members[m]);
            to.writeInt(first[m].length);
            to.write(first[m]);
        }
        to.close();
    }

    private static byte[] bytes(List partitions) {
        return bytes(ConsumerProtocol.serializeAssignment(new ConsumerPartitionAssignor.Assignment(partitions)));
    }

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] made = new byte[buffer.remaining()];
        buffer.get(made);
        return made;
    }

    /** One call with its figures: wall and CPU seconds at the four borders, and the heap. */
    private abstract class Run {
        private final long[] clock = new long[4];
        private final long[] cpu = new long[4];
        private final long[] collecting = new long[4];
        private long before;
        private long peak;

        abstract void prepare();

        abstract void decode();

        abstract void assign();

        abstract byte[][] encode();

        byte[][] perform() {
            prepare();
            System.gc();
            mark(0);
            decode();
            before = used(false);
            resetPeaks();
            say("{\"event\": \"assigning\"}");
            mark(1);
            assign();
            mark(2);
            peak = used(true);
            byte[][] answers = encode();
            mark(3);
            return answers;
        }

        private void mark(int border) {
            collecting[border] = collectingNanos();
            cpu[border] = THREADS.getCurrentThreadCpuTime();
            clock[border] = System.nanoTime();
        }

        private long used(boolean atPeak) {
            long sum = 0;
            for (Iterator i = ManagementFactory.getMemoryPoolMXBeans().iterator(); i.hasNext();) {
                MemoryPoolMXBean pool = (MemoryPoolMXBean) i.next();
                if (pool.getType() == MemoryType.HEAP) {
                    sum += (atPeak ? pool.getPeakUsage() : pool.getUsage()).getUsed();
                }
            }
            return sum;
        }

        private void resetPeaks() {
            for (Iterator i = ManagementFactory.getMemoryPoolMXBeans().iterator(); i.hasNext();) {
                ((MemoryPoolMXBean) i.next()).resetPeakUsage();
            }
        }

        double seconds() {
            return (cpu[2] - cpu[1]) / 1e9 + (collecting[2] - collecting[1]) / 1e9;
        }

        private String part(String name, int from, int to) {
            double cpuSeconds = (cpu[to] - cpu[from]) / 1e9 + (collecting[to] - collecting[from]) / 1e9;
            return "\"" + name + "\": [" + (clock[to] - clock[from]) / 1e9 + ", " + cpuSeconds + "]";
        }

        String figures() {
            return part("decode", 0, 1) + ", " + part("assign", 1, 2) + ", " + part("encode", 2, 3)
                + ", \"memory_mb\": " + (peak - before) / 1e6;
        }
    }

    private final class ClientRun extends Run {
        private final ConsumerPartitionAssignor assignor;
        private final String name;
        private Map group;
        private Map answer;

        ClientRun(String name) {
            this.name = name;
            if (name.equals("sticky")) {
                assignor = new StickyAssignor();
            } else if (name.equals("cooperative-sticky")) {
                assignor = new CooperativeStickyAssignor();
            } else {
                throw new IllegalArgumentException(name);
            }
        }

        void prepare() {
            if (cluster == null) {
                cluster = cluster();
            }
        }

        void decode() {
            group = new HashMap();
            for (int m = 0; m < members.length; m++) {
                group.put(members[m], ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(subscriptions[m])));
            }
        }

        void assign() {
            answer = assignor.assign(cluster, new ConsumerPartitionAssignor.GroupSubscription(group)).groupAssignment();
        }

        byte[][] encode() {
            byte[][] made = new byte[members.length][];
            for (int m = 0; m < members.length; m++) {
                made[m] = bytes(ConsumerProtocol.serializeAssignment(
                    (ConsumerPartitionAssignor.Assignment) answer.get(members[m])));
            }
            return made;
        }
    }

    /** KIP-848's assignors: `owned` of a subscription is used as the member's target assignment. */
    private final class ServerRun extends Run {
        private GroupSpecImpl group;
        private Sizes described;
        private GroupAssignment answer;
        private final Map names = new HashMap();
        private final ConsumerGroupPartitionAssignor assignor;

        ServerRun(String name) {
            if (name.equals("range")) {
                assignor = new RangeAssignor();
            } else {
                assignor = new UniformAssignor();
            }
        }

        void prepare() {
            Map ids = new HashMap();
            TopicsImage image = TopicsImage.EMPTY;
            described = new Sizes();
            for (int t = 0; t < topics.length; t++) {
                // Random-looking ids, as in a cluster, but the same in each run.
                java.util.Random random = new java.util.Random(t);
                Uuid id = new Uuid(random.nextLong(), random.nextLong());
                ids.put(topics[t], id);
                names.put(id, topics[t]);
                described.sizes.put(id, Integer.valueOf(sizes[t]));
                image = image.including(new TopicImage(topics[t], id, Collections.emptyMap()));
            }
            Map specified = new HashMap();
            Map inverted = new HashMap();
            Set kinds = new HashSet();
            for (int m = 0; m < members.length; m++) {
                ConsumerPartitionAssignor.Subscription subscription =
                    ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(subscriptions[m]));
                Set subscribed = new HashSet(subscription.topics());
                kinds.add(subscribed);
                specified.put(members[m], new MemberSubscriptionAndAssignmentImpl(
                    Optional.empty(), Optional.empty(), new TopicIds(subscribed, image),
                    new Assignment(target(members[m], subscription.ownedPartitions(), ids, inverted))));
            }
            SubscriptionType kind = kinds.size() == 1 ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
            group = new GroupSpecImpl(specified, kind, inverted);
        }

        private Map target(String member, List owned, Map ids, Map inverted) {
            Map made = new HashMap();
            for (Iterator i = owned.iterator(); i.hasNext();) {
                TopicPartition tp = (TopicPartition) i.next();
                Object id = ids.get(tp.topic());
                Integer number = Integer.valueOf(tp.partition());
                if (!made.containsKey(id)) {
                    made.put(id, new HashSet());
                }
                ((Set) made.get(id)).add(number);
                if (!inverted.containsKey(id)) {
                    inverted.put(id, new HashMap());
                }
                ((Map) inverted.get(id)).put(number, member);
            }
            return made;
        }

        void decode() {
        }

        void assign() {
            answer = assignor.assign(group, described);
        }

        byte[][] encode() {
            byte[][] made = new byte[members.length][];
            for (int m = 0; m < members.length; m++) {
                List partitions = new ArrayList();
                MemberAssignment given = (MemberAssignment) answer.members().get(members[m]);
                if (given != null) {
                    for (Iterator i = given.partitions().entrySet().iterator(); i.hasNext();) {
                        Map.Entry entry = (Map.Entry) i.next();
                        String topic = (String) names.get(entry.getKey());
                        for (Iterator j = ((Set) entry.getValue()).iterator(); j.hasNext();) {
                            partitions.add(new TopicPartition(topic, ((Integer) j.next()).intValue()));
                        }
                    }
                }
                made[m] = bytes(partitions);
            }
            return made;
        }
    }

    private static final class Sizes implements SubscribedTopicDescriber {
        final Map sizes = new HashMap();

        public int numPartitions(Uuid topic) {
            Integer size = (Integer) sizes.get(topic);
            return size == null ? -1 : size.intValue();
        }

        public Set racksForPartition(Uuid topic, int partition) {
            return Collections.emptySet();
        }
    }
}
