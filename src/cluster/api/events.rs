//! Watches objects and returns their changes, one event at a time.

use std::borrow::Cow;
use std::error::Error;
use std::io;
use std::iter::successors;

use bytes::BytesMut;
use http_body_util::BodyExt;
use kube::core::Status;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::codec::{Decoder, LinesCodec};
use tracing::warn;

use super::kinds::{ObjectHead, ObjectNameError, Objects};
use super::server::LARGEST;
use super::{ApiError, ApiServer};
use crate::npwg::ObjectRef;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The object is new, or now matches the selector of the watch.
    Added,
    /// The object changed.
    Modified,
    /// The object was deleted, or no longer matches the selector of the watch.
    Deleted,
    /// No object changed. The watch has returned all changes up to the event's version.
    Bookmark,
}

/// An event of a watch.
#[derive(Debug)]
pub struct Event<'a> {
    /// What happened to the object.
    pub change: Change,
    /// The object's name, or why it cannot be read.
    pub object: Result<ObjectRef, ObjectNameError>,
    /// The resource version in the event. The watch has returned all changes up to this version.
    /// Empty if the event contains no version.
    pub version: String,
    /// The object's text.
    pub text: &'a str,
}

/// An event on the wire.
#[derive(Debug, Deserialize)]
struct Wire<'a> {
    #[serde(rename = "type", borrow)]
    change: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Parses a line: an event, or the status with which the API server ends the watch.
pub(crate) fn read(line: &str) -> Result<Result<Event<'_>, Box<Status>>, serde_json::Error> {
    let wire: Wire<'_> = serde_json::from_str(line)?;
    let text = wire.object.get();
    let change = match &*wire.change {
        "ADDED" => Change::Added,
        "MODIFIED" => Change::Modified,
        "DELETED" => Change::Deleted,
        "BOOKMARK" => Change::Bookmark,
        _ => return Ok(Err(serde_json::from_str::<Status>(text)?.boxed())),
    };
    let (object, version) = match serde_json::from_str::<ObjectHead>(text) {
        Ok(head) => (head.object().map_err(Into::into), head.version()),
        Err(cause) => (Err(cause.into()), String::new()),
    };
    Ok(Ok(Event {
        change,
        object,
        version,
        text,
    }))
}

impl ApiServer {
    /// Watches objects, beginning at a resource version, until the API server ends the watch. Keeps
    /// only one event in memory at a time. Logs and skips an event that has more than `LARGEST`
    /// bytes or cannot be read.
    ///
    /// # Errors
    /// [`ApiError`], with the code 410 if the API server no longer has that version.
    pub async fn watch(
        &self,
        objects: &Objects,
        version: &str,
        mut take: impl FnMut(Event<'_>),
    ) -> Result<(), ApiError> {
        let request = format!("a watch of {objects}");
        let failed = |error: kube::Error| self.failed(&request, error);
        let mut body = self.stream(&request, objects, version).await?;
        let mut lines = LinesCodec::new_with_max_length(LARGEST);
        let mut text = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let data = match frame {
                Ok(frame) => frame.into_data().unwrap_or_default(),
                Err(error) if is_cut(&error) => return Ok(()),
                Err(error) => return Err(failed(error)),
            };
            text.extend_from_slice(&data);
            while let Some(line) = lines.decode(&mut text).transpose() {
                let line = match line {
                    Ok(line) => line,
                    Err(cause) => {
                        warn!("skipped an event of {objects}: {cause}");
                        continue;
                    }
                };
                match read(&line) {
                    Ok(Ok(event)) => take(event),
                    Ok(Err(status)) => return Err(failed(kube::Error::Api(status))),
                    Err(cause) => warn!("cannot read an event of {objects}: {cause}"),
                }
            }
            if text.is_empty() {
                // Frees the memory of a long event before the watch goes on.
                text = BytesMut::new();
            }
        }
        Ok(())
    }
}

/// Whether an answer ended prematurely. A watch ends in this way when the API server, or a proxy in
/// front of it, closes the connection.
fn is_cut(error: &kube::Error) -> bool {
    let first: &dyn Error = error;
    let mut causes = successors(Some(first), |&cause| cause.source());
    causes.any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|io| io.kind() == io::ErrorKind::UnexpectedEof)
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use serde_json::json;

    use super::*;

    /// Serves one watch that sends only `chunks`, and returns the number of events.
    fn watch_of(chunks: &'static str) -> Result<usize, ApiError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let kubeconfig = dir.path().join("kubeconfig");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [{"name": "a", "cluster": {
                "server": format!("http://{}", listener.local_addr().unwrap())}}],
            "users": [{"name": "a", "user": {}}],
        });
        std::fs::write(&kubeconfig, text.to_string()).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            let request = String::from_utf8_lossy(&request[..length]);
            assert!(request.contains("&timeoutSeconds=15&"), "{request}");
            let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
            stream
                .write_all(format!("{head}{chunks}").as_bytes())
                .unwrap();
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let server = ApiServer::from_kubeconfig(&kubeconfig, "plugin").await?;
            let mut events = 0;
            let objects = Objects::definitions();
            server.watch(&objects, "1", |_| events += 1).await?;
            Ok(events)
        })
    }

    #[test]
    fn a_watch_ends_when_the_connection_is_cut() {
        let event = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}"#;
        assert_eq!(event.len() + 1, 0x42);
        for end in ["", "4", "42\r\n{", "0\r\n\r\n"] {
            let chunks: &str = format!("42\r\n{event}\n\r\n{end}").leak();
            assert_eq!(watch_of(chunks).unwrap(), 1, "{end:?}");
        }
        let error = watch_of("no chunk").unwrap_err();
        assert!(matches!(error, ApiError::Request { .. }), "{error}");
    }

    #[test]
    fn an_event_in_several_chunks_is_joined_unless_it_is_too_long() {
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
        let event = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}"#;
        let (start, end) = event.split_at(20);
        let long = "x".repeat(LARGEST + 1);
        let chunks = [start, end, "\n", &long, "\n", start, end, "\n"].map(chunk);
        assert_eq!(watch_of(chunks.concat().leak()).unwrap(), 2);
    }

    #[test]
    fn the_name_in_an_event_is_read_despite_invalid_fields() {
        let deep = format!(
            "{}{}",
            "{\"a\":".repeat(300),
            "1".to_owned() + &"}".repeat(300)
        );
        let line = format!(
            r#"{{"type":"MODIFIED","object":{{"metadata":{{"name":"a","namespace":"b","resourceVersion":"7","managedFields":[{{"time":"9999-12-31T23:59:59Z","fieldsV1":{deep}}}]}}}}}}"#
        );
        let event = read(&line).unwrap().unwrap();
        assert_eq!(event.change, Change::Modified);
        assert_eq!(event.object.unwrap().to_string(), "b/a");
        assert_eq!(event.version, "7");
        let line = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}"#;
        assert_eq!(read(line).unwrap().unwrap().version, "8");
        let line = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#;
        assert_eq!(read(line).unwrap().unwrap_err().code, 410);
        let line = r#"{"type":"ADDED","object":{"metadata":{"name":7}}}"#;
        assert!(read(line).unwrap().unwrap().object.is_err());
    }
}
