//! Metrics and health over HTTP: `/metrics`, `/healthz`, `/readyz`.

use std::collections::VecDeque;
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

/// The limit of concurrent HTTP connections.
const CONNECTIONS: usize = 8;
/// The largest header of a request, in bytes.
const MAX_HEADER: usize = 8 << 10;
/// How long a client may take to send the header of its request.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection may last.
const WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);
/// The pause between two attempts to bind the address.
const TAKEN_PAUSE: Duration = Duration::from_secs(1);

const METRICS: &str = "/metrics";
const TEXT: &str = "text/plain; charset=utf-8";

/// Binds the address as soon as it is free. Retries after an error, so that no user of the node can
/// stop the agent by occupying the address.
async fn listen(address: SocketAddr) -> TcpListener {
    let mut is_logged = false;
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(cause) if !is_logged => {
                warn!(
                    "--metrics {address}: {cause}; the agent serves neither metrics nor health until it can bind the address"
                );
                is_logged = true;
            }
            Err(_) => {}
        }
        tokio::time::sleep(TAKEN_PAUSE).await;
    }
}

/// The sources of the pages.
#[derive(Debug, Clone)]
pub(super) struct Pages {
    pub(super) metrics: Rc<Metrics>,
    pub(super) cache: Rc<Cache>,
    pub(super) devices: Rc<DeviceUsage>,
}

impl Pages {
    /// Serves the pages and never returns.
    pub(super) async fn serve(self, address: SocketAddr) {
        self.serve_on(listen(address).await).await;
    }

    /// Serves the pages and never returns. If [`CONNECTIONS`] connections are open, a new one
    /// replaces the oldest. So a client with many idle connections does not keep other clients out.
    async fn serve_on(self, listener: TcpListener) {
        let mut connections: VecDeque<JoinHandle<()>> = VecDeque::new();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    connections.retain(|connection| !connection.is_finished());
                    if connections.len() >= CONNECTIONS
                        && let Some(oldest) = connections.pop_front()
                    {
                        oldest.abort();
                        // Wait until the descriptor of the oldest connection is closed.
                        let _ = oldest.await;
                    }
                    let pages = self.clone();
                    let connection = tokio::task::spawn_local(async move {
                        let _ = tokio::time::timeout(WITHIN, pages.converse(stream)).await;
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

    async fn converse(&self, stream: TcpStream) {
        let service = service_fn(async |request| self.answer(&request));
        // Clients may close the connection at any time, so the agent does not log the error.
        let _ = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .max_buf_size(MAX_HEADER)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }

    fn answer(&self, request: &Request<Incoming>) -> http::Result<Response<String>> {
        let (status, kind, text) = match request.uri().path() {
            METRICS => {
                let accept = request.headers().get(header::ACCEPT);
                let accept = accept.and_then(|accept| accept.to_str().ok());
                let form = Exposition::parse(accept.unwrap_or_default());
                let page = self.metrics.page(&self.cache, &self.devices.show(), form);
                (StatusCode::OK, form.content_type(), page)
            }
            path => {
                let (status, line) = health(path, &self.cache);
                (status, TEXT, line)
            }
        };
        let response = Response::builder().status(status);
        response.header(header::CONTENT_TYPE, kind).body(text)
    }
}

fn health(path: &str, cache: &Cache) -> (StatusCode, String) {
    let lists = [
        ("pods", cache.pods.is_synced()),
        ("definitions", cache.definitions.is_synced()),
    ];
    let missing: Vec<&str> = lists
        .into_iter()
        .filter_map(|(kind, is_synced)| (!is_synced).then_some(kind))
        .collect();
    match path {
        "/readyz" if !missing.is_empty() => {
            let line = format!("not synced yet: {}\n", missing.join(", "));
            (StatusCode::SERVICE_UNAVAILABLE, line)
        }
        "/healthz" | "/readyz" => (StatusCode::OK, "ok\n".to_owned()),
        _ => {
            let line = "not found; use /metrics, /healthz or /readyz\n";
            (StatusCode::NOT_FOUND, line.to_owned())
        }
    }
}

#[cfg(test)]
mod tests;
