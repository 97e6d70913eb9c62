//! Threads for simulated processes. A thread runs one job after another, because starting a thread
//! takes longer than most simulated calls.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

type Job = Box<dyn FnOnce() + Send>;

/// The idle threads.
#[derive(Default, Clone)]
pub(super) struct Pool {
    idle: Arc<Mutex<Vec<Sender<Job>>>>,
}

impl Pool {
    /// Runs `job` on an idle thread, or on a new one.
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let idle = self.idle.lock().unwrap().pop();
        let thread = idle.unwrap_or_else(|| self.start());
        thread.send(Box::new(job)).unwrap();
    }

    fn start(&self) -> Sender<Job> {
        let (sender, jobs) = channel::<Job>();
        let (idle, own) = (Arc::downgrade(&self.idle), sender.clone());
        let serve = move || {
            for job in jobs {
                job();
                match idle.upgrade() {
                    Some(idle) => idle.lock().unwrap().push(own.clone()),
                    None => return,
                }
            }
        };
        let thread = std::thread::Builder::new().stack_size(2 << 20);
        thread.spawn(serve).unwrap();
        sender
    }
}
