//! One simulated process of Jackfield: a call of the runtime, or a worker that a call started.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Value, json};

use super::cluster::{Agent, NAMESPACE};
use super::delegates::Delegates;
use super::kernel::Links;
use super::machine::{Killed, Process};
use super::place::Place;
use super::scheduler::TaskId;
use super::simulated::Simulation;
use crate::cni::{RawObject, Verb};
use crate::delegate::Ours;
use crate::journal::{Journal, Key};
use crate::kernel::{DeviceLinks, KernelError, PodLinks, PodNetns};
use crate::machine;
use crate::operation::{
    Context, Failure, Host, Note, Stopwatch, Work, add, change, check, del, gc, recovery, status,
};
use crate::request::{Call, Request};

/// What a process does.
#[derive(Debug, Clone)]
pub(super) enum Job {
    Verb {
        verb: Verb,
        container: String,
        netns: Option<String>,
    },
    /// A GC. The list contains the containers that the runtime keeps.
    Collect(Vec<String>),
    Worker(Work, Key),
}

/// How a call has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    /// The call failed with this code and message.
    Failure(u32, String),
    Killed,
}

/// Runs one simulated process of Jackfield until it ends. `task` is the caller's task, a thread
/// that the scheduler controls. The process runs on this thread.
pub(super) fn run(sim: &Arc<Simulation>, task: TaskId, job: &Job) -> Outcome {
    let process = Rc::new(Process::start(sim, task, job));
    sim.say(|| format!("[{}] {job:?}", process.pid));
    fastrand::seed(u64::from(sim.below(u32::MAX)));
    let machine: Rc<dyn machine::Machine> = Rc::clone(&process) as Rc<dyn machine::Machine>;
    let act = || machine::on(machine, || serve(&process, job));
    let outcome = catch_unwind(AssertUnwindSafe(act));
    process.end();
    let outcome = match outcome {
        Ok(Some(Ok(document))) => {
            check_document(sim, job, &document, false);
            if let Job::Verb {
                verb: Verb::Del,
                container,
                ..
            } = job
                && let Some(locked) = process.locked.get()
            {
                sim.world().deleted.insert(container.clone(), locked);
            }
            Outcome::Success
        }
        Ok(Some(Err(failure))) => {
            let error = failure.to_cni();
            let version = crate::cni::Version::LATEST;
            check_document(sim, job, &error.to_json(version), true);
            Outcome::Failure(error.code, error.msg)
        }
        Ok(None) => Outcome::Success,
        Err(payload) if payload.is::<Killed>() => {
            sim.scheduler.revive(task);
            let mut world = sim.world();
            world.delegates.retain(|_, running| *running != process.pid);
            Outcome::Killed
        }
        Err(payload) => {
            let mut world = sim.world();
            world.breaks(format!("{job:?} panicked"));
            drop(world);
            if sim.is_verbose {
                resume_unwind(payload);
            }
            Outcome::Killed
        }
    };
    sim.say(|| format!("[{}] ends: {outcome:?}", process.pid));
    outcome
}

/// Checks that the output of an ADD or a failed call is one JSON object, and that the output of
/// any other call is empty. `is_needed` is true for a failed call.
fn check_document(sim: &Simulation, job: &Job, document: &str, is_needed: bool) {
    let documents = serde_json::Deserializer::from_str(document).into_iter::<Value>();
    let documents: Vec<_> = documents.collect();
    let is_add = matches!(
        job,
        Job::Verb {
            verb: Verb::Add,
            ..
        }
    );
    let is_right = match documents.as_slice() {
        [] => !is_add && !is_needed,
        [Ok(Value::Object(_))] => is_add || is_needed,
        _ => false,
    };
    if !is_right {
        let rule = format!(
            "{job:?}: wrong output {document:?}; an ADD or a failed call must print one JSON \
             object, and any other call must print nothing"
        );
        sim.world().breaks(rule);
    }
}

fn conf(place: &Place) -> Value {
    let cluster = json!({
        "cniVersion": "1.1.0", "name": "cluster", "type": "bridge", "isDefaultGateway": true,
    });
    json!({
        "cniVersion": "1.1.0", "name": "jackfield", "type": "jackfield",
        "agentSocket": place.path("agent.sock"), "binDir": place.bin(),
        "journalDir": place.journal(), "sysfsRoot": place.path("sys"),
        "devInfoDir": place.devinfo(), "kubeletCheckpoint": place.checkpoint(),
        "cniDir": place.path("multus"), "confDir": place.path("net.d"),
        "dynamicAttachment": true, "delegates": [cluster],
    })
}

fn request(process: &Process, job: &Job) -> Option<Request> {
    let (sim, place) = (&process.sim, &process.sim.place);
    let mut conf = conf(place);
    let (verb, container, netns) = match job {
        Job::Verb {
            verb,
            container,
            netns,
        } => (*verb, container.clone(), netns.clone()),
        Job::Collect(kept) => {
            let valid = kept
                .iter()
                .map(|it| json!({"containerID": it, "ifname": "eth0"}));
            conf["cni.dev/valid-attachments"] = valid.collect();
            (Verb::Gc, String::new(), None)
        }
        Job::Worker(Work::Retry, key) => (Verb::Del, key.container.to_string(), None),
        Job::Worker(Work::Change, key) => {
            let header = Journal::new(&place.journal()).header(key)?;
            let conf = RawObject::parse(conf.to_string().as_bytes()).unwrap();
            return change::request(&header, "/nowhere", conf).ok();
        }
    };
    let uid = sim
        .world()
        .sandboxes
        .get(&container)
        .map(|it| it.uid.clone());
    let call = Call::read(|name| match name {
        "CNI_COMMAND" => Some(verb.as_str().to_owned()),
        "CNI_CONTAINERID" => Some(container.clone()),
        "CNI_IFNAME" => Some("eth0".to_owned()),
        "CNI_NETNS" => netns
            .as_ref()
            .map(|it| place.netns(it).display().to_string()),
        "CNI_PATH" => Some("/nowhere".to_owned()),
        "CNI_ARGS" => uid.as_ref().map(|uid| {
            format!("K8S_POD_NAMESPACE={NAMESPACE};K8S_POD_NAME=p{uid};K8S_POD_UID={uid}")
        }),
        _ => None,
    });
    let conf = RawObject::parse(conf.to_string().as_bytes()).unwrap();
    Some(Request::for_people(call.unwrap(), conf).unwrap())
}

/// Runs the job and returns its answer; `None` for a worker, which writes no answer.
fn serve(process: &Rc<Process>, job: &Job) -> Option<Result<String, Failure>> {
    let sim = &process.sim;
    let request = request(process, job)?;
    let own = Arc::clone(sim);
    let start_worker = move |_: &Context<'_>, work: Work, key: &Key| {
        let (sim, job) = (Arc::clone(&own), Job::Worker(work, key.clone()));
        let scheduler = Arc::clone(&sim.scheduler);
        scheduler.spawn(move |task| drop(run(&sim, task, &job)));
        Ok(())
    };
    let (one, other) = (Rc::clone(process), Rc::clone(process));
    let links = move |netns: &PodNetns| -> Result<Box<dyn PodLinks>, KernelError> {
        Ok(Box::new(Links::of(&one, Some(netns))))
    };
    let devices = move |netns: Option<&PodNetns>| -> Result<Box<dyn DeviceLinks>, KernelError> {
        Ok(Box::new(Links::of(&other, netns)))
    };
    let host = Host {
        cluster: &Agent::new(Rc::clone(process)),
        exec: &Delegates(Rc::clone(process)),
        links: &links,
        devices: &devices,
        start_worker: &start_worker,
        journal: Journal::new(&sim.place.journal()),
        lock_dir: sim.place.locks(),
        ours: Ours::this_process().unwrap(),
        stopwatch: &Stopwatch::default(),
    };
    let limits = request.config.deadlines;
    let limit = match (job, request.call.verb) {
        (Job::Worker(Work::Change, _), _) | (_, Verb::Add) => limits.add,
        (_, Verb::Del) => limits.del,
        (_, Verb::Check) => limits.check,
        (_, Verb::Gc) => limits.gc,
        (_, Verb::Status | Verb::Version) => limits.status,
    };
    let context = Context::new(&host, &request, limit);
    let nothing = |()| String::new();
    let outcome = match (job, request.call.verb) {
        (Job::Worker(Work::Retry, key), _) => {
            recovery::retry::retry(&context, key);
            None
        }
        (Job::Worker(Work::Change, _), _) => {
            let _ = change::change(&context);
            None
        }
        (_, Verb::Add) => Some(
            add::add(&context)
                .and_then(|added| Ok(added.result.to_json(request.config.version)?)),
        ),
        (_, Verb::Del) => Some(del::del(&context).map(nothing)),
        (_, Verb::Check) => Some(check::check(&context).map(|_| String::new())),
        (_, Verb::Gc) => Some(gc::gc(&context).map(|_| String::new())),
        (_, Verb::Status | Verb::Version) => Some(status::status(&context).map(|_| String::new())),
    };
    for note in context.notes() {
        sim.say(|| format!("[{}] note: {note}", process.pid));
        if let Note::GivenUp(_) = note {
            let container = match context.request.call.attachment() {
                Ok((container, _)) => container.to_string(),
                Err(_) => String::new(),
            };
            sim.world().given_up.insert(container);
        }
    }
    outcome
}
