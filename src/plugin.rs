//! One call of the runtime: environment and stdin in, exactly one JSON document out.
//!
//! Whatever happens, a panic included, the runtime gets one document: libcni drops stderr as soon
//! as stdout holds something, so the cause has to be in there (CNI 1.1.0 §2, §5).

mod log;
pub mod retry;

use std::io::{self, Read};
use std::process::ExitCode;
use std::time::Instant;

use crate::cluster::{Agent, Cluster, Folder};
use crate::cni::{self, RawObject, Verb, Version};
use crate::console;
use crate::delegate::{DEPTH_VARIABLE, Depth, DepthError, Ours, Processes};
use crate::journal::Journal;
use crate::kernel::Netlink;
use crate::operation::{self, Context, Failure, Host, Stopwatch, Timed};
use crate::request::log::Level;
use crate::request::{self, Call, NodeConfig, Request, RequestError, Source, read_stdin};

/// Where the sandboxes' locks are.
const LOCK_DIR: &str = "/run/jackfield/locks";

/// The plugin's whole life.
pub fn main() -> ExitCode {
    panic_as_json();
    let mut version = Version::LATEST;
    answer(&mut version).unwrap_or_else(|failure| give(&Err(failure), version))
}

/// Gives the runtime its answer, which is empty where the specification has none.
fn give(outcome: &Result<String, Failure>, version: Version) -> ExitCode {
    match outcome {
        Ok(document) => match console::write(document) {
            Ok(()) => ExitCode::SUCCESS,
            Err(cause) => {
                console::say(&format!(
                    "jackfield: the answer cannot be written to stdout: {cause}; \
                     the runtime must send DEL"
                ));
                ExitCode::FAILURE
            }
        },
        Err(failure) => {
            let _ = console::write(&failure.to_cni().to_json(version));
            ExitCode::FAILURE
        }
    }
}

/// Runs the verb and gives the answer; a failure that is returned is still to be given. `version`
/// becomes the one that the runtime speaks as soon as it is known.
fn answer(version: &mut Version) -> Result<ExitCode, Failure> {
    let call = Call::read(|name| std::env::var(name).ok())?;
    if call.verb == Verb::Version {
        return Ok(give(&Ok(supported_versions()), *version));
    }
    let stdin = read_stdin(io::stdin().lock()).map_err(RequestError::from)?;
    let conf = RawObject::parse_stdin(&stdin).map_err(RequestError::of_stdin);
    if let Some(spoken) = conf
        .as_ref()
        .ok()
        .and_then(|conf| request::version(conf).ok())
    {
        *version = spoken;
    }
    if let Err(circle) = depth() {
        return Ok(give(&refused(call.verb, circle), *version));
    }
    let request = Request::new(call, conf?)?;
    let log = &request.config.log;
    for line in &request.config.warnings {
        log.warn(&named(&request.call), line);
    }
    let begun = Instant::now();
    with_host(&request.config, |host| {
        let outcome = run(host, &request);
        let exit = give(&outcome, *version);
        let failure = outcome.err().map(|failure| failure.to_cni());
        let mut figures = host.stopwatch.stop(&request.call, failure.as_ref());
        // An ADD spares its pod the time: it adds one.
        if request.call.verb != Verb::Add {
            figures.on_record = Some(host.journal.count());
        }
        let silent = operation::agent_absence::keep(host, &request.config);
        figures.agent_silent = silent.map(|silent| silent.as_secs());
        let record = || host.journal.lend(&host.stopwatch.record()?).ok();
        host.cluster.over(figures, &record);
        match failure {
            None => log.write(Level::Verbose, || {
                format!("{}: done in {:.1?}", named(&request.call), begun.elapsed())
            }),
            Some(error) => log.write(Level::Error, || {
                let name = named(&request.call);
                format!("{name}: {}", error.msg)
            }),
        }
        Ok(exit)
    })
}

/// The call as the log has it: what was asked, and of which pod.
fn named(call: &Call) -> String {
    let given = |key| call.args.get(key).unwrap_or("-");
    let pod = format!("{}/{}", given("K8S_POD_NAMESPACE"), given("K8S_POD_NAME"));
    match call.attachment() {
        Ok((container, ifname)) => {
            format!(
                "{} pod {pod}, container {container}, interface {ifname}",
                call.verb
            )
        }
        Err(_) => call.verb.to_string(),
    }
}

fn depth() -> Result<Depth, DepthError> {
    Depth::parse(std::env::var_os(DEPTH_VARIABLE).as_deref())
}

/// What a Jackfield below another one answers. Its ADD is always refused, so there is nothing to
/// detach: a DEL that failed would stay owed for ever.
fn refused(verb: Verb, circle: DepthError) -> Result<String, Failure> {
    match verb {
        Verb::Del | Verb::Gc => Ok(String::new()),
        Verb::Add | Verb::Check | Verb::Status | Verb::Version => Err(circle.into()),
    }
}

/// Takes away what calls leave in `/run/jackfield` between them, once there are no more calls.
pub fn forget_locks() {
    let locks = std::path::Path::new(LOCK_DIR);
    let _ = std::fs::remove_dir(locks);
    if let Some(run) = locks.parent() {
        operation::agent_absence::forget(run);
        let _ = std::fs::remove_dir(run.join("agent"));
        let _ = std::fs::remove_dir(run);
    }
}

/// Acts on the node that `config` describes, with everything real behind its seams.
///
/// # Errors
/// When delegates call each other in a circle, and those of `act`.
pub fn with_host<T>(
    config: &NodeConfig,
    act: impl FnOnce(&Host<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let cluster: Box<dyn Cluster> = match &config.source {
        Source::Folder(folder) => Box::new(Folder::new(folder.clone())),
        Source::Cluster {
            agent_socket,
            kubeconfig,
        } => Box::new(Agent::new(
            agent_socket,
            kubeconfig.as_deref(),
            &config.journal_dir,
        )),
    };
    let (stopwatch, processes) = (Stopwatch::default(), Processes::new(depth()?));
    act(&Host {
        cluster: cluster.as_ref(),
        exec: &Timed {
            exec: &processes,
            stopwatch: &stopwatch,
        },
        links: &|netns| Ok(Box::new(Netlink::in_netns(netns)?)),
        devices: &|netns| {
            let links = netns.map_or_else(Netlink::here, Netlink::in_netns)?;
            Ok(Box::new(links))
        },
        retry: &retry::begin,
        journal: Journal::new(&config.journal_dir),
        lock_dir: LOCK_DIR.into(),
        ours: Ours::this_process().map_err(Failure::Ourselves)?,
        stopwatch: &stopwatch,
    })
}

fn run(host: &Host<'_>, request: &Request) -> Result<String, Failure> {
    let limits = request.config.deadlines;
    match request.call.verb {
        Verb::Add => {
            let context = Context::new(host, request, limits.add);
            let outcome = operation::add::add(&context);
            warn_of_notes(&context);
            let added = outcome?;
            for entry in &added.status {
                let line = || format!("{}: {}", named(&request.call), serde_json::json!(entry));
                request.config.log.write(Level::Debug, line);
            }
            Ok(added.result.to_json(request.config.version)?)
        }
        Verb::Del => {
            let context = Context::new(host, request, limits.del);
            without_answer(&context, operation::del::del(&context))
        }
        Verb::Check => {
            let context = Context::new(host, request, limits.check);
            without_answer(&context, operation::check::check(&context))
        }
        Verb::Gc => {
            let context = Context::new(host, request, limits.gc);
            without_answer(&context, operation::gc::gc(&context))
        }
        Verb::Status => {
            let context = Context::new(host, request, limits.status);
            without_answer(&context, operation::status::status(&context))
        }
        Verb::Version => Ok(supported_versions()),
    }
}

/// The verbs without an answer: what is worth knowing goes to stderr, whatever became of them.
fn without_answer<T>(
    context: &Context<'_>,
    outcome: Result<T, Failure>,
) -> Result<String, Failure> {
    warn_of_notes(context);
    outcome.map(|_| String::new())
}

fn warn_of_notes(context: &Context<'_>) {
    let request = context.request;
    for note in context.notes() {
        request
            .config
            .log
            .warn(&named(&request.call), &note.to_string());
    }
}

/// The answer to VERSION: the version asked in, and all that we speak (CNI 1.1.0 §5 VERSION
/// Success). It works with nothing on stdin too.
fn supported_versions() -> String {
    let mut stdin = Vec::new();
    let _ = io::stdin()
        .lock()
        .take(request::stdin::MAX_STDIN)
        .read_to_end(&mut stdin);
    let asked = RawObject::parse(&stdin)
        .ok()
        .and_then(|conf| conf.read::<String>("cniVersion").ok().flatten())
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| Version::LATEST.to_string());
    let supported: Vec<&str> = Version::ALL
        .iter()
        .map(|version| version.as_str())
        .collect();
    serde_json::json!({ "cniVersion": asked, "supportedVersions": supported }).to_string()
}

/// A panic is a defect of ours; the runtime still gets its one document and a DEL will clean up.
fn panic_as_json() {
    std::panic::set_hook(Box::new(|panic| {
        let message = format!("defect in jackfield: {panic}; report it, a DEL cleans up");
        let _ = console::write(&cni::Error::new(999, message).to_json(Version::LATEST));
        #[allow(clippy::exit, reason = "after a panic nothing may be written any more")]
        std::process::exit(1);
    }));
}
