//! Measures how long it takes to read a machine with 256 virtual functions, as medians of 200 runs.
//!
//! Run it with `cargo bench -p device-info --features fixtures`. Fails if reading one device takes
//! 1 ms or more, or reading all devices takes 50 ms or more.
#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use device_info::{Facts, Inventory, fixtures};

const RUNS: usize = 200;
const ONE_DEVICE: Duration = Duration::from_millis(1);
const ALL_DEVICES: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    let mut kept = true;
    for (name, capture, vf) in [
        (
            "legacy mode",
            fixtures::unverified_e810(256),
            "0000:a2:10.0",
        ),
        (
            "switchdev mode",
            fixtures::unverified_connectx6(256),
            "0000:3b:10.0",
        ),
    ] {
        let Ok(directory) = tempfile::tempdir() else {
            return ExitCode::FAILURE;
        };
        let Ok(sysfs) = capture.build(directory.path()) else {
            return ExitCode::FAILURE;
        };
        let mut report = |what: &str, limit: Duration, work: &mut dyn FnMut()| {
            let took = median(work);
            println!("256 VFs in {name}: {what:<30} {took:>10.1?}  (limit {limit:?})");
            kept &= took < limit;
        };
        report("one device", ONE_DEVICE, &mut || {
            black_box(Facts::read(&sysfs, vf, &mut |handle| {
                capture.switch(handle).cloned()
            }));
        });
        report("one device, without devlink", ONE_DEVICE, &mut || {
            black_box(Facts::read(&sysfs, vf, &mut |_| None));
        });
        report("all devices", ALL_DEVICES, &mut || {
            black_box(Inventory::read(&sysfs, &mut |handle| {
                capture.switch(handle).cloned()
            }));
        });
    }
    if kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn median(work: &mut dyn FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times.get(RUNS / 2).copied().unwrap_or_default()
}
