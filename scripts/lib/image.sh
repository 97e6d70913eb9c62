# Container images out of static binaries: an OCI image layout in a tar archive (OCI Image Format
# 1.1). Sourced, not run; needs jq and GNU tar.

# pack_image FILE NAME:TAG PROGRAM SCRATCH ARCH=BINARY …: an image whose only file is /PROGRAM, which
# it runs; for each architecture its own. Nothing in it depends on when or where it was made.
pack_image() {
    local file=$1 name=$2 program=$3 layout=$4 pair arch layer config manifest manifests=()
    shift 4
    rm -rf "$layout"
    mkdir -p "$layout/blobs/sha256"
    for pair in "$@"; do
        arch=${pair%%=*}
        is_for "$arch" "${pair#*=}" || return
        mkdir "$layout/root"
        install -m 0755 "${pair#*=}" "$layout/root/$program"
        plain_tar "$layout/layer" "$layout/root" "$program"
        rm -r "$layout/root"
        layer=$(blob layer.v1.tar <"$layout/layer")
        config=$(jq -ncS --arg arch "$arch" --arg program "/$program" --argjson layer "$layer" '{
            architecture: $arch, os: "linux", created: "1970-01-01T00:00:00Z",
            config: {Entrypoint: [$program], User: "0:0", WorkingDir: "/"},
            rootfs: {type: "layers", diff_ids: [$layer.digest]},
            history: [{created: "1970-01-01T00:00:00Z", created_by: "scripts/image"}]}' | blob config.v1)
        manifest=$(jq -ncS --argjson config "$config" --argjson layer "$layer" '{
            schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json",
            config: $config, layers: [$layer]}' | blob manifest.v1)
        rm "$layout/layer"
        manifests+=("$(jq -ncS --argjson manifest "$manifest" --arg arch "$arch" \
            '$manifest + {platform: {architecture: $arch, os: "linux"}}')")
    done
    # The index of the layout names one image, and that is an index of architectures.
    printf '%s\n' "${manifests[@]}" | jq -scS '{
        schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json", manifests: .}' |
        blob index.v1 | jq -cS --arg name "$name" '{
        schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json",
        manifests: [. + {annotations: {
            "io.containerd.image.name": $name,
            "org.opencontainers.image.ref.name": ($name | sub(".*:"; ""))}}]}' >"$layout/index.json"
    echo '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
    plain_tar "$file" "$layout" oci-layout index.json blobs
    rm -rf "$layout"
}

# is_for ARCH FILE: whether the program is for that architecture; says so if not.
is_for() {
    local machine
    machine=$(od -An -tx1 -j18 -N2 "$2" | tr -d ' ')
    case "$1=$machine" in
        amd64=3e00 | arm64=b700) ;;
        *) echo "$2: not a program for $1; give the binary of scripts/build --arch for it" >&2; return 2 ;;
    esac
}

# blob KIND: stores stdin among the blobs of $layout; prints its descriptor.
blob() {
    local type=application/vnd.oci.image.$1 content=$layout/blob.$BASHPID digest
    case "$1" in *.v1) type+=+json ;; esac
    cat >"$content"
    digest=$(sha256sum <"$content" | cut -d' ' -f1)
    jq -ncS --arg type "$type" --arg digest "sha256:$digest" --argjson size "$(stat -c %s "$content")" \
        '{mediaType: $type, digest: $digest, size: $size}'
    mv "$content" "$layout/blobs/sha256/$digest"
}

# plain_tar FILE DIR ENTRY …: without anything of this machine or this moment.
plain_tar() {
    local file dir
    file=$(realpath -m "$1") dir=$2
    shift 2
    tar --create --format=ustar --file "$file" --directory "$dir" --sort=name --mtime=@0 \
        --owner=0 --group=0 --numeric-owner --mode='u=rwX,go=rX' "$@"
}
