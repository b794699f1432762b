# What the tests of operations share; read by them. FOLDER is theirs, PROGRAMS has the programs under test.
# shellcheck shell=bash
set -Eeuo pipefail
source tests/operations/block.sh
export PATH=$PROGRAMS:$POSTGRES_PROGRAMS:${ETCD_PROGRAM%/*}:$PATH
export PGHOST=$FOLDER

step() { printf '\n\033[1m%s\033[0m\n' "$*"; }
# The output of the page's commands goes elsewhere, that of this test does not.
exec 3>&1 4>&2
say() { echo "operations: $*" >&3; }
fail() {
    trap - ERR
    [ ! -e "$FOLDER/said" ] || cat "$FOLDER/said" >&4
    printf '\noperations: FAILED: %s\n' "$*" >&4
    exit 1
}
trap 'fail "${BASH_SOURCE[0]##*/} line $LINENO: $BASH_COMMAND"' ERR
patience_seconds=30
source tests/expectations.sh

# page PAGE NAME [FROM TO]: runs these commands here, so that variables are as in the terminal of who types them, with one
# text in place of another.
page() {
    local commands
    commands=$(block "$1" "$2")
    [ -n "$commands" ] || fail "docs/operations/$1.md has no commands named $2"
    echo "$1 $2" >>"$FOLDER/ran"
    say "docs/operations/$1.md: $2"
    # Not in a list with `||`, where bash lets commands fail.
    eval "${commands//"${3:-$commands}"/"${4:-$commands}"}" >"$FOLDER/said" 2>&1
}

# Free ports, below those that the system gives to clients.
free_ports() { # free_ports COUNT
    local port=$((12000 + RANDOM % 17000)) count=0
    while [ "$count" -lt "$1" ]; do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; count=$((count + 1)); }
        port=$((port + 1))
    done
}

start() { # start NAME COMMAND...: a server that ends with this test
    local name=$1
    shift
    setpriv --pdeathsig KILL -- "$@" >>"$FOLDER/$name.log" 2>&1 &
    echo $! >"$FOLDER/$name.pid"
}

stop() { # stop NAME [SIGNAL]
    local pid
    [ -e "$FOLDER/$1.pid" ] || return 0
    pid=$(cat "$FOLDER/$1.pid")
    kill "-${2:-TERM}" "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    rm "$FOLDER/$1.pid"
}

# Stands in for the service manager, in whose place the test starts and stops its own servers.
systemctl() { # systemctl VERB [--no-block] SERVICE
    local verb=$1 service=${*: -1}
    case $verb in
        stop | restart) "stop_${service%%[@-]*}" ;;
    esac
    case $verb in
        start | restart) "start_${service%%[@-]*}" ;;
    esac
}
