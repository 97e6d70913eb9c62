//! Metrics and health over HTTP: `/metrics`, `/healthz`, `/readyz`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tracing::warn;

use super::cache::Cache;
use super::device_usage::DeviceUsage;
use super::metrics::{Exposition, Metrics};

/// Connections at once: plugins' questions have their own.
const CONNECTIONS: usize = 8;
/// The largest header of a request, in bytes.
const MAX_HEADER: usize = 8 << 10;
/// How long a client may take to ask.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection may last.
const WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);
/// The pause between two tries to bind the address.
const TAKEN_PAUSE: Duration = Duration::from_secs(1);

const METRICS: &str = "/metrics";
const TEXT: &str = "text/plain; charset=utf-8";

/// Binds the address as soon as it is free: any user of the node may have it, and plugins need the
/// agent all the same.
async fn listen(address: SocketAddr) -> TcpListener {
    let mut is_logged = false;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(cause) if !is_logged => {
                warn!("--metrics {address}: {cause}; nothing is served there until it is free");
                is_logged = true;
            }
            Err(_) => {}
        }
        tokio::time::sleep(TAKEN_PAUSE).await;
    }
}

/// Serves for ever. Where every connection is taken, a new one replaces the oldest, so that a client
/// with many idle connections does not keep others out.
pub(super) async fn serve(
    address: SocketAddr,
    metrics: Rc<Metrics>,
    cache: Rc<Cache>,
    devices: Rc<DeviceUsage>,
) {
    serve_on(listen(address).await, metrics, cache, devices).await;
}

async fn serve_on(
    listener: TcpListener,
    metrics: Rc<Metrics>,
    cache: Rc<Cache>,
    devices: Rc<DeviceUsage>,
) {
    let mut connections: VecDeque<JoinHandle<()>> = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.retain(|connection| !connection.is_finished());
                if connections.len() >= CONNECTIONS
                    && let Some(oldest) = connections.pop_front()
                {
                    oldest.abort();
                    // Its descriptor has to be free before the next one is opened.
                    let _ = oldest.await;
                }
                let (metrics, cache) = (Rc::clone(&metrics), Rc::clone(&cache));
                let devices = Rc::clone(&devices);
                let connection = tokio::task::spawn_local(async move {
                    let serving = converse(stream, &metrics, &cache, &devices);
                    let _ = tokio::time::timeout(WITHIN, serving).await;
                });
                connections.push_back(connection);
            }
            Err(error) => {
                warn!("metrics: cannot accept a connection: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn converse(stream: TcpStream, metrics: &Metrics, cache: &Cache, devices: &DeviceUsage) {
    let service = service_fn(|request: Request<Incoming>| {
        let accept = request.headers().get(header::ACCEPT);
        let accept = accept.and_then(|accept| accept.to_str().ok());
        let response = match request.uri().path() {
            METRICS => {
                let form = Exposition::parse(accept.unwrap_or_default());
                let page = metrics.page(cache, &devices.show().clone(), form);
                response(StatusCode::OK, form.content_type(), page)
            }
            path => {
                let (status, line) = health(path, cache);
                response(status, TEXT, line)
            }
        };
        std::future::ready(Ok::<_, Infallible>(response))
    });
    // It is no error if the client closes the connection.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .max_buf_size(MAX_HEADER)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<String> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

fn health(path: &str, cache: &Cache) -> (StatusCode, String) {
    match path {
        "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => match missing(cache).as_slice() {
            [] => (StatusCode::OK, "ok\n".to_owned()),
            missing => (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("not listed yet: {}\n", missing.join(", ")),
            ),
        },
        _ => (
            StatusCode::NOT_FOUND,
            "there are /metrics, /healthz and /readyz\n".to_owned(),
        ),
    }
}

fn missing(cache: &Cache) -> Vec<&'static str> {
    [
        ("pods", cache.pods.is_synced()),
        ("definitions", cache.definitions.is_synced()),
    ]
    .into_iter()
    .filter(|(_, synced)| !synced)
    .map(|(kind, _)| kind)
    .collect()
}

#[cfg(test)]
mod tests;
