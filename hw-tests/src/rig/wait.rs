//! Waits for the kernel.

use std::time::{Duration, Instant};

use crate::case::Stop;

/// Asks until there is an answer, for up to 30 s: software emulation beside a build is slow.
pub(crate) fn until<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> Result<T, Stop> {
    const LIMIT: Duration = Duration::from_secs(30);
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = answer() {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            return Err(Stop::failed(format!(
                "{what}: not within {}s",
                LIMIT.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
