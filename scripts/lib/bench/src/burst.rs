//! Many pods at a time.

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
    /// How many calls have failed in all bursts together; a burst with any counts for nothing.
    pub(crate) failed: usize,
}

/// The best burst of each contender. One that does not stand it is put back, so that the next
/// finds what it needs.
pub(crate) fn measure(all: &[Contender], random: &mut Random) -> Vec<Burst> {
    let mut best = vec![Burst::default(); all.len()];
    for _ in 0..TIMES {
        for at in random.order(all.len()) {
            let (Some(contender), Some(best)) = (all.get(at), best.get_mut(at)) else {
                continue;
            };
            let mut failed = 0;
            let (add, del) = (burst(contender, Verb::Add), burst(contender, Verb::Del));
            for (outcome, best) in [(add, &mut best.add), (del, &mut best.del)] {
                match outcome {
                    Ok(speed) => *best = best.max(speed),
                    Err(calls) => failed += calls,
                }
            }
            if failed > 0 {
                best.failed += failed;
                let bare = all.first().into_iter();
                bare.for_each(|bare| (0..PODS).for_each(|netns| bare.put_back(netns)));
            }
        }
    }
    best
}

/// Pods a second, or how many calls failed.
fn burst(contender: &Contender, verb: Verb) -> Result<f64, usize> {
    let next = AtomicUsize::new(0);
    let failed = AtomicUsize::new(0);
    let since = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let pod = next.fetch_add(1, Ordering::Relaxed);
                    if pod >= PODS {
                        return;
                    }
                    if contender.call(verb, pod).is_err() {
                        failed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let took = since.elapsed().as_secs_f64();
    match failed.into_inner() {
        0 => {
            #[allow(clippy::cast_precision_loss, reason = "a hundred")]
            let pods = PODS as f64;
            Ok(pods / took)
        }
        failed => Err(failed),
    }
}
