//! One run of the binary, as plugin or from the command line.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Netns;

/// No run takes longer unless it hangs.
const HANGS_AFTER: Duration = Duration::from_secs(120);

/// A run, about to be made.
pub(crate) struct Call {
    netns: String,
    program: PathBuf,
    before: Vec<String>,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    stdin: Vec<u8>,
}

impl Call {
    /// The binary in a network namespace, with an environment that holds a PATH and no more.
    pub(crate) fn in_netns(netns: &Netns) -> Call {
        Call {
            netns: netns.name().to_owned(),
            program: env!("CARGO_BIN_EXE_jackfield").into(),
            before: Vec::new(),
            arguments: Vec::new(),
            variables: Vec::new(),
            stdin: Vec::new(),
        }
    }

    /// Sets a variable of the environment, or replaces it.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Call {
        self = self.without(name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Takes a variable out of the environment.
    pub(crate) fn without(mut self, name: &str) -> Call {
        self.variables.retain(|(there, _)| there != name);
        self
    }

    /// What is on stdin.
    pub(crate) fn stdin(mut self, bytes: &[u8]) -> Call {
        self.stdin = bytes.to_vec();
        self
    }

    /// Arguments of the command line.
    pub(crate) fn arguments(mut self, arguments: &[&str]) -> Call {
        self.arguments
            .extend(arguments.iter().map(|&it| it.to_owned()));
        self
    }

    /// A program that runs the binary, with its arguments: `setpriv`, `strace`.
    pub(crate) fn under(mut self, program: &[&str]) -> Call {
        self.before = program.iter().map(|&it| it.to_owned()).collect();
        self
    }

    /// Another copy of the binary.
    pub(crate) fn program(mut self, path: &Path) -> Call {
        self.program = path.to_owned();
        self
    }

    /// The binary and its arguments, for a shell.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec![self.program.display().to_string()];
        words.extend(self.arguments.iter().cloned());
        words
    }

    /// Runs it to its end.
    pub(crate) fn run(&self) -> Outcome {
        let mut stdin = tempfile::tempfile().unwrap();
        stdin.write_all(&self.stdin).unwrap();
        stdin.rewind().unwrap();
        // Files, not pipes: what a delegate leaves running must not make the test wait.
        let (mut out, mut err) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let started = Instant::now();
        let mut child = Command::new("ip")
            .args(["netns", "exec", &self.netns])
            .args(&self.before)
            .arg(&self.program)
            .args(&self.arguments)
            .env_clear()
            .env(
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            )
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(out.try_clone().unwrap()))
            .stderr(Stdio::from(err.try_clone().unwrap()))
            .spawn()
            .unwrap();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if started.elapsed() > HANGS_AFTER {
                let _ = child.kill();
                let _ = child.wait();
                panic!("hangs: {:?} {:?}", self.variables, self.arguments);
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        Outcome {
            exit: status.code().unwrap_or(-1),
            stdout: text(&mut out),
            stderr: text(&mut err),
            took: started.elapsed(),
        }
    }
}

fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What came of a run.
pub(crate) struct Outcome {
    /// The exit code; -1 after a signal.
    pub(crate) exit: i32,
    /// All of stdout.
    pub(crate) stdout: String,
    /// All of stderr.
    pub(crate) stderr: String,
    /// How long it took.
    pub(crate) took: Duration,
}

impl Outcome {
    /// What a command writes that is to succeed, with nothing on stderr and no colour in a pipe.
    pub(crate) fn quiet(self) -> String {
        assert_eq!((self.exit, self.stderr.as_str()), (0, ""), "{self}");
        assert!(!self.stdout.contains('\u{1b}'), "{self}");
        self.stdout
    }

    /// Stdout, which is to be exactly one JSON document.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not one JSON document: {error}; {self}"))
    }

    /// The document of a run that is to succeed.
    pub(crate) fn success(&self) -> Value {
        assert_eq!(self.exit, 0, "{self}");
        self.json()
    }

    /// The message and details of a plugin run that is to fail with this CNI code, in one
    /// well-formed CNI error and one line.
    pub(crate) fn failure(&self, code: u64) -> String {
        assert_eq!(self.exit, 1, "{self}");
        let error = self.json();
        assert_eq!(error["code"], code, "{self}");
        assert!(error["cniVersion"].is_string(), "{self}");
        let msg = error["msg"].as_str().unwrap_or_default();
        assert!(!msg.is_empty() && !msg.contains('\n'), "one line: {self}");
        let details = error["details"].as_str().unwrap_or_default();
        assert!(!details.contains('\n'), "one line: {self}");
        format!("{msg} {details}").trim_end().to_owned()
    }

    /// The same, and the line holds each of `words`.
    pub(crate) fn fails(&self, code: u64, words: &[&str]) -> String {
        let line = self.failure(code);
        for word in words {
            assert!(line.contains(word), "{word:?} is missing in: {line}");
        }
        line
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "exit {}\nstdout: {}\nstderr: {}",
            self.exit, self.stdout, self.stderr
        )
    }
}
