//! Serves one call of the runtime: reads the environment and stdin, and writes the answer to
//! stdout.
//!
//! A call that fails, or that panics before its answer, writes exactly one error document to
//! stdout. libcni ignores stderr if stdout is not empty, so the document must contain the cause
//! (CNI 1.1.0 §2, §5).

mod log;
pub mod worker;

use std::io::{self, Read};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Instant;

use crate::cluster::{Agent, Cluster, Folder};
use crate::cni::{self, RawObject, Verb, Version};
use crate::console;
use crate::delegate::{DEPTH_VARIABLE, Depth, DepthError, Ours, Processes};
use crate::journal::Journal;
use crate::kernel::Netlink;
use crate::operation::{self, Context, Failure, Host, Stopwatch, Timed};
use crate::request::log::{Level, Log};
use crate::request::{self, Call, NodeConfig, Request, RequestError, Source, read_stdin};

/// The directory of the containers' locks.
const LOCK_DIR: &str = "/run/jackfield/locks";
/// Whether the verb succeeded. [`write_answer`] sets this before it writes the answer to the
/// runtime.
static ANSWERED: OnceLock<bool> = OnceLock::new();
/// The log of the call and the label of its lines. The panic hook uses both.
static LOG: OnceLock<(Log, String)> = OnceLock::new();

/// Runs the plugin.
pub fn main() -> ExitCode {
    panic_as_json();
    let mut version = Version::LATEST;
    answer(&mut version).unwrap_or_else(|failure| write_answer(&Err(failure), version))
}

/// Writes the answer for the runtime. The answer of a successful DEL, CHECK, GC or STATUS is empty.
fn write_answer(outcome: &Result<String, Failure>, version: Version) -> ExitCode {
    ANSWERED.get_or_init(|| outcome.is_ok());
    match outcome {
        Ok(document) => match console::write(document) {
            Ok(()) => ExitCode::SUCCESS,
            Err(cause) => {
                console::say(&format!(
                    "jackfield: the answer cannot be written to stdout: {cause}; \
                     after an ADD, the runtime must send DEL"
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

/// Runs the verb and writes its result or its failure. If this function returns a failure, it has
/// written nothing, and the caller must write the failure. Sets `version` to the CNI version of the
/// request as soon as stdin is parsed.
fn answer(version: &mut Version) -> Result<ExitCode, Failure> {
    let call = Call::read(|name| std::env::var(name).ok())?;
    if call.verb == Verb::Version {
        return Ok(write_answer(&Ok(supported_versions()), *version));
    }
    let stdin = read_stdin(io::stdin().lock()).map_err(RequestError::from)?;
    let conf = RawObject::parse_stdin(&stdin).map_err(RequestError::of_stdin);
    if let Ok(Ok(own)) = conf.as_ref().map(request::version) {
        *version = own;
    }
    if let Err(error) = depth() {
        return Ok(write_answer(&nested_answer(call.verb, error), *version));
    }
    let request = Request::new(call, conf?)?;
    let log = &request.config.log;
    LOG.get_or_init(|| (log.clone(), label(&request.call)));
    for line in &request.config.warnings {
        log.warn(&label(&request.call), line);
    }
    let start = Instant::now();
    with_host(&request.config, |host| {
        let outcome = run(host, &request);
        let exit = write_answer(&outcome, *version);
        let failure = outcome.err().map(|failure| failure.to_cni());
        report(host, &request, request.call.verb.as_str(), failure.as_ref());
        let label = || label(&request.call);
        match failure {
            None => log.write(Level::Verbose, || {
                format!("{}: done in {:.1?}", label(), start.elapsed())
            }),
            Some(error) => log.write(Level::Error, || format!("{}: {}", label(), error.msg)),
        }
        Ok(exit)
    })
}

/// Sends the agent the figures of a finished call. `verb` names the call in the metrics.
pub(crate) fn report(
    host: &Host<'_>,
    request: &Request,
    verb: &'static str,
    failure: Option<&cni::Error>,
) {
    let mut figures = host.stopwatch.stop(&request.call, failure);
    figures.verb = verb.into();
    figures.on_record =
        operation::journal_size::to_report(host, &request.config, verb, failure.is_some());
    let silent = operation::agent_absence::keep(host, &request.config);
    figures.agent_silent = silent.map(|silent| silent.as_secs());
    let record = || host.journal.lend(&host.stopwatch.record()?).ok();
    host.cluster.over(figures, &record);
}

/// Describes the call for a log line: verb, pod, container and interface.
pub(crate) fn label(call: &Call) -> String {
    let Ok((container, ifname)) = call.attachment() else {
        return call.verb.to_string();
    };
    let arg = |key| call.args.get(key).unwrap_or("-");
    let (verb, namespace, name) = (call.verb, arg("K8S_POD_NAMESPACE"), arg("K8S_POD_NAME"));
    format!("{verb} pod {namespace}/{name}, container {container}, interface {ifname}")
}

fn depth() -> Result<Depth, DepthError> {
    Depth::parse(std::env::var_os(DEPTH_VARIABLE).as_deref())
}

/// Returns the answer of a nested Jackfield, or of a Jackfield with an invalid [`DEPTH_VARIABLE`].
/// A Jackfield is nested if its caller is another Jackfield or a delegate of another Jackfield.
///
/// A nested ADD always fails, so a nested DEL or GC has nothing to detach and succeeds. If a nested
/// DEL failed, the outer Jackfield would retry it forever. An outer Jackfield never sets an invalid
/// [`DEPTH_VARIABLE`]. So a DEL with an invalid value comes from the runtime. This DEL fails,
/// because the runtime would otherwise forget a sandbox that is still attached.
fn nested_answer(verb: Verb, error: DepthError) -> Result<String, Failure> {
    match (verb, &error) {
        (Verb::Del | Verb::Gc, DepthError::TooDeep) => Ok(String::new()),
        _ => Err(error.into()),
    }
}

/// Removes Jackfield's files in `/run/jackfield`, for `jackfield uninstall`. Keeps the directory of
/// the locks if a lock file still exists.
pub fn forget_locks() {
    let locks = std::path::Path::new(LOCK_DIR);
    let _ = std::fs::remove_dir(locks);
    if let Some(run) = locks.parent() {
        operation::dated_file::forget(run);
        let _ = std::fs::remove_dir(run.join("agent"));
        let _ = std::fs::remove_dir(run);
    }
}

/// Runs `act` with the real cluster, processes and kernel, as configured by `config`.
///
/// # Errors
/// Returns the errors of `act`. Also fails if Jackfield runs as its own delegate, if the value of
/// [`DEPTH_VARIABLE`] is not a number, or if Jackfield cannot find its own executable.
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
        start_worker: &worker::start,
        journal: Journal::new(&config.journal_dir),
        lock_dir: LOCK_DIR.into(),
        ours: Ours::this_process().map_err(Failure::Ourselves)?,
        stopwatch: &stopwatch,
    })
}

/// Runs the verb and logs its notes.
fn run(host: &Host<'_>, request: &Request) -> Result<String, Failure> {
    let limits = request.config.deadlines;
    let limit = match request.call.verb {
        Verb::Add => limits.add,
        Verb::Del => limits.del,
        Verb::Check => limits.check,
        Verb::Gc => limits.gc,
        Verb::Status | Verb::Version => limits.status,
    };
    let context = Context::new(host, request, limit);
    let outcome = match request.call.verb {
        Verb::Add => add(&context),
        Verb::Del => operation::del::del(&context).map(no_result),
        Verb::Check => operation::check::check(&context).map(no_result),
        Verb::Gc => operation::gc::gc(&context).map(no_result),
        Verb::Status => operation::status::status(&context).map(no_result),
        Verb::Version => Ok(supported_versions()),
    };
    for note in context.notes() {
        let log = &request.config.log;
        log.warn(&label(&request.call), &note.to_string());
    }
    outcome
}

/// The empty answer of a verb without a result.
fn no_result<T>(_: T) -> String {
    String::new()
}

fn add(context: &Context<'_>) -> Result<String, Failure> {
    let (request, added) = (context.request, operation::add::add(context)?);
    for entry in &added.status {
        let line = || format!("{}: {}", label(&request.call), serde_json::json!(entry));
        request.config.log.write(Level::Debug, line);
    }
    Ok(added.result.to_json(request.config.version)?)
}

/// Returns the answer to VERSION: the version in the request, and all supported versions (CNI 1.1.0
/// §5 VERSION Success). If stdin has no version, for example because it is empty, the answer
/// contains the newest version instead.
fn supported_versions() -> String {
    let mut stdin = Vec::new();
    let mut input = io::stdin().lock().take(request::stdin::MAX_STDIN);
    let _ = input.read_to_end(&mut stdin);
    let version = RawObject::parse(&stdin)
        .ok()
        .and_then(|conf| conf.read::<String>("cniVersion").ok().flatten())
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| Version::LATEST.to_string());
    let supported = Version::ALL.map(Version::as_str);
    serde_json::json!({ "cniVersion": version, "supportedVersions": supported }).to_string()
}

/// Makes a panic write an error document and a log line. The runtime's next DEL cleans up. If
/// Jackfield has already answered before the panic, the error goes to stderr, and the exit status
/// still matches the answer.
fn panic_as_json() {
    std::panic::set_hook(Box::new(|panic| {
        let status = if let Some(succeeded) = ANSWERED.get() {
            let line = format!("jackfield: defect after the answer: {panic}; report it");
            console::say(&line);
            i32::from(!succeeded)
        } else {
            let message =
                format!("defect in jackfield: {panic}; report it and send DEL to clean up");
            let _ = console::write(&cni::Error::new(999, message).to_json(Version::LATEST));
            1
        };
        if let Some((log, call)) = LOG.get() {
            log.write(Level::Panic, || format!("{call}: defect: {panic}"));
        }
        // Exit here, so that nothing else is written to stdout, and so that the exit status matches
        // the answer.
        #[allow(clippy::exit, reason = "a panic must not change the answer")]
        std::process::exit(status);
    }));
}
