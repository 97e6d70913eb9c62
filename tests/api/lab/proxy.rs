//! Between the agent and the API server: where faults are put.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tokio::task::{AbortHandle, LocalSet};

use super::Server;

/// What is done to a request instead of passing it on.
#[derive(Clone)]
pub(crate) enum Fault {
    /// The connection ends without an answer.
    HangUp,
    /// It is passed on after a pause.
    Slow(Duration),
    /// This status, with these words.
    Answer(u16, &'static str),
    /// A list is the last one that was passed on; a watch brings nothing.
    Stale,
    /// 429 as from a busy API server: plain text, with so many seconds in `Retry-After`.
    Busy(u32),
}

/// When a client may repeat a request that was one too many, in seconds.
const RETRY_AFTER: u64 = 1;

type Rule = Box<dyn FnMut(&Method, &str) -> Option<Fault> + Send>;

#[derive(Default)]
struct State {
    rule: Option<Rule>,
    seen: Vec<String>,
    connections: VecDeque<AbortHandle>,
    silences: Vec<Silence>,
    /// The last lists that were passed on, by path.
    lists: HashMap<String, Bytes>,
}

/// Whether a connection that stays open brings nothing any more.
type Silence = Arc<AtomicBool>;

/// A body that ends with no word once its connection is silent.
struct Muted {
    body: Body,
    silence: Silence,
}

impl hyper::body::Body for Muted {
    type Data = Bytes;
    type Error = <Body as hyper::body::Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            _ if self.silence.load(Ordering::Relaxed) => Poll::Pending,
            polled => polled,
        }
    }
}

/// A proxy of the API server, in clear text.
pub(crate) struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Proxy {
    /// Starts one, on a thread that ends with the process.
    pub(crate) fn start(server: &'static Server) -> Proxy {
        let state = Arc::new(Mutex::new(State::default()));
        let (tell, told) = std::sync::mpsc::channel();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            LocalSet::new().block_on(&runtime, async {
                let client = super::admin::client(server);
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    // A page's last bytes shall not wait for the peer's acknowledgement.
                    stream.set_nodelay(true).unwrap();
                    let (client, state) = (client.clone(), Arc::clone(&shared));
                    let silence = Silence::default();
                    shared.lock().unwrap().silences.push(Arc::clone(&silence));
                    let task = tokio::task::spawn_local(async move {
                        let service =
                            service_fn(|request| pass(&client, &state, &silence, request));
                        let _ = http1::Builder::new()
                            .serve_connection(TokioIo::new(stream), service)
                            .await;
                    });
                    shared
                        .lock()
                        .unwrap()
                        .connections
                        .push_back(task.abort_handle());
                }
            });
        });
        Proxy {
            address: told.recv().unwrap(),
            state,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Puts a fault on the requests for which `rule` has one.
    pub(crate) fn fault(&self, rule: impl FnMut(&Method, &str) -> Option<Fault> + Send + 'static) {
        self.state.lock().unwrap().rule = Some(Box::new(rule));
    }

    /// The API server is down: connections end, and new ones at the first request.
    pub(crate) fn down(&self) {
        self.fault(|_, _| Some(Fault::HangUp));
        self.cut();
    }

    /// No more faults.
    pub(crate) fn heal(&self) {
        self.state.lock().unwrap().rule = None;
    }

    /// Ends every connection, watches too.
    pub(crate) fn cut(&self) {
        for connection in self.state.lock().unwrap().connections.drain(..) {
            connection.abort();
        }
    }

    /// Every connection stays open and brings nothing any more; new ones work.
    pub(crate) fn silence(&self) {
        for silence in self.state.lock().unwrap().silences.drain(..) {
            silence.store(true, Ordering::Relaxed);
        }
    }

    /// The requests so far, as `METHOD path`.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.state.lock().unwrap().seen.clone()
    }
}

async fn pass(
    client: &Client,
    state: &Mutex<State>,
    silence: &Silence,
    request: Request<Incoming>,
) -> Result<Response<Either<Muted, Full<Bytes>>>, Box<dyn std::error::Error + Send + Sync>> {
    if silence.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
    let fault = {
        let mut state = state.lock().unwrap();
        let (method, path) = (request.method().clone(), request.uri().to_string());
        state.seen.push(format!("{method} {path}"));
        state.rule.as_mut().and_then(|rule| rule(&method, &path))
    };
    match fault {
        Some(Fault::HangUp) => return Err("hung up".into()),
        Some(Fault::Answer(code, words)) => return Ok(refusal(code, words)),
        Some(Fault::Busy(seconds)) => return Ok(busy(seconds)),
        Some(Fault::Slow(pause)) => tokio::time::sleep(pause).await,
        Some(Fault::Stale) if request.uri().to_string().contains("watch=true") => {
            std::future::pending::<()>().await;
        }
        Some(Fault::Stale) => {
            if let Some(list) = state.lock().unwrap().lists.get(request.uri().path()) {
                return Ok(Response::new(Either::Right(Full::from(list.clone()))));
            }
        }
        None => {}
    }
    let list = is_list(&request).then(|| request.uri().path().to_owned());
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let answer = client
        .send(Request::from_parts(head, Body::from(body.to_vec())))
        .await?;
    if let Some(path) = list.filter(|_| answer.status().is_success()) {
        let list = answer.into_body().collect().await?.to_bytes();
        let mut state = state.lock().unwrap();
        state.lists.insert(path, list.clone());
        return Ok(Response::new(Either::Right(Full::from(list))));
    }
    let silence = Arc::clone(silence);
    Ok(answer.map(|body| Either::Left(Muted { body, silence })))
}

fn is_list(request: &Request<Incoming>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.starts_with("limit=") && !query.contains("continue=")
}

fn busy(seconds: u32) -> Response<Either<Muted, Full<Bytes>>> {
    let words = "Too many requests, please try again later.\n";
    let mut response = Response::new(Either::Right(Full::from(words)));
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response
        .headers_mut()
        .insert(header::RETRY_AFTER, seconds.into());
    response
}

fn refusal(code: u16, words: &str) -> Response<Either<Muted, Full<Bytes>>> {
    let details = (code == 429).then(|| json!({"retryAfterSeconds": RETRY_AFTER}));
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": words, "code": code,
        "reason": "Injected", "details": details,
    });
    let mut response = Response::new(Either::Right(Full::from(status.to_string())));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    if code == 429 {
        let headers = response.headers_mut();
        headers.insert(http::header::RETRY_AFTER, RETRY_AFTER.into());
    }
    response
}
