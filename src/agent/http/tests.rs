//! Tests the pages, and the limits that protect the agent from malicious clients.

use std::io::{Read, Write};
use std::net::TcpStream as Client;

use tokio::task::LocalSet;

use super::*;

/// Serves the pages. Runs `act` on another thread, with the address of the pages.
fn served<T: Send + 'static>(act: impl FnOnce(SocketAddr) -> T + Send + 'static) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let listener = listen("127.0.0.1:0".parse().unwrap()).await;
        let address = listener.local_addr().unwrap();
        let pages = Pages {
            metrics: Rc::new(Metrics::new()),
            cache: Rc::default(),
            devices: Rc::default(),
        };
        tokio::task::spawn_local(pages.serve_on(listener));
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
    // The server may close the connection before it has read the whole request.
    let _ = client.write_all(request.as_bytes());
    let _ = client.read_to_string(&mut answer);
    answer
}

#[test]
fn a_thousand_incomplete_requests_do_not_keep_other_clients_out() {
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
fn the_agent_is_ready_once_pods_and_definitions_are_synced() {
    let cache = Cache::default();
    let (status, text) = health("/readyz", &cache);
    assert_eq!(
        (status.as_u16(), text.as_str()),
        (503, "not synced yet: pods, definitions\n")
    );
    cache.pods.hear();
    cache.definitions.begin_watch();
    assert_eq!(health("/readyz", &cache).0.as_u16(), 200);
    assert_eq!(health("/healthz", &cache).0.as_u16(), 200);
    assert_eq!(health("/", &cache).0.as_u16(), 404);
}

#[test]
fn a_scraper_gets_a_format_that_it_accepts() {
    served(|address| {
        let get = |path: &str, accept: &str| {
            let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n{accept}\r\n");
            let answer = ask(address, &request);
            let (head, page) = answer.split_once("\r\n\r\n").unwrap();
            let mut lines = head.lines();
            let kind = lines.find_map(|line| line.strip_prefix("content-type: "));
            (kind.unwrap().to_owned(), page.to_owned())
        };
        let asked = "accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3\r\n";
        let (kind, page) = get(METRICS, asked);
        assert_eq!(
            kind,
            "application/openmetrics-text; version=1.0.0; charset=utf-8"
        );
        assert!(page.ends_with("# EOF\n"), "{page}");
        assert!(
            page.contains("# TYPE jackfield_refused_messages counter\n"),
            "{page}"
        );
        for accept in ["", "accept: text/plain\r\n", "accept: \u{e9}\r\n"] {
            let (kind, page) = get(METRICS, accept);
            assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8", "{accept}");
            let counter = "# TYPE jackfield_refused_messages_total counter\n";
            assert!(page.contains(counter) && !page.contains("# EOF"), "{page}");
        }
        assert_eq!(get("/healthz", asked).0, TEXT);
    });
}

#[test]
fn the_agent_listens_once_an_occupied_address_is_free() {
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
