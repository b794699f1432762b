# What the tests of packages share; read by them. PACKAGES is the folder of packages, /opt of the machine, and MACHINE its first process.
# shellcheck shell=bash
set -Eeuo pipefail

say() { echo "packages: $*"; }
fail() { echo "packages: FAILED: $*" >&2; exit 1; }
trap 'fail "line $LINENO: $BASH_COMMAND"' ERR
patience_seconds=60
source tests/expectations.sh

on() { # on COMMAND...: runs a command on the machine
    nsenter --target "$MACHINE" --mount --pid --uts --ipc --net -- "$@"
}

apt() { # apt ARGUMENTS...: without questions; a file of settings that was changed is kept
    on env DEBIAN_FRONTEND=noninteractive apt-get --quiet --quiet --yes --no-install-recommends \
        -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold "$@" >"$PACKAGES/said" 2>&1 || { cat "$PACKAGES/said" >&2; fail "apt-get $*"; }
}

sum_of() { on sha256sum "$1" | cut -c 1-16; }
state() { on systemctl show --value --property ActiveState "$1"; }

package() { # package NAME: the version that was built
    find "$PACKAGES" -name "$1_*.deb" ! -name '*+next*'
}

next_version() { # next_version NAME CONFFILE LINE: the package with a higher version and one more line in its settings; prints its name
    local tree=$PACKAGES/tree version
    rm -rf "$tree"
    dpkg-deb --raw-extract "$(package "$1")" "$tree"
    version=$(sed -n 's/^Version: //p' "$tree/DEBIAN/control")+next
    sed -i "s/^Version: .*/Version: $version/" "$tree/DEBIAN/control"
    echo "$3" >>"$tree$2"
    dpkg-deb -Zgzip -z1 --build "$tree" "$PACKAGES/$1+next.deb" >/dev/null
    rm -rf "$tree"
    echo "/opt/$1+next.deb"
}

# What tests of a machine need to be let: starting services at installation, which images of containers forbid.
on rm -f /usr/sbin/policy-rc.d
