//! Rounds of calls on all nodes of an axis.

use std::time::Duration;

use crate::Outcome;
use crate::axis::Axis;
use crate::call::Verb;
use crate::cell::Cell;
use crate::node::Node;

/// Rounds that count, after those that fill the caches.
const ROUNDS: usize = 30;
const WARM_UP: usize = 2;
/// A call that has taken so long in all rounds together is measured no more, except for ADD and DEL,
/// which every round needs.
const ENOUGH: Duration = Duration::from_secs(2);
/// The fewest calls of a median.
const FEWEST: usize = 5;

/// The longest pause after a call. A call leaves work to the kernel, such as the notifications of
/// many renamed interfaces, which would slow down the next call. A pause is as long as the call.
const PAUSE: Duration = Duration::from_millis(50);

/// Whether a call is measured once, in the last round. An agent keeps up to 2,048 definitions, so
/// only the first `doctor` reads all of them.
fn is_once(axis: Axis, verb: Verb) -> bool {
    (axis, verb) == (Axis::Definitions, Verb::Doctor)
}

/// Measures every call on every node, each round on all nodes in turn, so that what else the
/// machine does meets all of them.
///
/// # Errors
/// If a call fails.
pub(crate) fn measure(axis: Axis, nodes: &mut [(usize, Node)]) -> Outcome<Vec<Cell>> {
    type Calls = Vec<(f64, f64)>;
    let mut all: Vec<[Calls; Verb::ALL.len()]> = nodes.iter().map(|_| Default::default()).collect();
    for round in 0..WARM_UP + ROUNDS {
        for ((_, node), calls) in nodes.iter_mut().zip(&mut all) {
            for (verb, calls) in Verb::ALL.into_iter().zip(calls) {
                let spent: f64 = calls.iter().map(|(time, _)| time).sum();
                let is_enough = calls.len() >= FEWEST && spent > ENOUGH.as_secs_f64() * 1000.0;
                let is_early = is_once(axis, verb) && round + 1 < WARM_UP + ROUNDS;
                if is_early || is_enough && !matches!(verb, Verb::Add | Verb::Del) {
                    continue;
                }
                if verb == Verb::Status {
                    // GC and `doctor` leave the processor's caches to themselves.
                    node.call(verb)?;
                }
                let called = node.call(verb)?;
                std::thread::sleep(called.took.min(PAUSE));
                if round >= WARM_UP {
                    let time = called.took.as_secs_f64() * 1000.0;
                    calls.push((time, called.faults as f64));
                }
            }
        }
    }
    let cells = nodes.iter().zip(&all).flat_map(|((count, _), calls)| {
        let calls = Verb::ALL.into_iter().zip(calls);
        calls.map(|(verb, calls)| Cell::of(axis, *count, verb, calls))
    });
    Ok(cells.collect())
}
