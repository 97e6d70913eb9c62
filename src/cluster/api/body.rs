//! Answers of the API server, read up to a limit.

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use kube::core::Status;

/// From how many bytes on an answer has room for how many more at once.
const LONG: usize = 256 << 10;
const LONGER: usize = 2 << 20;
/// What is read of a refusal, in bytes.
const REFUSAL: usize = 64 << 10;

/// Sends a request and reads the whole answer; `None` when it has more than `most` bytes, of which
/// no more are read then.
///
/// # Errors
/// A refusal is [`kube::Error::Api`].
pub(super) async fn read(
    client: &Client,
    request: Request<Vec<u8>>,
    most: usize,
) -> Result<Option<Vec<u8>>, kube::Error> {
    let answer = client.send(request.map(Body::from)).await?;
    let status = answer.status();
    let is_refusal = status.is_client_error() || status.is_server_error();
    let most = if is_refusal { REFUSAL } else { most };
    let body = up_to(answer.into_body(), most).await?;
    if is_refusal {
        let text = body.unwrap_or_default();
        let words = || String::from_utf8_lossy(&text).into_owned();
        let refusal = serde_json::from_slice::<Status>(&text);
        let refusal = refusal
            .unwrap_or_else(|_| Status::failure(&words(), "").with_code(status.as_u16()))
            .boxed();
        return Err(kube::Error::Api(refusal));
    }
    Ok(body)
}

async fn up_to(mut body: Body, most: usize) -> Result<Option<Vec<u8>>, kube::Error> {
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        if data.len() > most - text.len() {
            return Ok(None);
        }
        if text.len() > LONG && text.capacity() < LONGER {
            // Growing step by step would copy it each time, and take twice the memory.
            text.reserve_exact(LONGER);
        }
        text.extend_from_slice(&data);
    }
    Ok(Some(text))
}
