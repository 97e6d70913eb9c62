//! The keys and certificates in `tests/` are for these tests only. `ca.crt` has issued `server.crt`
//! and `client.crt`, both for the name `api.example`.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use rustls::server::WebPkiClientVerifier;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::*;
use crate::cluster::api::ApiServer;

const SERVER: &[u8] = include_bytes!("tests/server.crt");
const SERVER_KEY: &[u8] = include_bytes!("tests/server.key");
const CLIENT: &[u8] = include_bytes!("tests/client.crt");
const CLIENT_KEY: &[u8] = include_bytes!("tests/client.key");
const CA: &[u8] = include_bytes!("tests/ca.crt");
const OTHER: &[u8] = include_bytes!("tests/other.crt");

/// Starts a server that reports whether the client has shown a certificate. Returns the server's
/// address.
fn start_server() -> String {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(CA).unwrap())
        .unwrap();
    let clients = WebPkiClientVerifier::builder(Arc::new(roots));
    let server = ServerConfig::builder()
        .with_client_cert_verifier(clients.allow_unauthenticated().build().unwrap())
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(SERVER).unwrap()],
            PrivateKeyDer::from_pem_slice(SERVER_KEY).unwrap(),
        );
    let server = Arc::new(server.unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            // A client that refuses the server's certificate ends the connection.
            let _ = answer(&server, tcp.unwrap());
        }
    });
    address
}

fn answer(server: &Arc<ServerConfig>, tcp: TcpStream) -> std::io::Result<()> {
    let tls = ServerConnection::new(Arc::clone(server)).unwrap();
    let mut stream = BufReader::new(StreamOwned::new(tls, tcp));
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
    }
    let has_certificate = stream.get_ref().conn.peer_certificates().is_some();
    let text = has_certificate.to_string();
    write!(
        stream.get_mut(),
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    )
}

/// Writes a kubeconfig with the settings of `cluster` and `user`. Also writes the certificates and
/// the key, so that the settings can name their files.
fn kubeconfig(dir: &Path, cluster: &Value, user: &Value) -> PathBuf {
    for (name, pem) in [
        ("ca.crt", CA),
        ("client.crt", CLIENT),
        ("client.key", CLIENT_KEY),
    ] {
        std::fs::write(dir.join(name), pem).unwrap();
    }
    let kubeconfig = json!({
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": cluster}],
        "users": [{"name": "a", "user": user}],
    });
    let path = dir.join("kubeconfig");
    std::fs::write(&path, kubeconfig.to_string()).unwrap();
    path
}

fn run<T>(requests: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(requests)
}

/// Sends a request with the settings of `cluster` and `user`. Returns whether the server saw a
/// client certificate. Returns an error if the request failed.
fn ask(mut cluster: Value, user: &Value) -> Result<bool, String> {
    let dir = tempfile::tempdir().unwrap();
    cluster["server"] = start_server().into();
    let path = kubeconfig(dir.path(), &cluster, user);
    run(async {
        let server = ApiServer::from_kubeconfig(&path, "test").await;
        let server = server.map_err(|error| error.to_string())?;
        let found = server.find("/").await.map_err(|error| error.to_string())?;
        Ok(found.unwrap())
    })
}

fn base64(pem: &[u8]) -> String {
    BASE64_STANDARD.encode(pem)
}

#[test]
fn a_server_without_the_expected_certificate_is_refused() {
    let name = "api.example";
    for cluster in [
        json!({"certificate-authority": "ca.crt", "tls-server-name": name}),
        json!({"certificate-authority-data": base64(CA), "tls-server-name": name}),
        json!({"insecure-skip-tls-verify": true}),
    ] {
        assert_eq!(ask(cluster, &json!({})), Ok(false));
    }
    for (cluster, reason) in [
        (
            json!({"certificate-authority": "ca.crt"}),
            "not valid for name",
        ),
        (
            json!({"certificate-authority-data": base64(OTHER), "tls-server-name": name}),
            "UnknownIssuer",
        ),
        // The exact error differs on a node that has no certificate authorities at all.
        (json!({"tls-server-name": name}), "certificate"),
    ] {
        let error = ask(cluster, &json!({})).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn the_client_shows_its_certificate() {
    let cluster = || json!({"insecure-skip-tls-verify": true});
    for user in [
        json!({"client-certificate": "client.crt", "client-key": "client.key"}),
        json!({"client-certificate-data": base64(CLIENT), "client-key-data": base64(CLIENT_KEY)}),
        // Kubelet keeps its certificate and its key in one file.
        json!({
            "client-certificate-data": base64(&[CLIENT, CLIENT_KEY].concat()),
            "client-key-data": base64(&[CLIENT, CLIENT_KEY].concat()),
        }),
    ] {
        assert_eq!(ask(cluster(), &user), Ok(true));
    }
    for user in [
        json!({"client-certificate": "client.crt"}),
        json!({"client-certificate": "client.crt", "client-key": "ca.crt"}),
        json!({"client-certificate": "client.crt", "client-key-data": base64(SERVER_KEY)}),
        json!({"client-certificate-data": "?", "client-key": "client.key"}),
    ] {
        let error = ask(cluster(), &user).unwrap_err();
        assert!(error.starts_with("kubeconfig /"), "{error}");
    }
}

#[test]
fn a_new_certificate_authority_is_a_new_credential() {
    let dir = tempfile::tempdir().unwrap();
    let open = async |authority: &[u8]| {
        let authority = base64(authority);
        let cluster =
            json!({"server": "https://127.0.0.1:1", "certificate-authority-data": authority});
        let path = kubeconfig(dir.path(), &cluster, &json!({}));
        ApiServer::from_kubeconfig(&path, "test").await.unwrap()
    };
    run(async {
        assert!(open(CA).await.has_credentials_of(&open(CA).await));
        assert!(!open(CA).await.has_credentials_of(&open(OTHER).await));
    });
}
