//! The connection to the API server, and how the client notices that it is dead.
//!
//! A load balancer that has dropped a connection sends nothing, and neither does a watch without
//! changes. HTTP/2 tells the two apart by a PING. HTTP/1.1 has none, so over it the client asks the API
//! server to end each watch before the silence counts. If the host itself is gone, the kernel notices
//! within the same time.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::{Duration, Instant};

use http::{HeaderName, HeaderValue, Version};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{ClientBuilder, ConfigExt};
use kube::{Client, Config};

use super::CredentialsError;

/// How long a connect may take: a host that is gone does not answer at all.
const CONNECT: Duration = Duration::from_secs(5);
/// After how much silence the client sends a PING, and how long the answer may take.
const PING_AFTER: Duration = Duration::from_secs(10);
const PING_WITHIN: Duration = Duration::from_secs(10);
/// After how much silence a connection is dead, with either version of HTTP.
const SILENCE: Duration = Duration::from_secs(25);
/// How long the API server lets a watch last, in seconds: over HTTP/2, and over HTTP/1.1.
const LONG_WATCH: u32 = 290;
const SHORT_WATCH: u32 = 15;
/// How long the connections of a spare client count as new: they die too.
const NEW: Duration = Duration::from_secs(5);
/// How much the API server may send ahead, in bytes: of one answer, and of all.
const WINDOW: u32 = 256 << 10;
const ALL_WINDOWS: u32 = 1 << 20;

/// The client of an API server, which can be replaced by one with connections of its own.
pub(super) struct ApiClient {
    config: Config,
    client: RefCell<Client>,
    /// A second client, while it is not known whose connections are alive, and when it was made.
    spare: RefCell<Option<(Client, Instant)>>,
    /// How long a watch lasts over the version of HTTP of the last answer, in seconds.
    watch_seconds: Cell<u32>,
}

impl ApiClient {
    /// The API server of `config`; nothing is sent yet.
    pub(super) fn new(config: Config) -> Result<ApiClient, CredentialsError> {
        Ok(ApiClient {
            client: RefCell::new(client(&config)?),
            config,
            spare: RefCell::default(),
            watch_seconds: Cell::new(SHORT_WATCH),
        })
    }

    /// The headers of every request, the token among them.
    pub(super) fn headers(&self) -> &[(HeaderName, HeaderValue)] {
        &self.config.headers
    }

    /// The address of the API server.
    pub(super) fn address(&self) -> String {
        self.config.cluster_url.to_string()
    }

    /// Notes the version of HTTP of an answer.
    pub(super) fn heard(&self, version: Version) {
        self.watch_seconds.set(match version {
            Version::HTTP_2 => LONG_WATCH,
            _ => SHORT_WATCH,
        });
    }

    /// How long a watch lasts, in seconds.
    pub(super) fn watch_seconds(&self) -> u32 {
        self.watch_seconds.get()
    }

    /// The client.
    pub(super) fn client(&self) -> Client {
        self.client.borrow().clone()
    }

    /// A client with new connections of its own. Requests at about the same time share one.
    pub(super) fn spare(&self) -> Result<Client, kube::Error> {
        let mut spare = self.spare.borrow_mut();
        match &*spare {
            Some((spare, since)) if since.elapsed() < NEW => Ok(spare.clone()),
            _ => {
                // It was built from the same configuration once.
                let new =
                    client(&self.config).map_err(|error| kube::Error::Service(error.into()))?;
                *spare = Some((new.clone(), Instant::now()));
                Ok(new)
            }
        }
    }

    /// Replaces the client, which gets no answer, by the spare one.
    pub(super) fn switch(&self) {
        if let Some((spare, _)) = self.spare.take() {
            *self.client.borrow_mut() = spare;
        }
    }
}

impl fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApiClient").field(&self.address()).finish()
    }
}

/// As [`Client::try_from`] builds it, but for the connections.
fn client(config: &Config) -> Result<Client, CredentialsError> {
    if let Some(proxy) = &config.proxy_url {
        return Err(CredentialsError::Proxy(proxy.to_string()));
    }
    let mut tls = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let Ok(name) = name.clone().try_into() else {
            return Err(CredentialsError::ServerName(name.clone()));
        };
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let tls = tls.enable_http1().enable_http2().wrap_connector(tcp());
    let mut connector = TimeoutConnector::new(tls);
    connector.set_connect_timeout(Some(CONNECT));
    connector.set_read_timeout(Some(SILENCE));
    let http = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PING_WITHIN)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(WINDOW)
        .http2_initial_connection_window_size(ALL_WINDOWS)
        .build(connector);
    let namespace = config.default_namespace.clone();
    let builder = ClientBuilder::new(http, namespace).with_layer(&config.extra_headers_layer()?);
    Ok(builder.with_layer(&config.base_uri_layer()).build())
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(PING_AFTER));
    tcp.set_keepalive_interval(Some(PING_WITHIN / 2));
    tcp.set_keepalive_retries(Some(2));
    tcp.set_tcp_user_timeout(Some(PING_AFTER + PING_WITHIN));
    tcp
}
