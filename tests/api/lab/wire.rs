//! Between the agent and the API server, as a load balancer that knows nothing of HTTP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Forwards connections byte by byte.
pub(crate) struct Wire {
    address: SocketAddr,
    silences: Arc<Mutex<Vec<Arc<AtomicBool>>>>,
    held_until: Arc<Mutex<Instant>>,
}

impl Wire {
    /// Starts one to a port of this host, on threads that end with the process.
    pub(crate) fn start(port: u16) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let silences = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&silences);
        let held_until = Arc::new(Mutex::new(Instant::now()));
        let held = Arc::clone(&held_until);
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let near = near.unwrap();
                let far = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let silence = Arc::new(AtomicBool::new(false));
                shared.lock().unwrap().push(Arc::clone(&silence));
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let (silence, held) = (Arc::clone(&silence), Arc::clone(&held));
                    std::thread::spawn(move || forward(from, to, &silence, &held));
                }
            }
        });
        Wire {
            address,
            silences,
            held_until,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Nothing passes for so long, on any connection.
    pub(crate) fn hold(&self, time: Duration) {
        *self.held_until.lock().unwrap() = Instant::now() + time;
    }

    /// Every connection stays open and brings nothing any more; new ones work.
    pub(crate) fn silence(&self) {
        for silence in self.silences.lock().unwrap().drain(..) {
            silence.store(true, Ordering::Relaxed);
        }
    }
}

fn forward(
    mut from: TcpStream,
    mut to: TcpStream,
    silence: &AtomicBool,
    held_until: &Mutex<Instant>,
) {
    let mut buffer = [0; 1 << 14];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if silence.load(Ordering::Relaxed) {
            // It is taken, as the kernel does, and goes nowhere.
            continue;
        }
        let until = *held_until.lock().unwrap();
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        if to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
    if !silence.load(Ordering::Relaxed) {
        let _ = to.shutdown(std::net::Shutdown::Write);
    }
}
