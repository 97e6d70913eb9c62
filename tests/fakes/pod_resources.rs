//! A pod-resources server that is not kubelet's: it answers whatever a test has it answer, to put
//! faults between kubelet and Jackfield that a real kubelet shows for moments only, or never.
#![allow(dead_code, reason = "each test uses its own part of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Response};
use tokio::net::UnixListener;
use tokio::sync::oneshot;

/// What the server does with a call.
#[derive(Clone)]
pub(crate) enum Reply {
    /// Answers with this message.
    Message(Vec<u8>),
    /// Refuses with a gRPC code.
    Refusal(u32, &'static str),
    /// Sends these bytes where a message should be.
    Garbage(&'static [u8]),
    /// Does not answer.
    Silence,
    /// Answers later.
    After(Duration, Box<Reply>),
}

/// What kubelet 1.36 answers about a pod that it does not know.
pub(crate) const NOT_FOUND: Reply = Reply::Refusal(2, "pod web in namespace demo not found");
/// What kubelet answers above its limit of calls.
pub(crate) const TOO_OFTEN: Reply = Reply::Refusal(8, "rejected by rate limit");

/// The server; it ends with its test.
pub(crate) struct FakeKubelet {
    socket: PathBuf,
    asked: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeKubelet {
    /// Serves at `socket`; `reply` gets the method's name and how often it was called before.
    pub(crate) fn serve(
        socket: &Path,
        reply: impl Fn(&str, usize) -> Reply + Send + Sync + 'static,
    ) -> FakeKubelet {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let connections: Arc<AtomicUsize> = Arc::default();
        let (end, ended) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let listener = {
            let _inside = runtime.enter();
            UnixListener::bind(socket).unwrap()
        };
        let (log, reply) = (Arc::clone(&asked), Arc::new(reply));
        let accepted = Arc::clone(&connections);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let serving = async {
                    loop {
                        let (stream, _) = listener.accept().await.unwrap();
                        accepted.fetch_add(1, Ordering::Relaxed);
                        let (log, reply) = (Arc::clone(&log), Arc::clone(&reply));
                        tokio::spawn(async move {
                            let Ok(mut connection) = h2::server::handshake(stream).await else {
                                return;
                            };
                            while let Some(Ok((request, respond))) = connection.accept().await {
                                let method = request.uri().path().rsplit('/').next().unwrap();
                                let before = {
                                    let mut log = log.lock().unwrap();
                                    let before = log.iter().filter(|it| *it == method).count();
                                    log.push(method.to_owned());
                                    before
                                };
                                tokio::spawn(answer(reply(method, before), respond));
                            }
                        });
                    }
                };
                tokio::select! { () = serving => {} _ = ended => {} }
            });
        });
        FakeKubelet {
            socket: socket.to_owned(),
            asked,
            connections,
            end: Some(end),
            thread: Some(thread),
        }
    }

    /// The methods that were called, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// How many connections the server has accepted.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for FakeKubelet {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = fs::remove_file(&self.socket);
    }
}

async fn answer(reply: Reply, mut respond: h2::server::SendResponse<Bytes>) {
    let mut reply = reply;
    while let Reply::After(pause, then) = reply {
        tokio::time::sleep(pause).await;
        reply = *then;
    }
    let head = Response::builder().header("content-type", "application/grpc");
    let body = match reply {
        Reply::Message(message) => {
            let mut frame = BytesMut::new();
            frame.put_u8(0);
            frame.put_u32(message.len().try_into().unwrap());
            frame.put_slice(&message);
            frame.freeze()
        }
        Reply::Garbage(bytes) => Bytes::from_static(bytes),
        Reply::Refusal(code, message) => {
            let head = head
                .header("grpc-status", code.to_string())
                .header("grpc-message", message.replace(' ', "%20"))
                .body(())
                .unwrap();
            let _ = respond.send_response(head, true);
            return;
        }
        // Nobody else ends the stream either.
        Reply::Silence | Reply::After(..) => return std::future::pending().await,
    };
    let Ok(mut stream) = respond.send_response(head.body(()).unwrap(), false) else {
        return;
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", "0".parse().unwrap());
    let _ = stream.send_data(body, false);
    let _ = stream.send_trailers(trailers);
}

/// A field of a protobuf message that has a length: text, or a message.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(content);
    out
}

/// A DRA device: its claim's namespace and name, driver, pool, and name.
pub(crate) type Claimed<'a> = [&'a str; 5];

/// A container with devices of device plugins, one entry for each, and of DRA drivers.
pub(crate) fn container(name: &str, devices: &[(&str, &str)], claims: &[Claimed<'_>]) -> Vec<u8> {
    let mut out = field(1, name.as_bytes());
    for (resource, id) in devices {
        let entry = [field(1, resource.as_bytes()), field(2, id.as_bytes())].concat();
        out.extend(field(2, &entry));
    }
    for [namespace, claim, driver, pool, device] in claims {
        let text = |number: u8, text: &str| field(number, text.as_bytes());
        let prepared = [text(2, driver), text(3, pool), text(4, device)].concat();
        let claim = [text(2, claim), text(3, namespace), field(4, &prepared)].concat();
        out.extend(field(5, &claim));
    }
    out
}

/// A pod with containers.
pub(crate) fn pod(namespace: &str, name: &str, containers: &[Vec<u8>]) -> Vec<u8> {
    let mut out = [field(1, name.as_bytes()), field(2, namespace.as_bytes())].concat();
    for container in containers {
        out.extend(field(3, container));
    }
    out
}

/// The answer of `Get`, and that of `List`, which has the pods in the same field.
pub(crate) fn pods(pods: &[Vec<u8>]) -> Reply {
    let fields = pods.iter().map(|pod| field(1, pod));
    Reply::Message(fields.collect::<Vec<_>>().concat())
}

/// The answer of `GetAllocatableResources`: a device of each resource.
pub(crate) fn allocatable(resources: &[&str]) -> Reply {
    let entries = resources.iter().map(|resource| {
        let entry = [field(1, resource.as_bytes()), field(2, b"x")].concat();
        field(1, &entry)
    });
    Reply::Message(entries.collect::<Vec<_>>().concat())
}
