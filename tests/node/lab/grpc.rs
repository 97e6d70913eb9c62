//! As much of gRPC as a device plugin needs: a server on a unix socket, and one call to another.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, Method, Request, Response};
use prost::Message;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;

/// What comes back from a call.
pub(super) enum Reply {
    /// A message, and the end.
    Once(Vec<u8>),
    /// A message, and no end: the stream stays open for as long as the server lives.
    Stream(Vec<u8>),
}

/// A server until it is dropped.
pub(super) struct Service {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Serves at `socket`; `handle` gets the method's name and the message.
    pub(super) fn serve(
        socket: &Path,
        handle: impl Fn(&str, &[u8]) -> Reply + Send + Sync + 'static,
    ) -> Service {
        let _ = fs::remove_file(socket);
        let (end, ended) = oneshot::channel();
        let runtime = runtime();
        let listener = {
            let _inside = runtime.enter();
            UnixListener::bind(socket).unwrap()
        };
        let handle = Arc::new(handle);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                let serving = async {
                    loop {
                        let (stream, _) = listener.accept().await.unwrap();
                        let handle = Arc::clone(&handle);
                        tokio::spawn(async move {
                            let Ok(mut connection) = h2::server::handshake(stream).await else {
                                return;
                            };
                            while let Some(Ok((request, respond))) = connection.accept().await {
                                let handle = Arc::clone(&handle);
                                tokio::spawn(answer(request, respond, handle));
                            }
                        });
                    }
                };
                tokio::select! { () = serving => {} _ = ended => {} }
            });
        });
        Service {
            end: Some(end),
            thread: Some(thread),
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn answer(
    request: Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    handle: Arc<impl Fn(&str, &[u8]) -> Reply>,
) {
    let method = request.uri().path().rsplit('/').next().unwrap().to_owned();
    let mut body = request.into_body();
    let question = read(&mut body).await;
    let reply = handle(&method, question.get(5..).unwrap_or_default());
    let head = Response::builder()
        .header("content-type", "application/grpc")
        .body(())
        .unwrap();
    let Ok(mut stream) = respond.send_response(head, false) else {
        return;
    };
    match reply {
        Reply::Once(message) => {
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", "0".parse().unwrap());
            let _ = stream.send_data(framed(&message), false);
            let _ = stream.send_trailers(trailers);
        }
        Reply::Stream(message) => {
            let _ = stream.send_data(framed(&message), false);
            // Until the other side goes away.
            let _ = std::future::poll_fn(|cx| stream.poll_reset(cx)).await;
        }
    }
}

/// Calls `method`, `/package.Service/Method`: the message of its answer, or what is wrong, as text.
pub(super) fn call(socket: &Path, method: &str, message: &impl Message) -> Result<Bytes, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    runtime().block_on(async {
        let stream = UnixStream::connect(socket).await.map_err(|it| text(&it))?;
        let (requests, connection) = h2::client::handshake(stream)
            .await
            .map_err(|it| text(&it))?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://localhost{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())
            .unwrap();
        let mut ready = requests.ready().await.map_err(|it| text(&it))?;
        let (response, mut body) = ready.send_request(request, false).map_err(|it| text(&it))?;
        let message = framed(&message.encode_to_vec());
        body.send_data(message, true).map_err(|it| text(&it))?;
        let (head, mut body) = response.await.map_err(|it| text(&it))?.into_parts();
        let answer = read(&mut body).await;
        let trailers = body.trailers().await.map_err(|it| text(&it))?;
        let status = trailers
            .as_ref()
            .and_then(|it| it.get("grpc-status"))
            .or(head.headers.get("grpc-status"));
        match status.and_then(|it| it.to_str().ok()) {
            Some("0") => Ok(answer.slice(answer.len().min(5)..)),
            status => Err(format!("{method}: {status:?}")),
        }
    })
}

async fn read(body: &mut h2::RecvStream) -> Bytes {
    let mut pieces = VecDeque::new();
    while let Some(Ok(piece)) = body.data().await {
        let _ = body.flow_control().release_capacity(piece.len());
        pieces.push_back(piece);
    }
    pieces.into_iter().flatten().collect()
}

fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(message.len().try_into().unwrap());
    frame.put_slice(message);
    frame.freeze()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}
