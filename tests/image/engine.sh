# Podman with settings and images of its own, in .dev/containers, for tests that make images; to be sourced.
# shellcheck shell=bash
work=$PWD/.dev/containers

missing() { # missing [PROGRAM…]: what keeps containers from running here, if anything
    [ "$(id -u)" = 0 ] || { echo 'containers and their network take root'; return; }
    local program
    for program in aardvark-dns curl debootstrap iptables jq netavark podman python3 runc strip "$@"; do
        [ -n "$(PATH=$PATH:/usr/lib/podman type -p "$program")" ] || { echo "$program is missing: run \`make setup-all\` on Debian or Ubuntu"; return; }
    done
    apt-get download --print-uris base-files >/dev/null 2>&1 || echo 'the lists of Debian packages are missing: apt-get update'
}

settings() { # settings: of the engine for these tests alone; no systemd is needed, and no limit is raised
    mkdir -p "$work/networks"
    cat >"$work/containers.conf" <<CONF
[containers]
default_ulimits = []
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "runc"
[network]
network_backend = "netavark"
network_config_dir = "$work/networks"
CONF
    cat >"$work/storage.conf" <<CONF
[storage]
driver = "overlay"
graphroot = "$work/storage"
runroot = "$work/run"
CONF
}
# Nobody else can use them.
[ "$(id -u)" != 0 ] || settings
export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf CONTAINER_ENGINE=podman
export IMAGE=localhost/hyperfleet:test POSTGRES_IMAGE=localhost/hyperfleet-test-postgres SERVICES_IMAGE=localhost/hyperfleet-test-services

make_image() { # make_image: ours, from the programs that were built for the other tests; sets `why` if it does not run
    local said
    export BASE_IMAGE=localhost/hyperfleet-base
    scripts/base-image "$BASE_IMAGE"
    cargo build --quiet --bin hyperfleet-api --bin fleetd --bin fleetctl
    scripts/image "${CARGO_TARGET_DIR:-target}/debug"
    # The ones of earlier runs.
    podman image prune --force >/dev/null
    said=$(podman run --rm --network none --no-healthcheck "$IMAGE" version 2>&1) || why="no container runs here: $said"
}
