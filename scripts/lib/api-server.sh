# A real control plane for the stage `api`, etcd and kube-apiserver, and Multus: built from their Go modules
# once per version and kept outside the checkout (6 minutes of two cores, then nothing). Sourced after setup.sh.

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
    CGO_ENABLED=0 go_program "$API_SERVER_BIN/etcd" "$sources/etcd/go.mod" go.etcd.io/etcd/server/v3 "" || return
    CGO_ENABLED=0 go_program "$API_SERVER_BIN/kube-apiserver" "$sources/kube-apiserver/go.mod" \
        k8s.io/kubernetes/cmd/kube-apiserver "-X k8s.io/component-base/version.gitVersion=$version"
}

# Multus (thin), in $MULTUS, which nodes are moved from and back to (a minute of two cores, once).
need_multus() {
    local go_mod=tests/api/multus/go.mod
    MULTUS=$CACHE/multus-$(sed -n 's/^require .* //p' "$go_mod")/multus
    export MULTUS
    [ -x "$MULTUS" ] && return
    need_go
    CGO_ENABLED=0 go_program "$MULTUS" "$go_mod" gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus ""
}

# go_program OUT GO_MOD PACKAGE LDFLAGS: builds a program into its place, once. In a copy of the module,
# since -mod=mod writes go.sum beside it; `go install PACKAGE@VERSION` is refused for modules that carry
# replace directives.
go_program() {
    [ -x "$1" ] && return
    say "building $(basename "$1") (once per machine)"
    local module
    module=$(dirname "$1")/build-$(basename "$1")
    mkdir -p "$module"
    cp "$2" "$module/go.mod"
    # A name of its own until it is whole: an interrupted build is no build.
    (cd "$module" && GOFLAGS='-trimpath -buildvcs=false -mod=mod' go build -ldflags "-s -w $4" -o program "$3") &&
        mv "$module/program" "$1" && rm -rf "$module"
}
