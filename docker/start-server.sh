#!/bin/sh
# Start ZooKeeper in the local image, configured by the official image's variables. Shell built-ins only: the
# image has no other commands besides a Java runtime.
set -eu

config=/conf/zoo.cfg
{
    echo "dataDir=/data"
    echo "dataLogDir=${ZOO_DATA_LOG_DIR:-/datalog}"
    echo "clientPort=2181"
    echo "tickTime=${ZOO_TICK_TIME:-2000}"
    echo "initLimit=${ZOO_INIT_LIMIT:-5}"
    echo "syncLimit=${ZOO_SYNC_LIMIT:-2}"
    echo "maxClientCnxns=${ZOO_MAX_CLIENT_CNXNS:-60}"
    echo "admin.enableServer=${ZOO_ADMINSERVER_ENABLED:-true}"
    echo "4lw.commands.whitelist=${ZOO_4LW_COMMANDS_WHITELIST:-srvr}"
    set -f # do not expand a *
    for line in ${ZOO_CFG_EXTRA:-}; do
        echo "$line"
    done
    # server.N=host:quorum:election;client: drop the client port, which clientPort sets for every server.
    for server in ${ZOO_SERVERS:-}; do
        echo "${server%%;*}"
    done
} > "$config"
echo "${ZOO_MY_ID:-1}" > /data/myid

# SERVER_JVMFLAGS is several words.
# shellcheck disable=SC2086
exec /java/bin/java "-Xmx${ZK_SERVER_HEAP:-128}m" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData \
    @/logging.options ${SERVER_JVMFLAGS:-} -cp "/jars/*" org.apache.zookeeper.server.quorum.QuorumPeerMain "$config"
