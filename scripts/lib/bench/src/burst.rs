//! Many pods at a time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::contender::{Contender, Verb};
use crate::figures::Random;

/// How many pods there are, and how many of them at a time.
pub(crate) const PODS: usize = 100;
pub(crate) const AT_A_TIME: usize = 50;
/// How often; the best counts, since a burst meets whatever else the machine does.
pub(crate) const TIMES: usize = 3;

/// Pods a second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Burst {
    /// Attached.
    pub(crate) add: f64,
    /// Detached.
    pub(crate) del: f64,
}

/// The best burst of each contender.
///
/// # Errors
/// When a call fails.
pub(crate) fn measure(all: &[Contender], random: &mut Random) -> Result<Vec<Burst>, String> {
    let mut best = vec![Burst::default(); all.len()];
    for _ in 0..TIMES {
        for at in random.order(all.len()) {
            let (Some(contender), Some(best)) = (all.get(at), best.get_mut(at)) else {
                continue;
            };
            best.add = best.add.max(burst(contender, Verb::Add)?);
            best.del = best.del.max(burst(contender, Verb::Del)?);
        }
    }
    Ok(best)
}

fn burst(contender: &Contender, verb: Verb) -> Result<f64, String> {
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let since = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let pod = next.fetch_add(1, Ordering::Relaxed);
                    if pod >= PODS {
                        return;
                    }
                    if let Err(cause) = contender.call(verb, pod)
                        && let Ok(mut failure) = failure.lock()
                    {
                        failure.get_or_insert(cause);
                    }
                }
            });
        }
    });
    let took = since.elapsed().as_secs_f64();
    match failure.into_inner() {
        Ok(None) => {
            #[allow(clippy::cast_precision_loss, reason = "a hundred")]
            let pods = PODS as f64;
            Ok(pods / took)
        }
        Ok(Some(cause)) => Err(cause),
        Err(_) => Err("a thread of the burst panicked".to_owned()),
    }
}
