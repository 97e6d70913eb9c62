//! Reads the API server's answers, up to a size limit.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{self, Either};
use http::{HeaderMap, Method, Request, header};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::core::Status;
use kube::core::response::StatusDetails;
use kube::{Client, Error};

use super::connection::ApiClient;
use super::error::RequestError;

/// The initial capacity of the buffer for an answer, in bytes.
const CAPACITY: usize = 512 << 10;
/// How much a full buffer grows, in bytes. A buffer that grows in small steps is copied each time,
/// and takes twice the memory during a copy. Large steps cost little, because the kernel provides
/// memory only as the answer fills the buffer.
const LONGER: usize = 2 << 20;
/// The longest text of a refusal, in bytes. A longer text is dropped.
const REFUSAL: usize = 64 << 10;

/// How long a GET waits for its answer before `read` sends the GET again, over a new connection.
/// The client also detects a dead connection, but only after a longer time.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// Sends a request and returns the whole answer. Fails if the answer has more than `most` bytes.
///
/// Repeats a GET over a new connection if the GET fails without an answer. Also repeats a GET that
/// still waits for its answer after `PATIENCE`. Both requests then run, and the answer that arrives
/// first counts. If this answer arrives over the new connection, later requests use the new
/// connection too.
///
/// # Errors
/// [`RequestError`].
pub(super) async fn read(api: &ApiClient, request: Request<Vec<u8>>, most: usize) -> Answer {
    let client = api.client();
    let again = (*request.method() == Method::GET).then(|| request.clone());
    let mut first = pin!(once(api, &client, request, most));
    let Some(again) = again else {
        return first.await;
    };
    let has_failed = match tokio::time::timeout(PATIENCE, first.as_mut()).await {
        Ok(answer) if is_answered(&answer) => return answer,
        early => early.is_ok(),
    };
    let spare = api.spare()?;
    let second = pin!(once(api, &spare, again, most));
    let (answer, is_second) = match has_failed {
        true => (second.await, true),
        false => match future::select(first, second).await {
            Either::Left((answer, _)) if is_answered(&answer) => (answer, false),
            Either::Left((_, second)) => (second.await, true),
            Either::Right((answer, _)) if is_answered(&answer) => (answer, true),
            Either::Right((_, first)) => (first.await, false),
        },
    };
    if is_second && is_answered(&answer) {
        api.switch();
    }
    answer
}

/// The whole answer.
type Answer = Result<Vec<u8>, RequestError>;

fn is_answered(answer: &Answer) -> bool {
    answer.as_ref().err().is_none_or(RequestError::is_answer)
}

async fn once(api: &ApiClient, client: &Client, request: Request<Vec<u8>>, most: usize) -> Answer {
    up_to(send(api, client, request).await?, most).await
}

/// Sends a request, and returns the body of the answer.
///
/// # Errors
/// [`RequestError`].
pub(super) async fn send(
    api: &ApiClient,
    client: &Client,
    request: Request<Vec<u8>>,
) -> Result<Body, RequestError> {
    let answer = client.send(request.map(Body::from)).await?;
    api.heard(answer.version());
    let (status, after) = (answer.status(), retry_after(answer.headers()));
    if !status.is_client_error() && !status.is_server_error() {
        return Ok(answer.into_body());
    }
    let text = match up_to(answer.into_body(), REFUSAL).await {
        Err(RequestError::TooLong(_)) => Vec::new(),
        text => text?,
    };
    let words = || String::from_utf8_lossy(&text).into_owned();
    let refusal = serde_json::from_slice::<Status>(&text);
    let mut refusal =
        refusal.unwrap_or_else(|_| Status::failure(&words(), "").with_code(status.as_u16()));
    if let Some(after) = after {
        let details = refusal.details.get_or_insert_with(|| StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: 0,
        });
        details.retry_after_seconds = details.retry_after_seconds.max(after);
    }
    Err(Error::Api(refusal.boxed()).into())
}

/// Returns the seconds in the header `Retry-After`. When the API server is busy, its refusal is not
/// a Status object, so only this header contains the time to wait. The header may also contain a
/// date (RFC 9110), but the API server never sends one, so this function ignores dates.
fn retry_after(headers: &HeaderMap) -> Option<u32> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    value.trim().parse().ok()
}

async fn up_to(mut body: Body, most: usize) -> Answer {
    let mut text = Vec::with_capacity(CAPACITY.min(most));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        if data.len() > most - text.len() {
            return Err(RequestError::TooLong(most));
        }
        if data.len() > text.capacity() - text.len() {
            text.reserve_exact(LONGER.max(data.len()));
        }
        text.extend_from_slice(&data);
    }
    Ok(text)
}
