# A PostgreSQL with two instances of the service, and what its users and adapters do; read by the test of it.
# shellcheck shell=bash disable=SC2034
mapfile -t ports < <(free_ports 4)
adapters=(validation dns pullsecret hypershift)
start_postgresql() {
    # Without a process between: runuser would not hand signals on.
    start postgresql setpriv --reuid postgres --regid postgres --init-groups --pdeathsig KILL -- \
        postgres -D "$data" -c listen_addresses= -c unix_socket_directories="$FOLDER"
    until_so 'PostgreSQL answers' runuser -u postgres -- psql -d postgres -c 'SELECT 1'
}
stop_postgresql() { stop postgresql "${1:-INT}"; }
# start_instance NUMBER: the service, on ports of its own.
start_instance() {
    local at=$(($1 * 2 - 2))
    HYPERFLEET_HEALTH_SHUTDOWN_DELAY=0s start "hyperfleet-$1" hyperfleet-api serve --config "$FOLDER/config.yaml" --server-jwt-enabled=false \
        --server-port "${ports[at]}" --health-port "${ports[at + 1]}" --metrics-port 0
}
# The service of the machine where commands are run is the first instance; the second is the one that nobody stops.
start_hyperfleet() { start_instance 1; }
stop_hyperfleet() { stop hyperfleet-1; }

# Clusters and node pools as they are built in, and a kind that clusters refer to.
cat >"$FOLDER/config.yaml" <<'YAML'
entities:
  - {kind: Cluster, plural: clusters, required_adapters: [validation, dns, pullsecret, hypershift], references: [{ref_type: zone, target_kind: Zone}]}
  - {kind: NodePool, plural: nodepools, parent_kind: Cluster, on_parent_delete: cascade, required_adapters: [validation, hypershift]}
  - {kind: Zone, plural: zones}
YAML

variables() { # The page's, and what is different here.
    page backup variables
    page restore variables
    data=$FOLDER/data backups=$FOLDER/backups
    archive=$backups/wal bases=$backups/base work=$FOLDER/work log=$FOLDER/hyperfleet-1.log
    export DATABASE_URL="postgres://hyperfleet@localhost/hyperfleet?host=$FOLDER"
    restored="postgres://hyperfleet@localhost/hyperfleet_restored?host=$FOLDER"
    api=http://127.0.0.1:${ports[0]}/api/hyperfleet/v1 health=http://127.0.0.1:${ports[1]}
    second=http://127.0.0.1:${ports[2]}/api/hyperfleet/v1
}

status() { curl -s -o "$FOLDER/answer" -w '%{http_code}' -X "$1" -H 'Content-Type: application/json' ${3:+-d "$3"} "$2"; }
call() { # call METHOD PATH WANTED [BODY]: leaves the answer in $FOLDER/answer
    local found
    # Connections to a server that has ended are noticed by the requests that use them: 503, try again.
    for _ in $(seq 20); do
        found=$(status "$1" "$api$2" "${4-}") || true
        [ "$found" = 503 ] || break
        sleep 0.1
    done
    [ "$found" = "$3" ] || fail "$1 $2 is answered $found instead of $3: $(cat "$FOLDER/answer")"
}
answer() { jq -r "$1" "$FOLDER/answer"; }
create() { call POST /clusters 201 "{\"kind\": \"Cluster\", \"name\": \"$1\", \"spec\": {\"size\": 1}}"; answer .id; }
is_answered() { [ "$(status GET "$1/clusters")" = "$2" ]; }
names() { curl -s "$api/clusters?order=name&size=100" | jq -r '[.items[].name] | join(" ")'; }
report() { # report ID ADAPTER GENERATION WANTED [MORE-CONDITIONS]
    local conditions='[{"type": "Available", "status": "True"}, {"type": "Applied", "status": "True"}, {"type": "Health", "status": "True"}'${5-}']'
    call PUT "/clusters/$1/statuses" "$4" "{\"adapter\": \"$2\", \"observed_generation\": $3, \"observed_time\": \"$(date -u +%FT%T.%NZ)\", \"conditions\": $conditions}"
}
report_all() { # report_all ID GENERATION WANTED
    local adapter
    for adapter in "${adapters[@]}"; do report "$1" "$adapter" "$2" "$3"; done
}
reconciled() { curl -s "$api/clusters/$1" | jq -r '.status.conditions[] | select(.type == "Reconciled") | "\(.status) at \(.observed_generation)"'; }
