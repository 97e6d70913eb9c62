# A real control plane for the stage `api`, etcd and kube-apiserver, Multus, kustomize, Helm and a part of
# Prometheus: built from their Go modules once per version and kept outside the checkout (8 minutes of two
# cores, then nothing). Sourced after setup.sh.

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
    go_program "$API_SERVER_BIN/etcd" "$sources/etcd/go.mod" go.etcd.io/etcd/server/v3 || return
    go_programs "$API_SERVER_BIN" "$sources/kube-apiserver/go.mod" \
        "-X k8s.io/component-base/version.gitVersion=$version" k8s.io/kubernetes/cmd/kube-apiserver
}

# Multus (thin), in $MULTUS, which nodes are moved from and back to (a minute of two cores, once). Beside it
# are its plugin passthru and its module's examples and end-to-end tests.
need_multus() {
    local go_mod=tests/api/multus/go.mod module version dir source
    read -r _ module version < <(grep '^require ' "$go_mod")
    dir=$CACHE/multus-$version
    MULTUS=$dir/multus
    export MULTUS
    [ -x "$MULTUS" ] && [ -x "$dir/passthru" ] && [ -d "$dir/e2e" ] && return
    need_go
    go_program "$MULTUS" "$go_mod" "$module/cmd/multus" || return
    go_program "$dir/passthru" "$go_mod" "$module/cmd/passthru-cni" || return
    source=$(go mod download -json "$module@$version" | jq -r .Dir) || return
    cp -r --no-preserve=mode "$source/examples" "$source/e2e" "$dir/"
}

# Thick Multus: its daemon and the plugin that asks it, in the folder $THICK_MULTUS (seconds after Multus, once).
need_thick_multus() {
    local go_mod=tests/api/multus/go.mod module version
    read -r _ module version < <(grep '^require ' "$go_mod")
    THICK_MULTUS=$CACHE/multus-$version/thick
    export THICK_MULTUS
    [ -x "$THICK_MULTUS/multus-daemon" ] && [ -x "$THICK_MULTUS/multus-shim" ] && return
    need_go
    go_programs "$THICK_MULTUS" "$go_mod" "" "$module/cmd/multus-daemon" "$module/cmd/multus-shim"
}

# kustomize, in $KUSTOMIZE, with which administrators rename what is in deploy/ (seconds, once).
need_kustomize() {
    local go_mod=tests/api/kustomize/go.mod package=sigs.k8s.io/kustomize/kustomize/v5
    KUSTOMIZE=$CACHE/kustomize-$(sed -n 's/^require .* //p' "$go_mod")/kustomize
    export KUSTOMIZE
    [ -x "$KUSTOMIZE" ] && return
    need_go
    go_program "$KUSTOMIZE" "$go_mod" "$package"
}

# Helm, in $HELM (a minute of two cores, once).
need_helm() {
    local go_mod=tests/node/runtime/helm/go.mod
    HELM=$CACHE/helm-$(sed -n 's/^require helm.* //p' "$go_mod")/helm
    export HELM
    [ -x "$HELM" ] && return
    need_go
    go_program "$HELM" "$go_mod" helm.sh/helm/v3/cmd/helm
}

# The part of Prometheus that reads pages and rules and evaluates them, as a program of the tests' own, in
# $PROMETHEUS_CHECK (half a minute of two cores, once). promtool checks rules with the same packages, takes
# four times as long to build, for the clients of every cloud, and evaluates nothing on a page.
need_prometheus_check() {
    local source=tests/api/prometheus dir
    dir=$CACHE/prometheus-check-$(cat "$source"/* | sha256sum | cut -c1-16)
    PROMETHEUS_CHECK=$dir/prometheus-check
    export PROMETHEUS_CHECK
    [ -x "$PROMETHEUS_CHECK" ] && return
    need_go
    say "building the tests' part of Prometheus (once per machine)"
    mkdir -p "$dir/build"
    cp "$source"/* "$dir/build/"
    (cd "$dir/build" && go_quickly build -ldflags '-s -w' -o program .) &&
        mv "$dir/build/program" "$PROMETHEUS_CHECK" && rm -rf "$dir/build"
}

# go_programs DIR GO_MOD LDFLAGS PACKAGE …: builds programs of one module into DIR, once, each under the
# last part of its package's name. In a copy of the module, since -mod=mod writes go.sum beside it;
# `go install PACKAGE@VERSION` is refused for modules that carry replace directives.
go_programs() {
    local dir=$1 go_mod=$2 ldflags=$3 missing=() package
    shift 3
    for package in "$@"; do
        [ -x "$dir/${package##*/}" ] || missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] && return
    say "building ${missing[*]##*/} (once per machine)"
    local module=$dir/build-${missing[0]##*/}
    mkdir -p "$module/programs"
    cp "$go_mod" "$module/go.mod"
    # Elsewhere until they are whole: an interrupted build is no build.
    (cd "$module" && go_quickly build -ldflags "-s -w $ldflags" -o programs/ "${missing[@]}") &&
        mv "$module"/programs/* "$dir/" && rm -rf "$module"
}

# go_program OUT GO_MOD PACKAGE: likewise one, whatever its package is called.
go_program() {
    [ -x "$1" ] && return
    local dir
    dir=$(dirname "$1")
    go_programs "$dir/.new" "$2" "" "$3" && mv "$dir/.new"/* "$1" && rmdir "$dir/.new"
}
