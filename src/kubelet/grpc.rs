//! One gRPC call: a message there, a message back, over HTTP/2 on a unix socket.
//!
//! ```text
//! HEADERS POST /v1.PodResourcesLister/Get │ DATA 0 │ length, 4 bytes │ protobuf
//! HEADERS 200                             │ DATA 0 │ length, 4 bytes │ protobuf │ HEADERS grpc-status
//! ```
//!
//! That is all of gRPC that is needed here, so [`h2`] alone is underneath: what a gRPC framework
//! adds (balancing, reconnecting, interceptors, streaming) serves clients that live for long.

use std::io;
use std::path::Path;

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use http::{HeaderMap, Method, Request, StatusCode, Version, header};
use prost::Message;
use tokio::net::UnixStream;

/// The largest answer that is read, in bytes: kubelet's own limit for these messages.
const MAX_ANSWER: usize = 16 << 20;
/// What stands before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// Codes of gRPC that mean something here.
const UNKNOWN: u32 = 2;
const RESOURCE_EXHAUSTED: u32 = 8;
const UNIMPLEMENTED: u32 = 12;

/// A connection to a server.
#[derive(Clone)]
pub(super) struct Channel {
    requests: SendRequest<Bytes>,
}

impl Channel {
    /// Connects to the server behind a socket.
    pub(super) async fn open(socket: &Path) -> Result<Channel, GrpcError> {
        let stream = UnixStream::connect(socket).await?;
        let (requests, connection) = h2::client::handshake(stream).await?;
        // Its end shows in the next call.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Channel { requests })
    }

    /// One call of `method`, `/package.Service/Method`.
    pub(super) async fn call<Q: Message, A: Message + Default>(
        &self,
        method: &str,
        question: &Q,
    ) -> Result<A, GrpcError> {
        let request = Request::builder()
            .method(Method::POST)
            .version(Version::HTTP_2)
            // A socket's path is no authority; every server takes this one.
            .uri(format!("http://localhost{method}"))
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers")
            .header(header::USER_AGENT, "jackfield")
            .body(())
            .map_err(|cause| GrpcError::Answer(cause.to_string()))?;
        let mut ready = self.requests.clone().ready().await?;
        let (response, mut body) = ready.send_request(request, false)?;
        body.send_data(framed(question), true)?;
        let (head, mut body) = response.await?.into_parts();
        if head.status != StatusCode::OK {
            let cause = format!("it is no gRPC server: HTTP status {}", head.status);
            return Err(GrpcError::Answer(cause));
        }
        // A refusal comes without a body.
        if head.headers.contains_key("grpc-status") {
            status(&head.headers)?;
        }
        let mut answer = BytesMut::new();
        while let Some(piece) = body.data().await {
            let piece = piece?;
            body.flow_control().release_capacity(piece.len())?;
            if answer.len() + piece.len() > MAX_ANSWER {
                let cause = format!("it answers with more than {MAX_ANSWER} bytes");
                return Err(GrpcError::Answer(cause));
            }
            answer.put(piece);
        }
        let trailers = body.trailers().await?.unwrap_or_default();
        status(&trailers)?;
        unframed(&answer)
    }
}

fn framed(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut frame = BytesMut::with_capacity(PREFIX + length);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // A buffer that grows takes every message.
    let _ = message.encode(&mut frame);
    frame.freeze()
}

pub(super) fn unframed<A: Message + Default>(frame: &[u8]) -> Result<A, GrpcError> {
    let broken = |cause: &str| GrpcError::Answer(format!("its answer is broken: {cause}"));
    let Some(([compressed, l0, l1, l2, l3], message)) = frame.split_first_chunk::<PREFIX>() else {
        return Err(broken("it is cut off"));
    };
    if *compressed != 0 {
        return Err(broken("it is compressed, which nobody asked for"));
    }
    if u32::from_be_bytes([*l0, *l1, *l2, *l3]) as usize != message.len() {
        return Err(broken("its length is not as announced"));
    }
    A::decode(message).map_err(|cause| broken(&cause.to_string()))
}

/// The outcome of a call, as its headers or trailers have it.
fn status(headers: &HeaderMap) -> Result<(), GrpcError> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let code = text("grpc-status").and_then(|code| code.parse().ok());
    match code {
        Some(0) => Ok(()),
        Some(code) => {
            let message = text("grpc-message").unwrap_or_default();
            let message = percent_encoding::percent_decode_str(message).decode_utf8_lossy();
            Err(GrpcError::Status {
                code,
                message: message.split_whitespace().collect::<Vec<_>>().join(" "),
            })
        }
        None => Err(GrpcError::Answer(
            "it ends without a grpc-status".to_owned(),
        )),
    }
}

/// Why a call brought no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum GrpcError {
    /// The socket.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The connection.
    #[error("the connection broke: {0}")]
    Http2(#[from] h2::Error),
    /// The server's refusal.
    #[error("gRPC code {code}: {message}")]
    Status {
        /// The code.
        code: u32,
        /// Its words.
        message: String,
    },
    /// What came is no answer.
    #[error("{0}")]
    Answer(String),
    /// Nothing came in time.
    #[error("no answer within {0} ms")]
    Late(u128),
}

impl GrpcError {
    /// Whether the server only has too much to do.
    pub(super) fn is_rate_limit(&self) -> bool {
        matches!(self, GrpcError::Status { code, .. } if *code == RESOURCE_EXHAUSTED)
    }

    /// Whether the server does not offer the method: older ones do not know it, others have it
    /// switched off and say so under a code that means nothing.
    pub(super) fn is_not_offered(&self) -> bool {
        match self {
            GrpcError::Status { code, .. } if *code == UNIMPLEMENTED => true,
            GrpcError::Status { code, message } => *code == UNKNOWN && message.contains("disabled"),
            _ => false,
        }
    }

    /// Whether the server does not know what it was asked for.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, GrpcError::Status { code, message }
            if *code == UNKNOWN && message.ends_with("not found"))
    }

    /// Whether the connection, and not the call, is at fault.
    pub(super) fn is_of_connection(&self) -> bool {
        matches!(self, GrpcError::Io(_) | GrpcError::Http2(_))
    }
}
