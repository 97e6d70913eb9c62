# What a real node consists of, for the stage `node`: kubelet, controller-manager, scheduler and kubectl beside
# the stage `api`'s API server and Helm, containerd, built from their Go modules once per version and kept
# outside the checkout; an image to run; and Debian's runc, which has seccomp. Sourced after setup.sh,
# api-server.sh and image.sh.

# The folder with all programs and images, in $NODE_BIN.
need_node_runtime() {
    need_packages runc=runc
    need_api_server || return
    need_helm || return
    local kube=tests/api/cluster/kube-apiserver/go.mod runtime=tests/node/runtime key version
    key=$(cat "$kube" "$runtime"/{containerd,helm,workload}/go.mod "$runtime"/workload/* scripts/lib/image.sh | sha256sum | cut -c1-16)
    NODE_BIN=$CACHE/node-$key
    export NODE_BIN
    [ -e "$NODE_BIN/workload.tar" ] && return
    need_go
    version=$(sed -n 's/^require k8s.io\/kubernetes v//p' "$kube")
    local base="-X k8s.io/component-base/version" minor
    minor=$(cut -d. -f2 <<<"$version")
    go_programs "$NODE_BIN" "$kube" \
        "$base.gitVersion=v$version $base.gitMajor=${version%%.*} $base.gitMinor=$minor" \
        k8s.io/kubernetes/cmd/{kubelet,kube-controller-manager,kube-scheduler,kubectl} || return
    local containerd=github.com/containerd/containerd/v2
    version=$(sed -n "s|^require $containerd v||p" "$runtime/containerd/go.mod")
    go_programs "$NODE_BIN" "$runtime/containerd/go.mod" "-X $containerd/version.Version=$version" \
        "$containerd"/cmd/{containerd,containerd-shim-runc-v2,ctr} || return
    say "building the tests' workload"
    (cd "$runtime/workload" && go_quickly build -ldflags '-s -w' -o "$NODE_BIN/workload" .) &&
        pack_image "$NODE_BIN/.workload.tar" jackfield.test/workload:1 workload "$NODE_BIN/layout" "$(go env GOARCH)=$NODE_BIN/workload" &&
        mv "$NODE_BIN/.workload.tar" "$NODE_BIN/workload.tar"
}

# A DRA driver for tests that have claims, in $DRA_DRIVER.
need_dra_driver() {
    local source=tests/node/runtime/dra-driver dir
    dir=$CACHE/dra-driver-$(cat "$source"/* | sha256sum | cut -c1-16)
    DRA_DRIVER=$dir/dra-driver
    export DRA_DRIVER
    [ -x "$DRA_DRIVER" ] && return
    say "building the tests' DRA driver"
    mkdir -p "$dir/build"
    cp "$source"/* "$dir/build/"
    (cd "$dir/build" && go_quickly build -ldflags '-s -w' -o program .) &&
        mv "$dir/build/program" "$DRA_DRIVER" && rm -rf "$dir/build"
}
