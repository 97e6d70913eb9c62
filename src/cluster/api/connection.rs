//! The connection to the API server, and how the client detects a dead connection.
//!
//! A connection that a load balancer has dropped is silent. A watch without changes is silent too.
//! Over HTTP/2, the client sends a PING, and only a live connection answers. HTTP/1.1 has no PING.
//! So over HTTP/1.1, the client asks the API server to end each watch after a short time, and a
//! connection that is silent for longer counts as dead. If the API server's host is down, TCP
//! keepalive ends the connection earlier.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::time::{Duration, Instant};

use http::Version;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{ClientBuilder, ConfigExt};
use kube::{Client, Config};

use super::{CredentialsError, tls};

/// The time limit for connecting. A host that is down sends no answer at all, so without this limit
/// the client would wait much longer.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a connection is silent before the client sends a PING.
const PING_AFTER: Duration = Duration::from_secs(10);
/// The time limit for the answer to a PING.
const PING_WITHIN: Duration = Duration::from_secs(10);
/// How long a connection may be silent before it counts as dead. Over HTTP/2, a live connection is
/// never silent for this long, because the API server answers each PING.
const SILENCE: Duration = Duration::from_secs(25);
/// How long a watch over HTTP/2 lasts at most, in seconds.
const LONG_WATCH: u32 = 290;
/// How long a watch over HTTP/1.1 lasts at most, in seconds.
const SHORT_WATCH: u32 = 15;
/// How long [`ApiClient::spare`] returns the same client. The connections of an older client may be
/// dead.
const NEW: Duration = Duration::from_secs(5);
/// The HTTP/2 flow-control window of one answer: the maximum number of bytes that the API server
/// has sent but this process has not read.
const WINDOW: u32 = 256 << 10;
/// The HTTP/2 flow-control window of all answers on a connection together, in bytes.
const ALL_WINDOWS: u32 = 1 << 20;
/// The largest read buffer of an HTTP/1.1 connection, in bytes. By default, the buffer of a
/// connection that has carried a long answer grows to 400 KiB. The connection keeps this buffer
/// while it is idle, for up to 90 s.
const BUFFER: usize = 16 << 10;

/// The client of an API server. It can switch to new connections.
pub(super) struct ApiClient {
    config: Config,
    client: RefCell<Client>,
    /// A second client, and the time of its creation. The second client repeats GETs that got no
    /// answer through the first client.
    spare: RefCell<Option<(Client, Instant)>>,
    /// How long a watch lasts at most, in seconds. This depends on the HTTP version of the last
    /// answer.
    watch_seconds: Cell<u32>,
}

impl ApiClient {
    /// Creates a client of the API server in `config`. Sends nothing yet.
    pub(super) fn new(config: Config) -> Result<ApiClient, CredentialsError> {
        Ok(ApiClient {
            client: RefCell::new(client(&config)?),
            config,
            spare: RefCell::default(),
            watch_seconds: Cell::new(SHORT_WATCH),
        })
    }

    /// Whether both clients have the same headers, including the token, and the same certificate
    /// authorities. Does not compare client certificates.
    pub(super) fn has_credentials_of(&self, other: &ApiClient) -> bool {
        let (one, other) = (&self.config, &other.config);
        one.headers == other.headers && one.root_cert == other.root_cert
    }

    /// Returns the address of the API server.
    pub(super) fn address(&self) -> String {
        self.config.cluster_url.to_string()
    }

    /// Sets how long a watch lasts at most, depending on the HTTP version of an answer.
    pub(super) fn heard(&self, version: Version) {
        self.watch_seconds.set(match version {
            Version::HTTP_2 => LONG_WATCH,
            _ => SHORT_WATCH,
        });
    }

    /// Returns how long a watch lasts, in seconds. Over HTTP/2 this is a random time, so that
    /// agents that began their watches together do not renew them together.
    pub(super) fn watch_seconds(&self) -> u32 {
        match self.watch_seconds.get() {
            LONG_WATCH => fastrand::u32(LONG_WATCH / 2..=LONG_WATCH),
            short => short,
        }
    }

    /// Returns the current client.
    pub(super) fn client(&self) -> Client {
        self.client.borrow().clone()
    }

    /// Returns the spare client, which has new connections. Creates it if it is missing or older
    /// than `NEW`.
    pub(super) fn spare(&self) -> Result<Client, kube::Error> {
        let mut spare = self.spare.borrow_mut();
        match &*spare {
            Some((spare, since)) if since.elapsed() < NEW => Ok(spare.clone()),
            _ => {
                // An error is unlikely, because the first client was built from the same
                // configuration.
                let new =
                    client(&self.config).map_err(|error| kube::Error::Service(error.into()))?;
                *spare = Some((new.clone(), Instant::now()));
                Ok(new)
            }
        }
    }

    /// Replaces the client with the spare client, if there is one. Callers use this when requests
    /// of the client get no answer.
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

/// Builds a client like [`Client::try_from`], but with the settings above for connections. Refuses
/// a configuration with a proxy.
fn client(config: &Config) -> Result<Client, CredentialsError> {
    if let Some(proxy) = &config.proxy_url {
        return Err(CredentialsError::Proxy(proxy.to_string()));
    }
    let mut tls = HttpsConnectorBuilder::new()
        .with_tls_config(tls::settings(config)?)
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
        .http1_max_buf_size(BUFFER)
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
