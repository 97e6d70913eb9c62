//! How long a soak runs, from the environment.

use std::env;
use std::str::FromStr;
use std::time::Duration;

/// How many pods come and go at a time.
pub(super) const AT_A_TIME: usize = 30;

/// What `scripts/soak` sets. Without its variables, the soak is a part of the stage `api` and short.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    /// The soak ends after so many pods.
    pub(super) pods: u32,
    /// Decides what happens to which pod.
    pub(super) seed: u64,
    /// The soak ends after this time.
    pub(super) time: Duration,
    /// Whether other tests run at the same time.
    pub(super) is_beside_others: bool,
}

impl Settings {
    /// Reads SOAK_PODS, SOAK_SEED and SOAK_MINUTES. `time` counts without SOAK_MINUTES.
    pub(super) fn of_environment(time: Duration) -> Settings {
        let minutes: Option<f64> = variable("SOAK_MINUTES");
        Settings {
            pods: variable("SOAK_PODS").unwrap_or(20_000),
            seed: variable("SOAK_SEED").unwrap_or(1),
            time: minutes.map_or(time, |it| Duration::from_secs_f64(it * 60.0)),
            is_beside_others: minutes.is_none(),
        }
    }

    /// The command that runs the same soak again; `cluster` is the one of its clusters.
    pub(super) fn command(&self, cluster: &str) -> String {
        format!(
            "scripts/soak --cluster {cluster} --pods {} --seed {} --minutes {:.2}",
            self.pods,
            self.seed,
            self.time.as_secs_f64() / 60.0
        )
    }
}

fn variable<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    let value = text.parse();
    Some(value.unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}
