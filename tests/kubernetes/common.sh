# What the parts of the test on Kubernetes share; to be sourced.
# shellcheck shell=bash
suite=kubernetes
. tests/image/common.sh
export PATH=$PWD/.dev/kubernetes/bin:$PWD/.dev/helm:/usr/sbin:/sbin:$PATH
namespace=hyperfleet
release=hyperfleet-api
values=(--values tests/kubernetes/values.yaml)

say() { echo "  $*"; }

# helm in the name of the account with few rights; what it says is printed if it fails, and kept.
as_account() { helm --namespace "$namespace" --kube-token "$TOKEN" "$@" >"$FOLDER/helm.out" 2>&1; }
deploy() { # deploy WHAT HELM-ARGUMENT…: waits until helm is done, and says how long that took
    local what=$1 since=$SECONDS
    shift
    as_account "$@" || { cat "$FOLDER/helm.out"; pods; fail "$what"; }
    ! grep 'PodSecurity' "$FOLDER/helm.out" || fail "$what: pods do not meet the standard of the namespace"
    say "$what: $((SECONDS - since)) s"
}
refused() { # refused WHAT EXPECTED HELM-ARGUMENT…: helm must fail, and say this
    local what=$1 expected=$2
    shift 2
    ! as_account "$@" || fail "$what: helm succeeds"
    grep --quiet "$expected" "$FOLDER/helm.out" || { cat "$FOLDER/helm.out"; fail "$what: helm does not say '$expected'"; }
    say "$what: helm says: $(grep "$expected" "$FOLDER/helm.out" | tail -n 1)"
}

inside() { kubectl --namespace "$namespace" "$@"; }
pods() { # pods: their state and what they said last, where something failed
    inside get pods,events >&2 || true
    inside logs --all-containers --prefix --tail 10 --selector "app.kubernetes.io/instance=$release" >&2 || true
}
base() { echo "http://$(inside get service hyperfleet-api --output jsonpath='{.spec.clusterIP}'):8000"; }
demo() { # demo WHEN
    BASE=$(base) examples/demo >"$FOLDER/demo" || { tail "$FOLDER/demo"; pods; fail "the demo fails $1"; }
    say "the demo passes $1"
}

objects() { # objects: everything in the namespace, but for what says what happened to it
    local kinds
    kinds=$(kubectl api-resources --namespaced --verbs=list,delete --output name | grep -v '^events' | paste -s -d ,)
    inside get "$kinds" --output name 2>"$FOLDER/objects.err" | sort
}
nothing_left() { diff <(objects) "$1"; }
