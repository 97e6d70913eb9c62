//! Metrics and health over HTTP: `/metrics`, `/healthz`, `/readyz`.

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
use tracing::warn;

use super::AgentError;
use super::cache::Cache;
use super::knowledge::Knowledge;
use super::metrics::Metrics;
use crate::kubelet::Usage;

/// How long a client may take to ask.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);

const METRICS: &str = "/metrics";
/// How `/metrics` is written. Read as Prometheus' older text, its counters would have no type.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// Takes the address.
pub(super) async fn listen(address: SocketAddr) -> Result<TcpListener, AgentError> {
    TcpListener::bind(address)
        .await
        .map_err(|cause| AgentError::Metrics { address, cause })
}

/// Serves for ever.
pub(super) async fn serve(listener: TcpListener, metrics: Rc<Metrics>, knowledge: Rc<Knowledge>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let (metrics, knowledge) = (Rc::clone(&metrics), Rc::clone(&knowledge));
                tokio::task::spawn_local(converse(stream, metrics, knowledge));
            }
            Err(error) => {
                warn!("metrics: no connection can be accepted: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn converse(stream: TcpStream, metrics: Rc<Metrics>, knowledge: Rc<Knowledge>) {
    let service = service_fn(|request: Request<Incoming>| {
        let (metrics, knowledge) = (Rc::clone(&metrics), Rc::clone(&knowledge));
        async move {
            let path = request.uri().path();
            let devices = match path {
                METRICS => knowledge.devices().await,
                _ => Vec::new(),
            };
            let (status, text) = page(path, &metrics, &knowledge.cache, &devices);
            Ok::<_, Infallible>(response(path, status, text))
        }
    });
    // A client that goes away is nobody's error.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

fn response(path: &str, status: StatusCode, text: String) -> Response<String> {
    let kind = if path == METRICS { OPEN_METRICS } else { TEXT };
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

fn page(path: &str, metrics: &Metrics, cache: &Cache, devices: &[Usage]) -> (StatusCode, String) {
    match path {
        METRICS => (StatusCode::OK, metrics.text(cache, devices)),
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
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_ready_once_both_lists_are_whole() {
        let metrics = Metrics::new("/nowhere".into());
        let cache = Cache::default();
        let (status, text) = page("/readyz", &metrics, &cache, &[]);
        assert_eq!(
            (status.as_u16(), text.as_str()),
            (503, "not listed yet: pods, definitions\n")
        );
        cache.pods.end();
        cache.definitions.end();
        assert_eq!(page("/readyz", &metrics, &cache, &[]).0.as_u16(), 200);
        assert_eq!(page("/healthz", &metrics, &cache, &[]).0.as_u16(), 200);
        assert_eq!(page("/", &metrics, &cache, &[]).0.as_u16(), 404);
    }

    #[test]
    fn metrics_are_announced_as_what_they_are() {
        let metrics = Metrics::new("/nowhere".into());
        for (path, kind) in [
            ("/metrics", "application/openmetrics-text; version=1.0.0"),
            ("/healthz", "text/plain"),
        ] {
            let (status, text) = page(path, &metrics, &Cache::default(), &[]);
            let is_open_metrics = text.ends_with("# EOF\n");
            let response = response(path, status, text);
            let announced = response.headers()[header::CONTENT_TYPE].to_str().unwrap();
            assert!(announced.starts_with(kind), "{path}: {announced}");
            assert_eq!(is_open_metrics, path == "/metrics");
        }
    }
}
