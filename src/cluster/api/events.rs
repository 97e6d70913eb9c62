//! Watches: the changes of objects, one event at a time.

use std::borrow::Cow;
use std::error::Error;
use std::io;

use http::{Request, header};
use http_body_util::BodyExt;
use kube::core::Status;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;
use tracing::warn;

use super::kinds::{ObjectHead, ObjectNameError, Objects};
use super::server::LARGEST;
use super::{ApiError, ApiServer};
use crate::npwg::ObjectRef;

/// How long the API server lets a watch last, in seconds.
const LASTS: u32 = 290;

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is new among the watched objects.
    Added,
    /// It changed.
    Modified,
    /// It is gone from the watched objects.
    Deleted,
    /// Nothing: everything up to the event's version has been shown.
    Bookmark,
}

/// An event of a watch.
#[derive(Debug)]
pub struct Event<'a> {
    /// What happened.
    pub change: Change,
    /// The object's name.
    pub object: Result<ObjectRef, ObjectNameError>,
    /// The version up to which the watch has shown everything; empty where the event has none.
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

/// The event of a line, or the API server's refusal to go on.
pub(crate) fn read(line: &[u8]) -> Result<Result<Event<'_>, Box<Status>>, serde_json::Error> {
    let wire: Wire<'_> = serde_json::from_slice(line)?;
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

/// Splits a text that comes in pieces into lines.
#[derive(Debug, Default)]
struct Lines {
    text: Vec<u8>,
    /// How many bytes of it have no line feed, as far as it was searched.
    searched: usize,
    is_skipping: bool,
}

impl Lines {
    /// The next whole line. Lines of more than [`LARGEST`] bytes are skipped.
    fn next(&mut self) -> Option<Vec<u8>> {
        while let Some(at) = self
            .text
            .iter()
            .skip(self.searched)
            .position(|it| *it == b'\n')
        {
            let rest = self.text.split_off(self.searched + at + 1);
            let line = std::mem::replace(&mut self.text, rest);
            self.searched = 0;
            if !std::mem::take(&mut self.is_skipping) {
                return Some(line);
            }
        }
        self.searched = self.text.len();
        if self.searched > LARGEST {
            if !self.is_skipping {
                warn!("skipped an event of more than {LARGEST} bytes");
            }
            *self = Lines {
                is_skipping: true,
                ..Lines::default()
            };
        }
        None
    }
}

impl ApiServer {
    /// Watches objects from a version on until the API server ends the watch, as it does every few
    /// minutes. One event at a time is in memory.
    ///
    /// # Errors
    /// [`ApiError`]; 410 where the API server no longer has that version.
    pub async fn watch(
        &self,
        objects: &Objects,
        version: &str,
        mut take: impl FnMut(Event<'_>),
    ) -> Result<(), ApiError> {
        let request = format!("a watch of {objects}");
        let failed = |error| self.explain(&request, error);
        let version = utf8_percent_encode(version, NON_ALPHANUMERIC);
        let path = objects.path(&format!(
            "watch=true&timeoutSeconds={LASTS}&allowWatchBookmarks=true&resourceVersion={version}"
        ));
        let get = Request::get(path).header(header::ACCEPT, objects.watched_as);
        let get = get
            .body(Vec::new())
            .map_err(|error| self.unreachable(&request, error.into()))?;
        let mut body = self.stream(&request, get).await?;
        let mut lines = Lines::default();
        while let Some(frame) = body.frame().await {
            let data = match frame {
                Ok(frame) => frame.into_data().unwrap_or_default(),
                Err(error) if is_cut(&error) => return Ok(()),
                Err(error) => return Err(failed(error)),
            };
            lines.text.extend_from_slice(&data);
            while let Some(line) = lines.next() {
                match read(&line) {
                    Ok(Ok(event)) => take(event),
                    Ok(Err(status)) => return Err(failed(kube::Error::Api(status))),
                    Err(cause) => warn!("cannot read an event of {objects}: {cause}"),
                }
            }
        }
        Ok(())
    }
}

/// Whether an answer ended in the middle, as a watch does when the API server or a proxy before it
/// closes the connection.
fn is_cut(error: &kube::Error) -> bool {
    let mut next: Option<&dyn Error> = Some(error);
    while let Some(cause) = next {
        let io = cause.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::UnexpectedEof) {
            return true;
        }
        next = cause.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use serde_json::json;

    use super::*;
    use crate::cluster::api::Caller;

    /// Serves one watch, of which `chunks` is all that comes.
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
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
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
            let server = ApiServer::from_kubeconfig(&kubeconfig, Caller::Plugin).await?;
            let mut events = 0;
            let objects = Objects::definitions();
            server.watch(&objects, "1", |_| events += 1).await?;
            Ok(events)
        })
    }

    #[test]
    fn a_watch_that_is_cut_in_a_chunk_or_between_two_has_ended() {
        let event = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}"#;
        assert_eq!(event.len() + 1, 0x42);
        for end in ["", "4", "42\r\n{", "0\r\n\r\n"] {
            let chunks: &str = format!("42\r\n{event}\n\r\n{end}").leak();
            assert_eq!(watch_of(chunks).unwrap(), 1, "{end:?}");
        }
        let error = watch_of("no chunk").unwrap_err();
        assert!(matches!(error, ApiError::Unreachable { .. }), "{error}");
    }

    #[test]
    fn lines_are_joined_from_pieces_and_too_long_ones_are_skipped() {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for piece in ["a", "b\ncd\n\ne", "f", "\ng"] {
            lines.text.extend_from_slice(piece.as_bytes());
            while let Some(line) = lines.next() {
                found.push(String::from_utf8(line).unwrap());
            }
        }
        assert_eq!(found, ["ab\n", "cd\n", "\n", "ef\n"]);
        for _ in 0..3 {
            lines.text.resize(LARGEST + 1, b'x');
            assert_eq!(lines.next(), None);
            assert_eq!(lines.text.capacity(), 0);
        }
        lines.text.extend_from_slice(b"end of it\nnext\n");
        assert_eq!(lines.next().as_deref(), Some(&b"next\n"[..]));
    }

    #[test]
    fn the_name_in_an_event_is_read_even_if_the_rest_cannot_be() {
        let deep = format!(
            "{}{}",
            "{\"a\":".repeat(300),
            "1".to_owned() + &"}".repeat(300)
        );
        let line = format!(
            r#"{{"type":"MODIFIED","object":{{"metadata":{{"name":"a","namespace":"b","resourceVersion":"7","managedFields":[{{"time":"9999-12-31T23:59:59Z","fieldsV1":{deep}}}]}}}}}}"#
        );
        let event = read(line.as_bytes()).unwrap().unwrap();
        assert_eq!(event.change, Change::Modified);
        assert_eq!(event.object.unwrap().to_string(), "b/a");
        assert_eq!(event.version, "7");
        let line = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}"#;
        assert_eq!(read(line).unwrap().unwrap().version, "8");
        let line = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#;
        assert_eq!(read(line).unwrap().unwrap_err().code, 410);
        let line = br#"{"type":"ADDED","object":{"metadata":{"name":7}}}"#;
        assert!(read(line).unwrap().unwrap().object.is_err());
    }
}
