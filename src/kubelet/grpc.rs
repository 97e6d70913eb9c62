//! Makes gRPC calls over HTTP/2 on a unix socket. Each call has one request message and one answer
//! message.
//!
//! ```text
//! HEADERS POST /v1.PodResourcesLister/Get │ DATA 0 │ length, 4 bytes │ protobuf
//! HEADERS 200                             │ DATA 0 │ length, 4 bytes │ protobuf │ HEADERS grpc-status
//! ```
//!
//! The calls need only [`h2`]. A gRPC framework would add load balancing, reconnection,
//! interceptors and streaming, which these calls do not use.

use std::io;
use std::path::Path;

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use http::{HeaderMap, Method, Request, StatusCode, Version, header};
use prost::Message;
use tokio::net::UnixStream;

/// The largest answer, in bytes. Kubelet has the same limit for these messages.
const MAX_ANSWER: usize = 16 << 20;
/// The length of the prefix of a message, in bytes. The prefix consists of a compression flag and
/// the message's length.
const PREFIX: usize = 5;

// The gRPC codes that need special treatment.
const UNKNOWN: u32 = 2;
const RESOURCE_EXHAUSTED: u32 = 8;
const UNIMPLEMENTED: u32 = 12;

/// A connection to a server.
#[derive(Debug, Clone)]
pub(super) struct Channel {
    requests: SendRequest<Bytes>,
}

impl Channel {
    /// Connects to the server behind a socket.
    pub(super) async fn open(socket: &Path) -> Result<Channel, GrpcError> {
        let stream = UnixStream::connect(socket).await?;
        let (requests, connection) = h2::client::handshake(stream).await?;
        // If the connection ends, the next call returns an error.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Channel { requests })
    }

    /// Calls `method`, which has the form `/package.Service/Method`.
    pub(super) async fn call<Q: Message, A: Message + Default>(
        &self,
        method: &str,
        question: &Q,
    ) -> Result<A, GrpcError> {
        let request = Request::builder()
            .method(Method::POST)
            .version(Version::HTTP_2)
            // A socket's path is not a valid authority, but every server accepts `localhost`.
            .uri(format!("http://localhost{method}"))
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers")
            .header(header::USER_AGENT, "jackfield")
            .body(())?;
        let mut ready = self.requests.clone().ready().await?;
        let (response, mut body) = ready.send_request(request, false)?;
        body.send_data(framed(question), true)?;
        let (head, mut body) = response.await?.into_parts();
        if head.status != StatusCode::OK {
            return Err(GrpcError::HttpStatus(head.status));
        }
        // A server may refuse a call in the headers, without a body.
        if head.headers.contains_key("grpc-status") {
            status(&head.headers)?;
        }
        let mut answer = BytesMut::new();
        while let Some(piece) = body.data().await {
            let piece = piece?;
            body.flow_control().release_capacity(piece.len())?;
            if answer.len() + piece.len() > MAX_ANSWER {
                return Err(GrpcError::TooLarge);
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
    // Encoding fails only if the buffer is too small, and this buffer grows.
    let _ = message.encode(&mut frame);
    frame.freeze()
}

pub(super) fn unframed<A: Message + Default>(frame: &[u8]) -> Result<A, GrpcError> {
    let Some(([compressed, l0, l1, l2, l3], message)) = frame.split_first_chunk::<PREFIX>() else {
        return Err(GrpcError::Invalid("is cut off"));
    };
    if *compressed != 0 {
        let words = "is compressed, although the request does not allow it";
        return Err(GrpcError::Invalid(words));
    }
    if u32::from_be_bytes([*l0, *l1, *l2, *l3]) as usize != message.len() {
        return Err(GrpcError::Invalid(
            "has a different length than it announces",
        ));
    }
    Ok(A::decode(message)?)
}

/// Reads the outcome of a call from its headers or trailers.
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
        None => Err(GrpcError::Invalid("ends without a grpc-status")),
    }
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum GrpcError {
    /// The socket failed.
    #[error("{}", io_text(.0))]
    Io(#[from] io::Error),
    /// The connection failed.
    #[error("the connection broke: {0}")]
    Http2(#[from] h2::Error),
    /// The request cannot be built.
    #[error("the request is invalid: {0}")]
    Request(#[from] http::Error),
    /// The server refused the call.
    #[error("gRPC code {code}: {message}")]
    Status {
        /// The code.
        code: u32,
        /// The server's message.
        message: String,
    },
    /// The HTTP status is not 200.
    #[error("not a gRPC server: HTTP status {0}")]
    HttpStatus(StatusCode),
    /// The answer is larger than [`MAX_ANSWER`].
    #[error("the answer has more than {MAX_ANSWER} bytes")]
    TooLarge,
    /// The answer violates the protocol. The text completes a sentence that begins with "the
    /// answer".
    #[error("the answer {0}")]
    Invalid(&'static str),
    /// The answer is not the expected message.
    #[error("the answer is broken: {0}")]
    Message(#[from] prost::DecodeError),
    /// The server did not answer in time.
    #[error("no answer within {0} ms")]
    Late(u128),
}

fn io_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "the socket does not exist".to_owned(),
        io::ErrorKind::ConnectionRefused => "no process listens on the socket".to_owned(),
        _ => error.to_string(),
    }
}

impl GrpcError {
    /// Returns whether the server refused the call because of its rate limit.
    pub(super) fn is_rate_limit(&self) -> bool {
        matches!(self, GrpcError::Status { code, .. } if *code == RESOURCE_EXHAUSTED)
    }

    /// Returns whether the server lacks the method or has disabled it. Older kubelets lack some
    /// methods. For a disabled method, kubelet returns the code UNKNOWN, so only the message
    /// identifies the error.
    pub(super) fn is_not_offered(&self) -> bool {
        match self {
            GrpcError::Status { code, .. } if *code == UNIMPLEMENTED => true,
            GrpcError::Status { code, message } => *code == UNKNOWN && message.contains("disabled"),
            _ => false,
        }
    }

    /// Returns whether the server does not know the pod. The code is UNKNOWN, so only the message
    /// identifies the error.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, GrpcError::Status { code, message }
            if *code == UNKNOWN && message.ends_with("not found"))
    }

    /// Returns whether the socket or the connection failed.
    pub(super) fn is_of_connection(&self) -> bool {
        matches!(self, GrpcError::Io(_) | GrpcError::Http2(_))
    }
}
