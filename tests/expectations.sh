# Expectations of tests in shell; to be sourced. The suite defines `say` and `fail`.
# shellcheck shell=bash

expect() { # expect WHAT WANTED FOUND
    [ "$2" = "$3" ] || fail "$1: expected '$2', found '$3'"
    say "$1: ${2:-nothing}"
}

until_so() { # until_so WHAT COMMAND...: runs the command until it succeeds, five times a second, for $patience_seconds
    local what=$1
    shift
    for _ in $(seq $((patience_seconds * 5))); do
        if "$@" >/dev/null 2>&1; then say "$what"; return; fi
        sleep 0.2
    done
    fail "still not: $what"
}
