# shellcheck shell=bash
# Machines for demos, sourced by examples/demo-fleet and examples/demo-fleet-api. They are systemd-nspawn containers in a network
# of their own, with one etcd; nothing outside reaches them.
#
# A demo sets `demo` (its own path), `programs` (those that it runs), `machines` (names m1 to m9), `speaker` (the machine that
# fleetctl asks), then calls check_needs, build, begin_demo and boot_machines.

# The shorter the lease of a machine, the sooner its units move. The default of fleetd is 30 s.
agent_ttl_seconds=5
# For each step: machines may be busy with other work.
patience_seconds=90
# Columns within the box of a machine.
box_width=22

# path_of PROGRAM: what its variable says (FLEETD, HYPERFLEET_API), or where cargo puts it.
path_of() {
    local variable=${1^^}
    variable=${variable//-/_}
    echo "${!variable:-target/debug/$1}"
}
# is_given PROGRAM: whether its variable names it, so that it need not be built.
is_given() {
    local variable=${1^^}
    variable=${variable//-/_}
    [ -n "${!variable-}" ]
}
fleetd=$(path_of fleetd) fleetctl=$(path_of fleetctl)

# ---- What is printed ------------------------------------------------------------------------

bold='' dim='' green='' yellow='' red='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' yellow=$'\e[33m' red=$'\e[31m' plain=$'\e[0m'
fi
if [ "$(locale charmap 2>/dev/null)" = UTF-8 ]; then
    corners=(┌ ┐ └ ┘) level=─ upright=│ dead_level=╌ dead_upright=╎ runs=● waits=○
else
    corners=(+ + + +) level=- upright='|' dead_level=. dead_upright=: runs='*' waits=o
fi

step() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
say() { printf '  %s\n' "$*"; }
fail() { printf '\n%sFAILED: %s%s\n' "$red" "$*" "$plain" >&2; show_logs >&2; exit 1; }
cannot() { printf 'The demo cannot run here: %s\n' "$*" >&2; exit 3; }

# The last lines of each server's log, after a failure.
show_logs() {
    local name
    for name in "${!pid[@]}"; do
        printf -- '--- %s\n' "$name"
        tail -n 5 "$folder/$name.said"
        [ -z "${init[$name]-}" ] || on "$name" journalctl --unit fleetd --no-pager --lines 10 || true
    done
}

# ---- What it needs --------------------------------------------------------------------------

check_needs() {
    local missing=() pair program flags variables
    flags=$(printf ' --bin %s' "${programs[@]}")
    variables=$(for program in "${programs[@]}"; do
        variable=${program^^} && printf ' %s=target/debug/%s' "${variable//-/_}" "$program"
    done)
    [ "$(id -u)" = 0 ] || missing+=("root, to boot machines. Build the programs, then run them as root:
      cargo build$flags
      sudo$variables $demo")
    for pair in setpriv:util-linux nsenter:util-linux ip:iproute2 jq:jq curl:curl systemd-nspawn:systemd-container; do
        command -v "${pair%:*}" >/dev/null || missing+=("${pair%:*}: apt-get install ${pair#*:}")
    done
    [ -x /lib/systemd/systemd ] || missing+=("systemd: apt-get install systemd")
    [ -e /usr/lib/systemd/system/dbus.socket ] || missing+=("D-Bus: apt-get install dbus")
    etcd=$(scripts/find-etcd 2>/dev/null) ||
        missing+=("etcd: apt-get install etcd-server, or export HYPERFLEET_ETCD=/folder/etcd of a release")
    for program in "${programs[@]}"; do
        if is_given "$program"; then
            [ -x "$(path_of "$program")" ] || missing+=("$(path_of "$program"): there is no such program")
        elif ! command -v cargo >/dev/null; then
            missing+=("Rust: see https://rustup.rs")
            break
        fi
    done
    [ ${#missing[@]} = 0 ] || cannot "something is missing.$(printf '\n  - %s' "${missing[@]}")"
}

build() {
    local missing=() program
    for program in "${programs[@]}"; do
        is_given "$program" || missing+=(--bin "$program")
    done
    [ ${#missing[@]} = 0 ] || cargo build --quiet "${missing[@]}"
}

# ---- Processes ------------------------------------------------------------------------------

# Process of each server, and first process of each machine that runs.
declare -A pid=() init=()
folder=

# begin NAME COMMAND...: a server of its own session, so that Ctrl-C reaches this script alone. It ends with this script, also
# where that is killed.
begin() {
    : >"$folder/$1.said"
    setsid setpriv --pdeathsig TERM -- "${@:2}" >"$folder/$1.said" 2>&1 &
    pid[$1]=$!
}

# end_servers NAME...: ends servers at the same time. Fails if one leaves a control group behind.
end_servers() {
    local name root status=0
    for name in "$@"; do kill -TERM "${pid[$name]}" 2>/dev/null || true; done
    for name in "$@"; do
        wait "${pid[$name]}" 2>/dev/null || true
        for root in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
            [ ! -e "$root/fleet-test-${pid[$name]}" ] || status=1
        done
        unset "pid[$name]" "init[$name]"
    done
    return $status
}

clean_up() {
    local status=$? name
    trap '' INT TERM HUP
    # The network is needed for as long as servers are in it.
    for name in "m[0-9]" adapter api etcd network; do
        # shellcheck disable=SC2046 # Names have no blanks.
        end_servers $(printf '%s\n' "${!pid[@]}" | grep -x "$name" || true) ||
            { echo "A control group of the demo is left in /sys/fs/cgroup." >&2; status=1; }
    done
    rm -rf "$folder"
    exit "$status"
}

# read_line NAME WORD: waits until a server prints a line that begins with the word; the rest of the line goes to `found`.
read_line() {
    local status=0 since=$SECONDS
    while [ $((SECONDS - since)) -lt "$patience_seconds" ]; do
        found=$(sed -n "s/^$2 //p" "$folder/$1.said")
        [ -z "$found" ] || return 0
        [ -d "/proc/${pid[$1]}" ] || break
        sleep 0.05
    done
    wait "${pid[$1]}" || status=$?
    [ "$status" != 3 ] || cannot "$(sed 's/^a private systemd cannot run here: //' "$folder/$1.said")"
    fail "$1 has not started"
}

# until_true WHAT COMMAND...: polls until the command succeeds.
until_true() {
    local since=$SECONDS
    until "${@:2}"; do
        [ $((SECONDS - since)) -lt "$patience_seconds" ] || fail "$1: not within $patience_seconds s"
        sleep 0.1
    done
}

# ---- Machines -------------------------------------------------------------------------------

network_prefix=10.88.0
declare -A id=() zone=([m1]=a [m2]=b [m3]=c [m4]=d)

# What a machine boots: little, and fleetd.
boot_target='[Unit]
Requires=dbus.socket basic.target
After=dbus.socket basic.target
Wants=fleetd.service
AllowIsolate=yes'

# boot NAME: begins to boot a machine with the service and the socket that are installed on real ones.
boot() {
    local home=$folder/$1 number=${1#m}
    mkdir -p "$home/bin" "$home/units/fleetd.service.d"
    ln "$folder/fleetd" "$home/bin/fleetd"
    cp examples/systemd/fleetd.service examples/systemd/fleetd.socket "$home/units"
    echo "$boot_target" >"$home/units/test.target"
    printf '[Service]\nExecStart=\nExecStart=/opt/fleetd --config /opt/fleet.conf\n' >"$home/units/fleetd.service.d/demo.conf"
    cat >"$home/bin/fleet.conf" <<CONF
etcd_servers = http://$network_prefix.1:2379
metadata = zone=${zone[$1]}
public_ip = $network_prefix.$((10 + number))
agent_ttl = ${agent_ttl_seconds}s
CONF
    id[$1]=$(tr -d - </proc/sys/kernel/random/uuid)
    begin "$1" scripts/private-systemd machine "$home" "$1" "${id[$1]}" "$network" "$network_prefix.$((10 + number))/24"
}

# on NAME COMMAND...: runs a command on a machine.
on() { nsenter -t "${init[$1]}" -m -p -u -i -- "${@:2}" </dev/null; }

is_booted() { [ -S "/proc/${init[$1]}/root/run/fleet.sock" ]; }

leads() {
    curl --silent --unix-socket "/proc/${init[$1]}/root/run/fleet.sock" http://fleet/metrics |
        grep '^fleet_engine_leading.* 1$' >/dev/null
}
are_members() { [ "$(ask list-machines 2>/dev/null | jq length)" = "$1" ]; }
one_leads() {
    local name
    for name in "${!init[@]}"; do ! leads "$name" || return 0; done
    return 1
}

# ---- What the cluster says ------------------------------------------------------------------

# show ARGUMENT...: prints a command line of fleetctl, and runs it.
show() {
    local argument shown=fleetctl
    for argument in "$@"; do shown+=" ${argument#"$PWD/"}"; done
    printf '  %s$ %s%s\n' "$dim" "$shown" "$plain"
    timeout --foreground "$patience_seconds" "$fleetctl" "$@" | expand | sed 's/^/  /' || fail "$shown"
}

ask() { "$fleetctl" "$1" --output json; }

# Units that are active: lines `unit machine-id`, sorted.
active() {
    ask list-units | jq -r '.[] | select(.systemdActiveState == "active") | "\(.name) \(.machineID)"' | sort
}

# are_active PREFIX COUNT MACHINE...: this number of units whose names have the prefix are active on these machines.
are_active() {
    local allowed=() name
    for name in "${@:3}"; do allowed+=(-e " ${id[$name]}\$"); done
    [ "$(active | grep "^$1" | grep -c "${allowed[@]}")" = "$2" ]
}

# ---- The picture ----------------------------------------------------------------------------

# repeat TEXT COUNT
repeat() { local _; for _ in $(seq "$2"); do printf %s "$1"; done; }

# machine_state NAME: the state of a machine, from the list in `members`.
machine_state() {
    local state
    state=$(jq -r --arg id "${id[$1]}" '.[] | select(.id == $id) |
        if .draining then "draining" elif .cordoned then "cordoned" else "ready" end' <<<"$members")
    if [ -n "${init[$1]-}" ]; then echo "${state:-not a member}"
    elif [ -n "$state" ]; then echo "no power"
    else echo "lost"; fi
}

# box_rows NAME: the rows of a machine's box, one `style|left|right` a line.
box_rows() {
    local state style=$green
    state=$(machine_state "$1")
    [ "$state" = ready ] || style=$yellow
    [ -n "${init[$1]-}" ] || style=$red
    printf '%s\n' "$bold|$1|" "$dim|${id[$1]:0:8}|zone=${zone[$1]}" "$style||$state"
    jq -r --arg id "${id[$1]}" --arg runs "$runs" --arg waits "$waits" --arg on "$green" --arg off "$yellow" '
        .[] | select(.machineID == $id) | (.systemdActiveState == "active") as $active
        | "\(if $active then $on else $off end)|\(if $active then $runs else $waits end) \(.name | rtrimstr(".service"))|\(.systemdSubState)"
    ' <<<"$states"
}

# picture: machines as boxes, side by side, and units that no machine runs below. Sets `lines`.
picture() {
    local members states files homeless name row style left right width=$box_width height=0 line flat upright_now
    local -A rows=()
    { members=$(ask list-machines) && states=$(ask list-units) && files=$(ask list-unit-files); } ||
        fail "the state of the cluster cannot be read"
    for name in "${machines[@]}"; do
        rows[$name]=$(box_rows "$name")
        row=$(wc -l <<<"${rows[$name]}")
        [ "$row" -le "$height" ] || height=$row
    done
    lines=()
    for ((row = 0; row <= height + 1; row++)); do
        line=
        for name in "${machines[@]}"; do
            flat=$level upright_now=$upright
            [ -n "${init[$name]-}" ] || flat=$dead_level upright_now=$dead_upright
            if [ $row = 0 ]; then line+="${corners[0]}$(repeat "$flat" $((width + 2)))${corners[1]} "; continue; fi
            if [ "$row" -gt "$height" ]; then line+="${corners[2]}$(repeat "$flat" $((width + 2)))${corners[3]} "; continue; fi
            IFS='|' read -r style left right < <(sed -n "${row}p" <<<"${rows[$name]}") || true
            line+="$upright_now $style$left$(repeat ' ' $((width - ${#left} - ${#right})))$right$plain $upright_now "
        done
        lines+=("  ${line% }")
    done
    homeless=$(jq -r '[.[] | select(.desiredState == "launched" and (.global | not) and .machineID == null) | .name] | join(" ")' <<<"$files")
    [ -z "$homeless" ] || lines+=("  without a machine: $homeless")
}

draw() { local lines; picture; printf '%s\n' "${lines[@]}"; }

microseconds() { echo "${EPOCHREALTIME/[.,]/}"; }

# watch_until COMMAND...: draws the picture each second until the command succeeds. The time since `since` goes to `took`. On a
# terminal the picture stays in its place; elsewhere it is printed again when it has changed.
watch_until() {
    local lines=() drawn='' height=0 drawn_at=0 done=no
    while [ $done = no ]; do
        ! "$@" || done=yes
        took=$((($(microseconds) - since) / 100000))
        took=$((took / 10)).$((took % 10))
        if [ $done = no ] && [ $(($(microseconds) - drawn_at)) -lt 1000000 ]; then sleep 0.1; continue; fi
        drawn_at=$(microseconds)
        picture
        if [ -t 1 ]; then
            [ $height = 0 ] || printf '\e[%dA\e[J' "$height"
            printf '%s\n' "  after $took s" "${lines[@]}"
            height=$((${#lines[@]} + 1))
        elif [ "$drawn" = "${lines[*]}" ]; then
            printf '  after %s s: the same\n' "$took"
        else
            printf '%s\n' "  after $took s" "${lines[@]}"
        fi
        drawn="${lines[*]}"
        [[ $drawn != *"not a member"* ]] || fail "a machine that runs is no member any more"
        [ "${took%.*}" -lt "$patience_seconds" ] || fail "the units have not moved within $patience_seconds s"
    done
}

# ---- Begin ----------------------------------------------------------------------------------

# From now on everything that is started ends with the demo, however that ends.
begin_demo() {
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    folder=$(mktemp -d "${TMPDIR:-/tmp}/hyperfleet-demo.XXXXXX")
    chmod 0755 "$folder"
    began=$SECONDS
}

# Boots the machines, in a network of their own with one etcd.
boot_machines() {
    local fast=() name
    begin network scripts/private-systemd network "$network_prefix.1/24"
    read_line network network
    network=$found
    ! "$etcd" --help 2>&1 | grep -q -e --unsafe-no-fsync || fast=(--unsafe-no-fsync)
    client=http://$network_prefix.1:2379 peer=http://$network_prefix.1:2380
    begin etcd nsenter --target "$network" --net -- "$etcd" --name demo --data-dir "$folder/etcd" --log-outputs stderr \
        "${fast[@]}" --listen-client-urls "$client" --advertise-client-urls "$client" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "demo=$peer"
    cp "$fleetd" "$folder/fleetd"
    chmod 0755 "$folder/fleetd"
    for name in "${machines[@]}"; do boot "$name"; done
    for name in "${machines[@]}"; do
        read_line "$name" init
        init[$name]=$found
        until_true "$name has booted" is_booted "$name"
    done
    export FLEETCTL_ENDPOINT=unix:///proc/${init[$speaker]}/root/run/fleet.sock
    until_true "all machines are members" are_members ${#machines[@]}
}
