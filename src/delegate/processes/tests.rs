//! Runs shell scripts as plugins. The scripts write process IDs to `$DIR/pids`. A test then
//! checks with `assert_no_process_is_left` that these processes have ended.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_setfd};
use tempfile::TempDir;

use super::*;
use crate::cni::Verb;
use crate::cni::{CapabilityArgs, CniArgs, PluginType};
use crate::delegate::process::{ORPHAN_GRACE, TERM_GRACE};
use crate::delegate::{Binary, Ours, Parameters, find};

/// Longer than any answer takes on a busy machine.
const LONG: Duration = Duration::from_secs(20);
/// The deadline of plugins that never answer.
const SHORT: Duration = Duration::from_secs(1);

/// A temporary directory that contains one plugin.
struct Plugin {
    dir: TempDir,
    binary: Binary,
}

impl Plugin {
    /// A plugin that is a shell script. `$DIR` is its directory, and `note PID` writes a process ID
    /// to `$DIR/pids`.
    fn script(body: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let preamble = format!(
            "#!/bin/sh\nDIR={}\nnote() {{ echo $1 >> $DIR/pids; }}\nnote $$\n",
            dir.path().display()
        );
        Self::of(dir, preamble.as_bytes(), body.as_bytes())
    }

    fn of(dir: TempDir, first: &[u8], rest: &[u8]) -> Self {
        let path = dir.path().join("plugin");
        fs::write(&path, [first, rest].concat()).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let plugin: PluginType = "plugin".parse().unwrap();
        let ours = Ours::this_process().unwrap();
        let binary = find(&[dir.path().to_owned()], &plugin, &ours).unwrap();
        Self { dir, binary }
    }

    fn exec(&self, verb: Verb, stdin: &str, time: Duration) -> Result<String, DelegateError> {
        let parameters = Parameters {
            container_id: &"pod-1".parse().unwrap(),
            netns: None,
            ifname: &"net1".parse().unwrap(),
            args: &CniArgs::parse("A=1;B=2").unwrap(),
            capability_args: &CapabilityArgs::new(),
            cni_args: None,
            inject: &[],
        };
        let answer = Processes::new(Depth::parse(None).unwrap()).exec(&DelegateCall {
            verb,
            binary: &self.binary,
            attachment: verb.has_attachment().then_some(&parameters),
            cni_path: "/opt/cni/bin:/usr/lib/cni",
            stdin,
            deadline: Instant::now() + time,
        });
        answer.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    fn add(&self) -> Result<String, DelegateError> {
        self.exec(Verb::Add, "{}", LONG)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    /// Waits until every process in `$DIR/pids` has ended. A process takes a moment to end after a
    /// signal.
    fn assert_no_process_is_left(&self) {
        let noted = fs::read_to_string(self.path("pids")).unwrap();
        assert!(!noted.is_empty(), "the script did not run");
        for pid in noted.split_whitespace() {
            let until = Instant::now() + Duration::from_secs(5);
            while runs(pid) {
                assert!(Instant::now() < until, "process {pid} is left over");
                thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// Whether a process runs. A zombie does not count as running, since init may reap orphans late.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    // The state follows the name. The name ends with the last parenthesis of the line.
    stat.rsplit(") ")
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

// clause: CNI-1.1.0 §2 parameters: the parameters are in the environment and the configuration is on stdin
// clause: CNI-1.1.0 §3 attachment parameters: all of the parameters are set
// clause: CNI-1.1.0 §3 search path: CNI_PATH is handed on
#[test]
fn a_plugin_gets_its_parameters_and_its_configuration() {
    let plugin = Plugin::script("env | grep -E '^(CNI_|JACK)' | sort > $DIR/env; cat");
    assert_eq!(
        plugin.exec(Verb::Add, r#"{"name":"n"}"#, LONG).unwrap(),
        r#"{"name":"n"}"#
    );
    let env = fs::read_to_string(plugin.path("env")).unwrap();
    let expected = "CNI_ARGS=A=1;B=2\nCNI_COMMAND=ADD\nCNI_CONTAINERID=pod-1\nCNI_IFNAME=net1\n\
                    CNI_NETNS=\nCNI_PATH=/opt/cni/bin:/usr/lib/cni\nJACKFIELD_DEPTH=1\n";
    assert_eq!(env, expected);
    plugin.assert_no_process_is_left();
}

#[test]
fn gc_and_status_set_no_variables_of_an_attachment() {
    let plugin = Plugin::script("env | grep -E '^CNI_' | sort > $DIR/env");
    for verb in [Verb::Gc, Verb::Status] {
        plugin.exec(verb, "{}", LONG).unwrap();
        let env = fs::read_to_string(plugin.path("env")).unwrap();
        assert_eq!(
            env,
            format!("CNI_COMMAND={verb}\nCNI_PATH=/opt/cni/bin:/usr/lib/cni\n")
        );
    }
    plugin.assert_no_process_is_left();
}

#[test]
fn a_plugin_is_isolated_from_our_signals_and_streams() {
    // The script stores the output of `readlink` in a variable. With `readlink … > $DIR/fds`, a
    // shell may redirect its own stdout first, and `readlink` would then show `$DIR/fds`.
    let plugin = Plugin::script(
        "grep -E '^Sig(Ign|Blk)' /proc/self/status > $DIR/signals
         fds=$(cd /proc/$$/fd; for fd in 0 1 2; do readlink $fd; done)
         echo \"$fds\" > $DIR/fds; cut -d' ' -f5 /proc/$$/stat > $DIR/group",
    );
    plugin.exec(Verb::Del, "{}", LONG).unwrap();
    let signals = fs::read_to_string(plugin.path("signals")).unwrap();
    let masks: Vec<_> = signals
        .split_whitespace()
        .filter(|word| !word.ends_with(':'))
        .collect();
    let sigpipe = 1_u64 << 12;
    for mask in masks {
        assert_eq!(
            u64::from_str_radix(mask, 16).unwrap() & sigpipe,
            0,
            "{signals}"
        );
    }
    let fds = fs::read_to_string(plugin.path("fds")).unwrap();
    let streams: HashSet<_> = fds.lines().collect();
    assert_eq!(streams.len(), 3, "{fds}");
    for fd in 0..3 {
        let ours = fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
        assert!(!streams.contains(ours.to_str().unwrap()), "{fds}");
    }
    assert!(streams.iter().all(|it| it.starts_with("pipe:")), "{fds}");
    let group = fs::read_to_string(plugin.path("group")).unwrap();
    assert_eq!(fs::read_to_string(plugin.path("pids")).unwrap(), group);
    plugin.assert_no_process_is_left();
}

#[test]
fn a_plugin_inherits_a_lock_without_close_on_exec() {
    let plugin = Plugin::script("ls -l /proc/$$/fd > $DIR/fds");
    let lock = File::create(plugin.path("sandbox.lock")).unwrap();
    fcntl_setfd(&lock, FdFlags::empty()).unwrap();
    plugin.exec(Verb::Del, "{}", LONG).unwrap();
    assert!(
        fs::read_to_string(plugin.path("fds"))
            .unwrap()
            .contains("sandbox.lock")
    );
    plugin.assert_no_process_is_left();
}

#[test]
fn large_configurations_and_answers_pass_through_both_pipes_at_once() {
    let plugin = Plugin::script("exec cat");
    let config = format!("{{\"x\":\"{}\"}}", "y".repeat(900_000));
    assert!(plugin.exec(Verb::Add, &config, LONG).unwrap() == config);
    plugin.assert_no_process_is_left();
}

// Injects a fault: the plugin and its child hang. Both end at SIGTERM.
#[test]
fn a_plugin_that_hangs_is_killed_at_its_deadline() {
    let plugin = Plugin::script("echo waiting >&2; sleep 100 & note $!; wait");
    let start = Instant::now();
    let error = plugin.exec(Verb::Add, "{}", SHORT).unwrap_err();
    let took = start.elapsed();
    plugin.assert_no_process_is_left();
    assert_eq!(
        error.to_string(),
        "no answer within 1s, last output line \"waiting\"; Jackfield killed the plugin and its \
         children; find out what the plugin waits for, or raise both deadlines.delegate and the \
         verb's own deadline"
    );
    assert!(took >= SHORT && took < LONG / 2, "{took:?}");
}

// Injects a fault: the plugin answers immediately, closes its outputs, and then hangs.
#[test]
fn a_plugin_fails_if_it_hangs_after_its_answer() {
    let plugin = Plugin::script("echo {}; exec >&- 2>&-; sleep 100");
    let error = plugin.exec(Verb::Add, "{}", SHORT).unwrap_err();
    plugin.assert_no_process_is_left();
    assert!(matches!(error, DelegateError::Hung { .. }), "{error}");
}

// Injects a fault: the plugin and its child ignore SIGTERM.
#[test]
fn a_plugin_that_ignores_sigterm_is_killed() {
    let plugin = Plugin::script(
        "trap '' TERM; sh -c 'trap \"\" TERM; while :; do sleep 1; done' & note $!\n\
                        while :; do sleep 1; done",
    );
    let start = Instant::now();
    let error = plugin.exec(Verb::Del, "{}", SHORT).unwrap_err();
    let took = start.elapsed();
    plugin.assert_no_process_is_left();
    assert!(matches!(error, DelegateError::Hung { .. }), "{error}");
    assert!(took >= SHORT + TERM_GRACE && took < LONG / 2, "{took:?}");
}

// Injects a fault: the plugin waits for a child that hangs and has left the plugin's process group.
#[test]
fn a_child_in_its_own_session_is_killed() {
    let plugin = Plugin::script("setsid sh -c \"echo \\$\\$ >> $DIR/pids; exec sleep 100\" & wait");
    let error = plugin.exec(Verb::Add, "{}", SHORT).unwrap_err();
    plugin.assert_no_process_is_left();
    assert!(matches!(error, DelegateError::Hung { .. }), "{error}");
}

// Injects a fault: the plugin is stopped (SIGSTOP), so it cannot handle SIGTERM.
#[test]
fn a_stopped_plugin_is_killed() {
    let plugin = Plugin::script("kill -STOP $$");
    let error = plugin.exec(Verb::Add, "{}", SHORT).unwrap_err();
    plugin.assert_no_process_is_left();
    assert!(matches!(error, DelegateError::Hung { .. }), "{error}");
}

// Injects a fault: endless output on stdout.
#[test]
fn a_plugin_that_floods_stdout_is_killed_long_before_its_deadline() {
    let plugin = Plugin::script("yes & note $!; yes");
    let start = Instant::now();
    let error = plugin.add().unwrap_err();
    plugin.assert_no_process_is_left();
    assert!(matches!(error, DelegateError::Flooded), "{error}");
    assert!(start.elapsed() < LONG / 2);
}

// Injects a fault: far more output on stderr than the cap.
#[test]
fn a_plugin_that_floods_stderr_still_answers() {
    let plugin = Plugin::script("head -c 300000 /dev/zero | tr '\\0' ' ' >&2; echo {}");
    assert_eq!(plugin.add().unwrap(), "{}\n");
    plugin.assert_no_process_is_left();
}

// Injects a fault: endless output on stderr from a plugin that never answers.
#[test]
fn a_flood_on_stderr_does_not_outlast_the_deadline() {
    let plugin = Plugin::script("exec tr '\\0' . < /dev/zero >&2");
    let start = Instant::now();
    let error = plugin.exec(Verb::Add, "{}", SHORT).unwrap_err();
    plugin.assert_no_process_is_left();
    assert!(matches!(error, DelegateError::Hung { .. }), "{error}");
    assert!(start.elapsed() < LONG / 2);
}

// Injects a fault: a crash.
#[test]
fn a_crash_is_reported_with_its_signal() {
    let plugin = Plugin::script("echo '{}'; echo boom >&2; kill -SEGV $$");
    let error = plugin.add().unwrap_err();
    plugin.assert_no_process_is_left();
    assert_eq!(
        error.to_string(),
        "crashed: signal 11 (SIGSEGV), last output line \"boom\"; check the logs of the kernel \
         and the plugin"
    );
}

// Injects a fault: a child outlives the plugin and has the plugin's outputs open.
#[test]
fn a_child_that_keeps_stdout_open_does_not_delay_the_answer() {
    let plugin = Plugin::script("sleep 3 & echo {}");
    let start = Instant::now();
    for verb in [Verb::Add, Verb::Del].repeat(10) {
        assert_eq!(plugin.exec(verb, "{}", LONG).unwrap(), "{}\n");
    }
    // The answer is complete, so Jackfield does not wait for the child. If Jackfield waited, each
    // of the twenty calls would take at least `ORPHAN_GRACE`.
    let took = start.elapsed();
    assert!(took < 20 * ORPHAN_GRACE, "{took:?}");
    plugin.assert_no_process_is_left();
}

// Injects a fault: the plugin is a wrapper that ends before its child writes the answer.
#[test]
fn jackfield_waits_for_an_answer_that_a_child_still_writes() {
    let plugin = Plugin::script(
        "(until grep -q ') Z' /proc/$$/stat; do [ -e /proc/$$ ] || exit; done; echo '{}') & note $!",
    );
    assert_eq!(plugin.add().unwrap(), "{}\n");
    plugin.assert_no_process_is_left();
}

// Injects a fault: the plugin fails, and leaves a child that has the plugin's outputs open.
#[test]
fn children_of_a_failed_plugin_are_killed() {
    let plugin = Plugin::script("sleep 100 & note $!; echo '{\"code\":7,\"msg\":\"bad\"}'; exit 1");
    let error = plugin.add().unwrap_err();
    plugin.assert_no_process_is_left();
    assert_eq!(error.to_string(), "bad");
}

// Injects a fault: the plugin succeeds without an answer and leaves a child.
#[test]
fn children_of_a_plugin_that_never_answered_are_killed() {
    let plugin = Plugin::script("sleep 100 & note $!");
    let start = Instant::now();
    let error = plugin.add().unwrap_err();
    plugin.assert_no_process_is_left();
    assert!(matches!(error, DelegateError::Silent { .. }), "{error}");
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[test]
fn a_daemon_of_a_plugin_that_succeeded_lives_on() {
    let plugin = Plugin::script("sleep 1 >/dev/null 2>&1 & note $!; echo {}");
    plugin.add().unwrap();
    let pids = fs::read_to_string(plugin.path("pids")).unwrap();
    assert!(runs(pids.lines().last().unwrap()));
    plugin.assert_no_process_is_left();
}

// Injects a fault: the plugin closes stdin without reading its configuration, which is larger than
// the pipe's buffer.
#[test]
fn a_plugin_that_closes_stdin_early_may_still_answer() {
    let plugin = Plugin::script("exec <&-; sleep 1; echo {}");
    let config = "x".repeat(200_000);
    assert_eq!(plugin.exec(Verb::Add, &config, LONG).unwrap(), "{}\n");
    plugin.assert_no_process_is_left();
}

// Injects a fault: the plugin neither reads nor closes stdin.
#[test]
fn a_plugin_that_ignores_stdin_may_still_answer() {
    let plugin = Plugin::script("sleep 1; echo {}");
    let config = "x".repeat(200_000);
    assert_eq!(plugin.exec(Verb::Add, &config, LONG).unwrap(), "{}\n");
    plugin.assert_no_process_is_left();
}

// Injects faults: invalid answers.
// clause: CNI-1.1.0 §2 error document: Jackfield reads the document as a runtime does
// clause: CNI-1.1.0 §2 exit: Jackfield reads the exit status as a runtime does
#[test]
fn each_wrong_answer_has_its_own_message() {
    let table = [
        ("echo {}; echo {}", "more than one JSON document"),
        ("exit 0", "exit status 0 and no result on stdout"),
        (
            "echo hello",
            "stdout is not JSON, last output line \"hello\"",
        ),
        (
            "echo '{\"code\":11,\"msg\":\"later\",\"details\":\"soon\"}'; exit 1",
            "later: soon",
        ),
        (
            "echo no luck >&2; exit 3",
            "exit status 3 without a CNI error on stdout, last output line \"no luck\"",
        ),
        (
            "echo no luck; exit 4",
            "exit status 4 without a CNI error on stdout, last output line \"no luck\"",
        ),
    ];
    for (body, expected) in table {
        let plugin = Plugin::script(body);
        let error = plugin.add().unwrap_err().to_string();
        plugin.assert_no_process_is_left();
        assert!(error.starts_with(expected), "{body}: {error}");
    }
}

// Injects faults: an invalid ELF file, and a script whose interpreter is missing.
#[test]
fn the_error_names_a_binary_that_cannot_be_started() {
    let foreign = Plugin::of(tempfile::tempdir().unwrap(), b"\x7fELF nonsense", b"");
    let error = foreign.add().unwrap_err().to_string();
    assert!(
        error.contains("/plugin cannot be started: Exec format error"),
        "{error}"
    );
    let orphan = Plugin::of(tempfile::tempdir().unwrap(), b"#!/no/such/shell\n", b"");
    let error = orphan.add().unwrap_err().to_string();
    assert!(
        error.contains("/plugin cannot be started: No such file"),
        "{error}"
    );
}

// Injects a fault: the binary is open for writing for a second.
#[test]
fn jackfield_waits_for_a_binary_that_is_being_installed() {
    let plugin = Plugin::script("echo {}");
    let writer = OpenOptions::new()
        .append(true)
        .open(plugin.binary.path())
        .unwrap();
    let installer = thread::spawn(move || {
        thread::sleep(Duration::from_secs(1));
        drop(writer);
    });
    assert_eq!(plugin.add().unwrap(), "{}\n");
    installer.join().unwrap();
    plugin.assert_no_process_is_left();
}

// Injects a fault: the binary is open for writing past the deadline.
#[test]
fn a_binary_that_stays_busy_fails_the_call() {
    let plugin = Plugin::script("echo {}");
    let _writer = OpenOptions::new()
        .append(true)
        .open(plugin.binary.path())
        .unwrap();
    let start = Instant::now();
    let error = plugin.exec(Verb::Add, "{}", SHORT).unwrap_err();
    assert!(matches!(error, DelegateError::Busy { .. }), "{error}");
    assert!(start.elapsed() < LONG / 2);
    assert!(!plugin.path("pids").exists());
}

#[test]
fn nothing_starts_when_no_time_is_left() {
    let plugin = Plugin::script("echo {}");
    let error = plugin.exec(Verb::Add, "{}", Duration::ZERO).unwrap_err();
    assert!(matches!(error, DelegateError::NoTime), "{error}");
    assert!(!plugin.path("pids").exists());
}

/// Runs one ignored test of this file in a separate process, which a shell script starts.
fn in_a_process_of_its_own(script: &str, test: &str) -> (bool, String, Vec<u8>) {
    let program = env::current_exe().unwrap();
    let name = format!("delegate::processes::tests::{test}");
    let child = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(program)
        .args(["--exact", &name, "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (
        output.status.success() && text.contains("1 passed"),
        text,
        output.stderr,
    )
}

// Injects a fault: the test process ignores SIGCHLD from its start, because it inherits this
// setting from its parent.
#[test]
fn an_exit_status_that_the_kernel_drops_is_an_error() {
    let (passed, stdout, _) =
        in_a_process_of_its_own("exec env --ignore-signal=CHLD \"$@\"", "ignores_sigchld");
    assert!(passed, "{stdout}");
}

#[test]
#[ignore = "run by an_exit_status_that_the_kernel_drops_is_an_error"]
fn ignores_sigchld() {
    let plugin = Plugin::script("echo {}");
    let error = plugin.add().unwrap_err();
    assert!(matches!(error, DelegateError::Lost), "{error}");
    plugin.assert_no_process_is_left();
}

// clause: CNI-1.1.0 §4 stderr
#[test]
fn stderr_of_a_plugin_is_passed_on_up_to_a_limit() {
    let (passed, stdout, stderr) = in_a_process_of_its_own("exec \"$@\"", "writes_to_stderr");
    assert!(passed, "{stdout}");
    let text = String::from_utf8_lossy(&stderr);
    assert!(text.contains("\\u{1b}[1mas it is\n"), "{text:.200}");
    assert!(text.contains("jackfield: the plugin's stderr is dropped after 65536 bytes"));
    assert_eq!(text.matches('x').count(), STDERR_CAP);
}

#[test]
#[ignore = "run by stderr_of_a_plugin_is_passed_on_up_to_a_limit"]
fn writes_to_stderr() {
    let plugin = Plugin::script("printf '\\033[1mas it is\\n' >&2; echo {}");
    plugin.add().unwrap();
    let plugin = Plugin::script("head -c 100000 /dev/zero | tr '\\0' x >&2; echo {}");
    plugin.add().unwrap();
}

// Injects a fault: the runtime keeps Jackfield's stderr open and never reads from it, so a write to
// stderr could block.
#[test]
fn writing_to_an_unread_stderr_does_not_block() {
    let start = Instant::now();
    let script = "mkfifo $$.fifo && exec 3<>$$.fifo && rm $$.fifo && exec \"$@\" 2>&3";
    let (passed, stdout, _) = in_a_process_of_its_own(script, "writes_to_stderr");
    assert!(passed, "{stdout}");
    assert!(start.elapsed() < LONG);
}
