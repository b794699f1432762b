# What the tests of the image share; to be sourced.
# shellcheck shell=bash

step() { printf '\n\033[1m%s\033[0m\n' "$*"; }
fail() { printf '\n%s: failed: %s\n' "${suite:-image}" "$*" >&2; exit 1; }

# until_true SECONDS WHAT COMMAND…: waits until the command succeeds; fails with what it said last.
until_true() {
    local deadline=$((SECONDS + $1)) what=$2 said
    shift 2
    until said=$("$@" 2>&1); do
        [ "$SECONDS" -lt "$deadline" ] || fail "$what: not in time; last: $said"
        sleep 0.3
    done
}

# address CONTAINER: where it is in its network.
address() { podman inspect --format '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}' "$1" | cut -d ' ' -f 1; }

# exit_code CONTAINER: of one that has ended.
exit_code() { podman inspect --format '{{.State.ExitCode}}' "$1"; }
