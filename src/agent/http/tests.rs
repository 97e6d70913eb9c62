//! What the pages show, and what a client that means harm can do.

use std::io::{Read, Write};
use std::net::TcpStream as Client;

use tokio::task::LocalSet;

use super::*;

/// Serves while `act` has the address, on a thread of its own.
fn served<T: Send + 'static>(act: impl FnOnce(SocketAddr) -> T + Send + 'static) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let listener = listen("127.0.0.1:0".parse().unwrap()).await;
        let address = listener.local_addr().unwrap();
        let metrics = Rc::new(Metrics::new());
        tokio::task::spawn_local(serve_on(listener, metrics, Rc::default(), Rc::default()));
        tokio::task::spawn_blocking(move || act(address))
            .await
            .unwrap()
    })
}

fn ask(address: SocketAddr, request: &str) -> String {
    let mut client = Client::connect(address).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut answer = String::new();
    // A request that is refused early may be cut off.
    let _ = client.write_all(request.as_bytes());
    let _ = client.read_to_string(&mut answer);
    answer
}

#[test]
fn a_thousand_half_sent_requests_hold_a_few_connections_and_keep_nobody_out() {
    served(|address| {
        let half = |_| {
            let mut client = Client::connect(address).unwrap();
            client.write_all(b"GET /metrics HTTP/1.1\r\nhost").unwrap();
            client
        };
        let clients: Vec<Client> = (0..1000).map(half).collect();
        let answer = ask(address, "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count();
        assert!(descriptors < 1000 + 500, "{descriptors}");
        let open = clients.into_iter().filter_map(|mut client| {
            client.set_nonblocking(true).unwrap();
            let read = client.read(&mut [0; 1]);
            read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
                .then_some(())
        });
        assert!(open.count() <= CONNECTIONS);
    });
}

#[test]
fn a_header_has_a_limit() {
    served(|address| {
        let request = format!("GET /healthz HTTP/1.1\r\nx: {}", "y".repeat(64 << 10));
        let answer = ask(address, &request);
        assert!(!answer.contains(" 200 "), "{answer}");
    });
}

#[test]
fn the_agent_is_ready_once_both_lists_are_whole() {
    let metrics = Metrics::new();
    let cache = Cache::default();
    let (status, text) = page("/readyz", &metrics, &cache, &[]);
    assert_eq!(
        (status.as_u16(), text.as_str()),
        (503, "not listed yet: pods, definitions\n")
    );
    cache.pods.end();
    cache.definitions.begin("1".into());
    assert_eq!(page("/readyz", &metrics, &cache, &[]).0.as_u16(), 200);
    assert_eq!(page("/healthz", &metrics, &cache, &[]).0.as_u16(), 200);
    assert_eq!(page("/", &metrics, &cache, &[]).0.as_u16(), 404);
}

#[test]
fn metrics_are_announced_as_what_they_are() {
    let metrics = Metrics::new();
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

#[test]
fn an_address_that_somebody_has_is_taken_once_it_is_free() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap();
        let listening = tokio::task::spawn_local(listen(address));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!listening.is_finished());
        drop(taken);
        assert_eq!(listening.await.unwrap().local_addr().unwrap(), address);
    });
}
