//! Answers of the API server, read up to a limit.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{self, Either};
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::core::Status;
use kube::{Client, Error};

use super::connection::ApiClient;

/// An answer of more than `LONG` bytes gets a buffer for `LONGER` more at once.
const LONG: usize = 256 << 10;
const LONGER: usize = 2 << 20;
/// How much of a refusal is read, in bytes.
const REFUSAL: usize = 64 << 10;

/// How long a GET waits for its answer before it is sent over a new connection as well: it takes
/// longer until a dead connection shows.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// Sends a request and reads the whole answer; `None` when it has more than `most` bytes, after which
/// it reads no further.
///
/// A GET that fails or gets no answer is sent over a new connection too. If the answer comes over
/// that one, later requests use it.
///
/// # Errors
/// A refusal is [`kube::Error::Api`].
pub(super) async fn read(api: &ApiClient, request: Request<Vec<u8>>, most: usize) -> Answer {
    let client = api.client();
    let again = (*request.method() == Method::GET).then(|| request.clone());
    let mut first = pin!(once(&client, request, most));
    let Some(again) = again else {
        return first.await;
    };
    let early = tokio::time::timeout(PATIENCE, first.as_mut()).await;
    if let Ok(answer @ (Ok(_) | Err(Error::Api(_)))) = early {
        return answer;
    }
    let spare = api.spare()?;
    let second = pin!(once(&spare, again, most));
    let (answer, is_second) = match early {
        Ok(_) => (second.await, true),
        Err(_) => match future::select(first, second).await {
            Either::Left((Err(error), second)) if !is_refusal(&error) => (second.await, true),
            Either::Left((answer, _)) => (answer, false),
            Either::Right((Err(error), first)) if !is_refusal(&error) => (first.await, false),
            Either::Right((answer, _)) => (answer, true),
        },
    };
    if is_second && answer.as_ref().err().is_none_or(is_refusal) {
        api.switch();
    }
    answer
}

/// The whole answer.
type Answer = Result<Option<Vec<u8>>, Error>;

/// Whether the error is an answer of the API server.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Api(_))
}

async fn once(client: &Client, request: Request<Vec<u8>>, most: usize) -> Answer {
    up_to(send(client, request).await?, most).await
}

/// Sends a request, and returns the body of the answer.
///
/// # Errors
/// A refusal is [`kube::Error::Api`].
pub(super) async fn send(client: &Client, request: Request<Vec<u8>>) -> Result<Body, Error> {
    let answer = client.send(request.map(Body::from)).await?;
    let status = answer.status();
    if !status.is_client_error() && !status.is_server_error() {
        return Ok(answer.into_body());
    }
    let text = up_to(answer.into_body(), REFUSAL)
        .await?
        .unwrap_or_default();
    let words = || String::from_utf8_lossy(&text).into_owned();
    let refusal = serde_json::from_slice::<Status>(&text);
    let refusal = refusal
        .unwrap_or_else(|_| Status::failure(&words(), "").with_code(status.as_u16()))
        .boxed();
    Err(Error::Api(refusal))
}

async fn up_to(mut body: Body, most: usize) -> Answer {
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        if data.len() > most - text.len() {
            return Ok(None);
        }
        if text.len() > LONG && text.capacity() < LONGER {
            // Growing step by step would copy the text each time, and take twice the memory.
            text.reserve_exact(LONGER);
        }
        text.extend_from_slice(&data);
    }
    Ok(Some(text))
}
