//! The objects of `deploy/`, and where an administrator puts them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The objects of every manifest in a folder, file by file.
pub(super) fn of_folder(folder: &Path) -> Vec<Value> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    files.iter().flat_map(|file| of_file(file)).collect()
}

/// The objects of a file of manifests.
pub(super) fn of_file(file: &Path) -> Vec<Value> {
    of_text(&fs::read_to_string(file).unwrap())
}

/// The objects of a text of manifests.
pub(crate) fn of_text(text: &str) -> Vec<Value> {
    let documents = text.split("\n---\n");
    documents
        .map(|document| serde_saphyr::from_str(document).unwrap())
        .collect()
}

/// Where an object goes; some go nowhere.
pub(super) fn collection(object: &Value) -> Option<String> {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let collection = match object["kind"].as_str().unwrap() {
        "ConfigMap" => &format!("/api/v1/namespaces/{namespace}/configmaps"),
        "DaemonSet" => &format!("/apis/apps/v1/namespaces/{namespace}/daemonsets"),
        "ServiceAccount" => &format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
        "ClusterRole" => "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "ClusterRoleBinding" => "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        "CustomResourceDefinition" => "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "ValidatingAdmissionPolicy" => {
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
        }
        "ValidatingAdmissionPolicyBinding" => {
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
        }
        // For kubectl alone, and for OpenShift's API server.
        "Kustomization" | "SecurityContextConstraints" => return None,
        other => panic!("deploy/ has a {other}: say where it goes"),
    };
    Some(collection.to_owned())
}
