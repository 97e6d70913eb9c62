//! Answers of the API server, read up to a limit.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{self, Either};
use http::{Method, Request};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::core::Status;
use kube::{Client, Error};

use super::line::Line;

/// From how many bytes on an answer has room for how many more at once.
const LONG: usize = 256 << 10;
const LONGER: usize = 2 << 20;
/// What is read of a refusal, in bytes.
const REFUSAL: usize = 64 << 10;

/// How long a GET waits for its answer before it is sent over a new connection as well: the
/// connection may be dead, which shows later.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// Sends a request and reads the whole answer; `None` when it has more than `most` bytes, of which
/// no more are read then.
///
/// A GET that fails or stays without an answer is sent over a connection of its own too. Where that
/// brings the answer, later requests go over it.
///
/// # Errors
/// A refusal is [`kube::Error::Api`].
pub(super) async fn read(line: &Line, request: Request<Vec<u8>>, most: usize) -> Answer {
    let client = line.client();
    let again = (*request.method() == Method::GET).then(|| request.clone());
    let mut first = pin!(once(&client, request, most));
    let Some(again) = again else {
        return first.await;
    };
    let early = tokio::time::timeout(PATIENCE, first.as_mut()).await;
    if let Ok(answer @ (Ok(_) | Err(Error::Api(_)))) = early {
        return answer;
    }
    let spare = line.spare()?;
    let second = pin!(once(&spare, again, most));
    let (answer, is_second) = match early {
        Ok(_) => (second.await, true),
        Err(_) => match future::select(first, second).await {
            Either::Left((Err(error), second)) if !is_said(&error) => (second.await, true),
            Either::Left((answer, _)) => (answer, false),
            Either::Right((Err(error), first)) if !is_said(&error) => (first.await, false),
            Either::Right((answer, _)) => (answer, true),
        },
    };
    if is_second && answer.as_ref().err().is_none_or(is_said) {
        line.switch();
    }
    answer
}

/// The whole answer.
type Answer = Result<Option<Vec<u8>>, Error>;

/// Whether the API server has said so.
fn is_said(error: &Error) -> bool {
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
            // Growing step by step would copy it each time, and take twice the memory.
            text.reserve_exact(LONGER);
        }
        text.extend_from_slice(&data);
    }
    Ok(Some(text))
}
