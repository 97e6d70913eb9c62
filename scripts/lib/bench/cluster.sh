# A real cluster for the measurement: etcd, kube-apiserver, what deploy/ has, pods, an agent. Sourced.
# It is made in the folder where it is sourced, on a node of its own.

API=https://127.0.0.1:16443
TOKEN=admin

# request METHOD PATH CONTENT-TYPE: the body comes on stdin, the answer goes to stdout.
request() {
    curl --silent --show-error --fail-with-body --cacert api/pki/apiserver.crt --request "$1" \
        --header "authorization: Bearer $TOKEN" --header "content-type: $3" --data-binary @- "$API$2"
}

# Where objects of a kind are created.
collection() {
    case "$1" in
        Namespace) echo /api/v1/namespaces ;;
        Node) echo /api/v1/nodes ;;
        ServiceAccount) echo /api/v1/namespaces/kube-system/serviceaccounts ;;
        ClusterRole) echo /apis/rbac.authorization.k8s.io/v1/clusterroles ;;
        ClusterRoleBinding) echo /apis/rbac.authorization.k8s.io/v1/clusterrolebindings ;;
        CustomResourceDefinition) echo /apis/apiextensions.k8s.io/v1/customresourcedefinitions ;;
        ValidatingAdmissionPolicy) echo /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies ;;
        ValidatingAdmissionPolicyBinding) echo /apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings ;;
        *) echo "no place for a $1" >&2; return 1 ;;
    esac
}

# apply FILE …: every document of manifests.
apply() {
    local file document kind
    for file in "$@"; do
        rm -rf documents && mkdir documents
        awk -v n=0 '/^---$/ { n++; next } { print > ("documents/" n) }' "$file"
        for document in documents/*; do
            kind=$(sed -n 's/^kind: //p' "$document" | head -1)
            request POST "$(collection "$kind")" application/yaml <"$document" >/dev/null
        done
    done
}

# create PATH: one JSON object a line on stdin, all over one connection.
create() {
    local number=0 line
    rm -rf bodies && mkdir bodies
    while IFS= read -r line; do
        printf '%s' "$line" >"bodies/$number"
        [ $number = 0 ] || echo next
        printf 'url = "%s%s"\ndata-binary = "@bodies/%s"\noutput = /dev/null\n' "$API" "$1" $number
        printf 'header = "authorization: Bearer %s"\nheader = "content-type: application/json"\n' $TOKEN
        printf 'cacert = api/pki/apiserver.crt\nsilent\nshow-error\nfail\n'
        number=$((number + 1))
    done >requests
    curl --config requests
}

# pods NODE NAME COUNT ANNOTATIONS: pods NAME-0, NAME-1, … of the namespace `bench`.
pods() {
    local number
    for ((number = 0; number < $3; number++)); do
        printf '{"metadata":{"name":"%s-%s","annotations":%s},"spec":{"nodeName":"%s","containers":[{"name":"app","image":"app"}]}}\n' \
            "$2" $number "$4" "$1"
    done | create /api/v1/namespaces/bench/pods
}

# definitions LENGTH NAME …: of the namespace `bench`, each with a configuration of about LENGTH bytes.
definitions() {
    local length=$1 name note
    note=$(head -c "$length" /dev/zero | tr '\0' x)
    shift
    for name in "$@"; do
        printf '{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"name":"%s"},"spec":{"config":"{ \\"cniVersion\\": \\"1.0.0\\", \\"type\\": \\"rename\\", \\"note\\": \\"%s\\" }"}}\n' "$name" "$note"
    done | create /apis/k8s.cni.cncf.io/v1/namespaces/bench/network-attachment-definitions
}

# kubeconfig FILE TOKEN
kubeconfig() {
    cat >"$1" <<JSON
{ "apiVersion": "v1", "kind": "Config", "current-context": "a",
  "clusters": [{ "name": "a", "cluster": { "server": "$API", "certificate-authority": "$PWD/api/pki/apiserver.crt" } }],
  "users": [{ "name": "a", "user": { "token": "$2" } }],
  "contexts": [{ "name": "a", "context": { "cluster": "a", "user": "a" } }] }
JSON
}

# start_cluster SOURCE: the control plane with the manifests of the checkout SOURCE.
start_cluster() {
    "$1/tests/api/cluster/run" "$PWD/api" 16443 12379 12380 &
    local tries
    for ((tries = 0; tries < 600; tries++)); do
        [ -e api/pki/apiserver.crt ] && request GET /readyz text/plain </dev/null >/dev/null 2>&1 && break
        sleep 0.1
    done
    # Configurations may be as long as where others brought the kind.
    mkdir crds
    cp "$1"/deploy/crds/*.yaml crds/
    sed -i 's/maxLength: 65536/maxLength: 1048576/' crds/*.yaml
    apply crds/*.yaml "$1/deploy/rbac.yaml" "$1/deploy/admission.yaml"
    echo '{"metadata":{"name":"bench"}}' | request POST /api/v1/namespaces application/json >/dev/null
    for ((tries = 0; tries < 100; tries++)); do
        request GET /apis/k8s.cni.cncf.io/v1/network-attachment-definitions text/plain </dev/null >/dev/null 2>&1 && break
        sleep 0.1
    done
    # Whoever is measured besides: may do everything, and is known in the audit log by its name.
    echo '{"metadata":{"name":"peer"}}' |
        request POST /api/v1/namespaces/bench/serviceaccounts application/json >/dev/null
    request POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings application/json >/dev/null <<'JSON'
{ "metadata": { "name": "peer" }, "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
  "subjects": [{ "kind": "ServiceAccount", "name": "peer", "namespace": "bench" }] }
JSON
    kubeconfig peer.kubeconfig "$(echo '{"spec":{}}' |
        request POST /api/v1/namespaces/bench/serviceaccounts/peer/token application/json | jq -r .status.token)"
}

# start_agent NODE PORT: an agent on that node with the rights of an agent; its files are NODE.*.
# Its process is $AGENT.
start_agent() {
    echo "{\"metadata\":{\"name\":\"$1\"}}" | request POST /api/v1/nodes application/json >/dev/null
    local uid
    uid=$(echo "{\"metadata\":{\"name\":\"agent-$1\"},\"spec\":{\"nodeName\":\"$1\",\"serviceAccountName\":\"jackfield-agent\",
        \"hostNetwork\":true,\"containers\":[{\"name\":\"agent\",\"image\":\"jackfield\"}]}}" |
        request POST /api/v1/namespaces/kube-system/pods application/json | jq -r .metadata.uid)
    kubeconfig "$1.kubeconfig" "$(echo "{\"spec\":{\"boundObjectRef\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"agent-$1\",\"uid\":\"$uid\"}}}" |
        request POST /api/v1/namespaces/kube-system/serviceaccounts/jackfield-agent/token application/json |
        jq -r .status.token)"
    env -i ./jackfield agent --node "$1" --kubeconfig "$1.kubeconfig" --socket "$PWD/$1/agent.sock" \
        --journal-dir "$PWD/$1.journal" --metrics "127.0.0.1:$2" 2>"$1.log" &
    AGENT=$!
    local tries
    for ((tries = 0; tries < 300; tries++)); do
        curl --silent --fail "http://127.0.0.1:$2/readyz" >/dev/null && return
        sleep 0.1
    done
    cat "$1.log" >&2
    return 1
}
