//! Reads Kubernetes manifests from a folder as kubectl does: YAML or JSON, with several documents
//! per file.

mod yaml;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use serde_json::Value;

use super::{ClusterError, conf_dir};
use crate::regular_file;
use yaml::MAX_OPEN;

/// The largest manifest file that is read, in bytes.
const MAX_FILE: u64 = 8 << 20;

/// One Kubernetes object of a file.
#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) kind: String,
    pub(super) metadata: Metadata,
    pub(super) body: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) name: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) uid: Option<String>,
    pub(super) annotations: Option<BTreeMap<String, String>>,
}

/// Why a file or a document in it is not a manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestFileError {
    /// This file cannot be read.
    #[error("{path}: {1}", path = .0.display())]
    File(PathBuf, #[source] io::Error),
    /// A document cannot be read.
    #[error("{} (document {number}): {source}", path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// The number of the document in the file, starting at 1.
        number: usize,
        /// The cause.
        source: DocumentError,
    },
}

/// Why a document cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// After a JSON object, the file contains further text that is not valid JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The document's values are nested too deeply.
    #[error("more than {MAX_OPEN} brackets are open at once")]
    TooDeep,
    /// The document is not valid YAML, uses custom tags, or is too large after its aliases are
    /// expanded.
    #[error("{}", first_line(.0))]
    Yaml(#[from] serde_norway::Error),
    /// An object's metadata, or a field in it, has the wrong type. The string is the object's kind.
    #[error("{0}: metadata: {1}")]
    Metadata(String, #[source] serde_json::Error),
}

/// Returns the first line of a parser's message.
fn first_line(error: &serde_norway::Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

/// The Kubernetes objects in the files of a folder, and an error for each file, document or object
/// that cannot be read.
#[derive(Debug, Default)]
pub(super) struct Manifests {
    pub(super) documents: Vec<Manifest>,
    pub(super) broken: Vec<Arc<ManifestFileError>>,
}

impl Manifests {
    /// Reads all manifests of `folder`. Continues after a file or document that cannot be read.
    ///
    /// # Errors
    /// When the folder cannot be listed, or when `until` passes before all files are read.
    pub(super) fn read(folder: &Path, until: Instant) -> Result<Manifests, ClusterError> {
        let files = conf_dir::files_ending(folder, &["yaml", "yml", "json"]);
        let files = files.map_err(|error| ClusterError::Folder(folder.to_owned(), error))?;
        let mut manifests = Manifests::default();
        for path in files {
            if !manifests.read_file(path, until) {
                return Err(ClusterError::LongFolder(folder.to_owned()));
            }
        }
        Ok(manifests)
    }

    /// Reads a file. Returns false if `until` passes before the whole file is read.
    fn read_file(&mut self, path: PathBuf, until: Instant) -> bool {
        let text = match regular_file::read_text(&path, MAX_FILE) {
            Ok(text) => text,
            Err(error) => {
                self.broken
                    .push(Arc::new(ManifestFileError::File(path, error)));
                return true;
            }
        };
        let bodies = documents(&text).into_iter().flat_map(read_document);
        for (number, body) in bodies.enumerate() {
            if Instant::now() >= until {
                return false;
            }
            let broken = match body {
                Ok(Value::Null) => continue,
                Ok(body) => self.add(body),
                Err(source) => vec![source],
            };
            for source in broken {
                self.broken.push(Arc::new(ManifestFileError::Document {
                    path: path.clone(),
                    number: number + 1,
                    source,
                }));
            }
        }
        true
    }

    /// Adds a document, or the items of a `List`. Skips objects without a `kind`. Returns an error
    /// for each object whose metadata is invalid.
    fn add(&mut self, mut body: Value) -> Vec<DocumentError> {
        if let Some(Value::Array(items)) = body.get_mut("items").map(Value::take) {
            return items.into_iter().flat_map(|item| self.add(item)).collect();
        }
        let Some(kind) = body.get("kind").and_then(Value::as_str).map(str::to_owned) else {
            return Vec::new();
        };
        let metadata = body.get("metadata").unwrap_or(&Value::Null);
        match Option::<Metadata>::deserialize(metadata) {
            Ok(metadata) => self.documents.push(Manifest {
                kind,
                metadata: metadata.unwrap_or_default(),
                body,
            }),
            Err(error) => return vec![DocumentError::Metadata(kind, error)],
        }
        Vec::new()
    }

    /// Finds an object of this kind. An object without a namespace is in the namespace `default`.
    pub(super) fn find(&self, kind: &str, namespace: &str, name: &str) -> Option<&Manifest> {
        self.documents.iter().find(|document| {
            let metadata = &document.metadata;
            document.kind == kind
                && metadata.name.as_deref() == Some(name)
                && metadata.namespace.as_deref().unwrap_or("default") == namespace
        })
    }
}

/// Splits a file into its documents. A new document begins at each line that is `---`, or that
/// starts with `---` and white space. Such a line counts even inside a quoted text.
fn documents(text: &str) -> Vec<&str> {
    let mut starts = vec![0];
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("---") && line[3..].chars().next().is_none_or(char::is_whitespace) {
            starts.push(offset);
        }
        offset += line.len();
    }
    starts.push(text.len());
    starts
        .windows(2)
        .filter_map(|pair| text.get(pair[0]..pair[1]))
        .filter(|part| !is_blank(part))
        .collect()
}

/// Whether a part of a file has no content. YAML directives (lines that begin with `%`) do not
/// count as content. They come before the `---` of their document, so [`documents`] puts them into
/// a separate part.
fn is_blank(document: &str) -> bool {
    document.lines().all(|line| {
        let line = line.trim();
        line.is_empty() || line == "---" || line == "..." || line.starts_with(['#', '%'])
    })
}

/// Reads one YAML document or a sequence of JSON objects. As in kubectl, the content of a document
/// decides whether it is YAML or JSON. The ending of the file name does not matter. If a JSON
/// object after the first is broken, returns the objects before the broken object and then the
/// error.
fn read_document(document: &str) -> Vec<Result<Value, DocumentError>> {
    let content = document.strip_prefix("---").unwrap_or(document);
    if content.trim_start().starts_with('{') {
        let objects = serde_json::Deserializer::from_str(content).into_iter();
        let objects: Vec<_> = objects.map(|object| Ok(object?)).collect();
        // A YAML document may begin with a brace too.
        if objects.first().is_some_and(Result::is_ok) {
            return objects;
        }
    }
    vec![yaml::read(document)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> (tempfile::TempDir, Manifests) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let until = Instant::now() + std::time::Duration::from_secs(60);
        let manifests = Manifests::read(dir.path(), until).unwrap();
        (dir, manifests)
    }

    fn is_document(error: &ManifestFileError, file: &str, expected: usize) -> bool {
        matches!(error, ManifestFileError::Document { path, number, .. }
            if path.ends_with(file) && *number == expected)
    }

    #[test]
    fn documents_of_yaml_and_json_are_found_by_kind_and_name() {
        let (_dir, manifests) = folder(&[
            (
                "a.yaml",
                "# pods\n---\nkind: Pod\nmetadata: {name: web}\n---\nkind: Pod\nmetadata:\n  name: db\n  namespace: x\n",
            ),
            (
                "b.json",
                r#"{"kind":"List","items":[{"kind":"NetworkAttachmentDefinition","metadata":{"name":"n","namespace":"x"}}]}"#,
            ),
            ("c.txt", "no manifest"),
        ]);
        assert!(manifests.find("Pod", "default", "web").is_some());
        assert!(manifests.find("Pod", "x", "db").is_some());
        assert!(manifests.find("Pod", "x", "web").is_none());
        assert!(
            manifests
                .find("NetworkAttachmentDefinition", "x", "n")
                .is_some()
        );
        assert!(manifests.broken.is_empty(), "{:?}", manifests.broken);
    }

    #[test]
    fn an_error_in_the_metadata_names_file_document_and_kind() {
        let list = r#"{"kind":"List","items":[{"kind":"Pod","metadata":7},{"kind":"Pod"}]}"#;
        let (dir, read) = folder(&[
            ("a.yaml", "kind: Pod\n---\nkind: Pod\nmetadata: 7\n"),
            ("b.json", list),
        ]);
        assert_eq!(read.documents.len(), 2);
        let broken: Vec<String> = read.broken.iter().map(|error| error.to_string()).collect();
        let of = |file: &str, number| {
            format!(
                "{}/{file} (document {number}): Pod: metadata: ",
                dir.path().display()
            )
        };
        assert!(broken[0].starts_with(&of("a.yaml", 2)), "{broken:?}");
        assert!(broken[1].starts_with(&of("b.json", 1)), "{broken:?}");
    }

    #[test]
    fn reading_stops_at_the_deadline_of_the_call() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), "---\na\n".repeat(100)).unwrap();
        let error = Manifests::read(dir.path(), Instant::now()).unwrap_err();
        assert!(matches!(error, ClusterError::LongFolder(_)), "{error}");
    }

    #[test]
    fn each_document_of_a_file_may_be_yaml_or_json() {
        let pod = |name: &str| format!(r#"{{"kind":"Pod","metadata":{{"name":"{name}"}}}}"#);
        let yaml = |name: &str| format!("kind: Pod\nmetadata:\n  name: {name}\n");
        let (_dir, manifests) = folder(&[
            (
                "a.json",
                &format!("{}\n{}{}\n", pod("a1"), pod("a2"), pod("a3")),
            ),
            ("b.json", &format!("{}\n---\n{}", pod("b1"), yaml("b2"))),
            ("c.json", &yaml("c")),
            (
                "d.yaml",
                &format!("%YAML 1.1\n---\n{}\n--- # two\n{}", pod("d1"), pod("d2")),
            ),
            ("e.yaml", "{kind: Pod, metadata: {name: e}}"),
            ("f.yml", &format!("{} {{", pod("f"))),
        ]);
        for name in ["a1", "a2", "a3", "b1", "b2", "c", "d1", "d2", "e", "f"] {
            assert!(manifests.find("Pod", "default", name).is_some(), "{name}");
        }
        assert_eq!(manifests.broken.len(), 1, "{:?}", manifests.broken);
        assert!(is_document(&manifests.broken[0], "f.yml", 2));
    }

    #[test]
    fn a_broken_document_does_not_hide_other_documents() {
        let (_dir, manifests) = folder(&[
            (
                "a.yaml",
                "kind: [unclosed\n---\nkind: Pod\nmetadata: {name: web}\n",
            ),
            ("b.json", "{"),
        ]);
        assert!(manifests.find("Pod", "default", "web").is_some());
        assert_eq!(manifests.broken.len(), 2, "{:?}", manifests.broken);
        assert!(is_document(&manifests.broken[0], "a.yaml", 1));
    }
}
