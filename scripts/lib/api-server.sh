# A real control plane for the stage `api`: etcd and kube-apiserver, built from their Go modules once
# per version and kept outside the checkout (5 minutes of two cores, then nothing). Sourced after setup.sh.

# The folder with both binaries, in $API_SERVER_BIN. The versions are those of the go.mod files below
# tests/api/cluster, which are the key of the cache.
need_api_server() {
    local sources=tests/api/cluster key version
    key=$(cat "$sources"/*/go.mod | sha256sum | cut -c1-16)
    API_SERVER_BIN=$CACHE/api-server-$key
    export API_SERVER_BIN
    [ -x "$API_SERVER_BIN/etcd" ] && [ -x "$API_SERVER_BIN/kube-apiserver" ] && return
    need_go
    version=$(sed -n 's/^require k8s.io\/kubernetes //p' "$sources/kube-apiserver/go.mod")
    build_from_module etcd go.etcd.io/etcd/server/v3 "" || return
    build_from_module kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver \
        "-X k8s.io/component-base/version.gitVersion=$version"
}

# build_from_module NAME PACKAGE LDFLAGS: in a copy of the module, since -mod=mod writes go.sum beside it;
# `go install PACKAGE@VERSION` is refused for modules that carry replace directives.
build_from_module() {
    [ -x "$API_SERVER_BIN/$1" ] && return
    say "building $1 (once per machine)"
    local module=$API_SERVER_BIN/build-$1
    mkdir -p "$module"
    cp "tests/api/cluster/$1/go.mod" "$module/"
    # A name of its own until it is whole: an interrupted build is no build.
    (cd "$module" && CGO_ENABLED=0 GOFLAGS='-trimpath -buildvcs=false -mod=mod' \
        nice -n 10 go build -ldflags "-s -w $3" -o "../.$1" "$2") &&
        mv "$API_SERVER_BIN/.$1" "$API_SERVER_BIN/$1" && rm -rf "$module"
}
