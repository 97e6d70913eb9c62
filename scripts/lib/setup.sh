# What the scripts need on a fresh Debian machine, installed once and kept outside the checkout.
# Sourced, not run.

CACHE=${JACKFIELD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/jackfield}
CNI_PLUGINS_VERSION=v1.9.1
CNITOOL_VERSION=v1.3.1
CARGO_DENY_VERSION=0.20.2
# The commit of the previous release, which nodes are upgraded from: raise it with each release.
PREVIOUS_RELEASE=33c5106e7462a9ebe4aac17ed46c7b4eaa190d6c

# Tests and demo have one build of everything between them: static as what users install, with
# machines of all kinds to test on and the names of devices.
TARGET=$(uname -m)-unknown-linux-musl
HARDWARE=device-info/fixtures,device-info/pci-names
FAST=(--locked --workspace --features "$HARDWARE" --profile fast --target "$TARGET")
JACKFIELD_FAST=${CARGO_TARGET_DIR:-target}/$TARGET/fast/jackfield

say() { echo "== $*" >&2; }
fail() { echo "$(basename "$0"): $*" >&2; exit 1; }

need_root() {
    [ "$(id -u)" = 0 ] || fail "network namespaces need root; run it as root, or with sudo -E"
}

# need_packages COMMAND=PACKAGE …: installs the packages whose commands are missing.
need_packages() {
    local missing=() pair
    for pair in "$@"; do
        command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
    done
    [ ${#missing[@]} = 0 ] && return
    command -v apt-get >/dev/null || fail "install these packages by hand: ${missing[*]}"
    need_root
    say "installing ${missing[*]}"
    mkdir -p "$CACHE"
    # One at a time: apt-get does not wait for another.
    (
        flock 9
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
    ) 9>"$CACHE/.installing"
}

# The toolchain that rust-toolchain.toml names, with its targets.
need_rust() {
    command -v cargo >/dev/null || fail "Rust is missing: install rustup (https://rustup.rs), then run this again"
    local channel
    channel=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
    keep_rust "$CACHE/rust-$channel"
    command -v rustup >/dev/null || return 0
    if ! rustup component list --toolchain "$channel" --installed 2>/dev/null | grep -q '^clippy' ||
        [ "$(rustup target list --toolchain "$channel" --installed 2>/dev/null | grep -c musl)" -lt 2 ]; then
        say "installing Rust $channel"
        rustup toolchain install "$channel" --profile minimal --component clippy,rustfmt \
            --target x86_64-unknown-linux-musl,aarch64-unknown-linux-musl >&2
    fi
}

# keep_rust DIR: what cargo makes of the crates on its way to a program lies in DIR, so that a fresh
# checkout builds what is its own. It serves one checkout at a time: another keeps its own meanwhile.
keep_rust() {
    [ -z "${CARGO_TARGET_DIR:-}${CARGO_BUILD_BUILD_DIR:-}" ] || return 0
    mkdir -p "$1"
    exec {rust_in_use}>"$1/.in-use"
    flock --nonblock "$rust_in_use" || return 0
    export CARGO_BUILD_BUILD_DIR=$1
    [ "$(cat "$1/.checkout" 2>/dev/null)" != "$PWD" ] || return 0
    # Cargo tells sources by their age, not by where they are: for it another checkout's programs,
    # which know that one's path, could be this one's.
    local package
    for package in jackfield device-info hw-tests jackfield-bench; do
        find "$1" -type d -path "*/.fingerprint/$package-*" -prune -exec rm -rf {} +
    done
    echo "$PWD" >"$1/.checkout"
}

# Checks licences and sources of all crates; in $CARGO_DENY (a minute of two cores, once per version).
# Unoptimised, since it runs for a second.
need_cargo_deny() {
    local dir=$CACHE/cargo-deny-$CARGO_DENY_VERSION
    CARGO_DENY=$dir/bin/cargo-deny
    [ -x "$CARGO_DENY" ] && return
    say "building cargo-deny $CARGO_DENY_VERSION"
    # In a directory of its own: cargo locks the one that it builds in.
    env -u CARGO_BUILD_BUILD_DIR CARGO_TARGET_DIR="$dir/build" CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
        CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
        cargo install --quiet --locked --no-default-features --root "$dir" "cargo-deny@$CARGO_DENY_VERSION" &&
        rm -rf "$dir/build"
}

# The binary of the previous release, in $JACKFIELD_PREVIOUS (two minutes of two cores, once per release).
# Where the clone lacks its commit, the tests that need it do nothing; with --require that is a failure.
need_previous_release() {
    local dir=$CACHE/previous-$PREVIOUS_RELEASE
    unset JACKFIELD_PREVIOUS
    if ! [ -x "$dir/jackfield" ]; then
        if ! git cat-file -e "$PREVIOUS_RELEASE^{commit}" 2>/dev/null; then
            say "the previous release is missing: this clone has no commit $PREVIOUS_RELEASE; run git fetch --unshallow"
            [ "${require:-no}" = no ]
            return
        fi
        say "building the previous release, commit $PREVIOUS_RELEASE"
        rm -rf "$dir"
        mkdir -p "$dir/source"
        git archive "$PREVIOUS_RELEASE" | tar -x -C "$dir/source" || return
        # In a directory of its own: cargo would take its programs for this checkout's.
        (cd "$dir/source" && env -u CARGO_BUILD_BUILD_DIR CARGO_TARGET_DIR="$dir/build" \
            CARGO_PROFILE_FAST_DEBUG=false cargo build --quiet --locked --profile fast --target "$TARGET" --bin jackfield) &&
            mv "$dir/build/$TARGET/fast/jackfield" "$dir/jackfield" &&
            rm -rf "$dir/build" "$dir/source" || return
    fi
    export JACKFIELD_PREVIOUS=$dir/jackfield
}

# The C compiler for static programs of this machine, which the cryptography of TLS is built with.
need_c_compiler() {
    need_packages musl-gcc=musl-tools
}

# The same for both architectures.
need_cross_compilers() {
    need_packages musl-gcc=musl-tools aarch64-linux-gnu-gcc=gcc-aarch64-linux-gnu
    [ -e /usr/aarch64-linux-gnu/include/string.h ] && return
    need_packages /usr/aarch64-linux-gnu/include/string.h=libc6-dev-arm64-cross
}

need_go() {
    command -v go >/dev/null || fail "Go is missing: install Go 1.24 or newer (https://go.dev/dl), then run this again"
    local version
    version=$(go env GOVERSION | sed 's/^go//')
    case "$version" in
        1.2[4-9]* | 1.[3-9][0-9]*) ;;
        *) fail "Go $version is too old for the CNI plugins $CNI_PLUGINS_VERSION: install Go 1.24 or newer" ;;
    esac
}

# go_quickly COMMAND …: builds programs in Go without what only a debugger reads, a seventh of the
# compiler's work, and with memory instead of a fifth of it, which is collecting garbage.
go_quickly() {
    CGO_ENABLED=0 GOGC=400 GOFLAGS='-trimpath -buildvcs=false -mod=mod -gcflags=all=-dwarf=false' go "$@"
}

# go_tool NAME DIR PACKAGE@VERSION: builds a Go program into DIR, once per version.
go_tool() {
    [ -x "$2/$1" ] && return
    need_go
    mkdir -p "$2"
    GOBIN="$2" go_quickly install -ldflags='-s -w' "$3"
}

# The reference CNI plugins, in $CNI_BIN.
need_cni_plugins() {
    CNI_BIN=$CACHE/cni-plugins-$CNI_PLUGINS_VERSION
    local plugin kind
    for plugin in main/bridge main/macvlan main/ptp main/host-device main/loopback main/tap main/dummy \
        ipam/host-local ipam/static meta/tuning meta/portmap meta/bandwidth meta/sbr; do
        [ -x "$CNI_BIN/${plugin#*/}" ] || say "building CNI plugin ${plugin#*/} $CNI_PLUGINS_VERSION"
        go_tool "${plugin#*/}" "$CNI_BIN" "github.com/containernetworking/plugins/plugins/$plugin@$CNI_PLUGINS_VERSION"
    done
    export CNI_BIN
}

need_cnitool() {
    go_tool cnitool "$CACHE/cnitool-$CNITOOL_VERSION" "github.com/containernetworking/cni/cnitool@$CNITOOL_VERSION"
    CNITOOL=$CACHE/cnitool-$CNITOOL_VERSION/cnitool
    export CNITOOL
}
