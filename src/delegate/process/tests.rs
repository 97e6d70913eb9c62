use super::*;

/// Runs a shell script without `pidfd_open`, as on an old kernel.
fn without_pidfd(script: &str, time: Duration) -> (Ending, Vec<u8>) {
    let child = Command::new("/bin/sh")
        .args(["-c", script])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut running = RunningProcess::new(Verb::Add, child, b"");
    running.pidfd = None;
    let ending = running.wait(Instant::now() + time);
    let ended = running.end(ending);
    (ended.ending, ended.stdout)
}

// Injects a fault: the kernel lacks `pidfd_open`, or a seccomp filter blocks it.
#[test]
fn a_process_runs_on_a_kernel_without_pidfds() {
    let long = Duration::from_secs(20);
    let start = Instant::now();
    // The shell's child has stdout open, so the stream does not end when the shell exits.
    let (ending, stdout) = without_pidfd("echo {}; sleep 15 & exit 3", long);
    assert_eq!(
        (ending, stdout.as_slice()),
        (Ending::Exited(3), b"{}\n".as_slice())
    );
    let (ending, _) = without_pidfd("exec sleep 20", Duration::from_secs(1));
    assert_eq!(ending, Ending::Hung);
    assert!(start.elapsed() < long / 2, "{:?}", start.elapsed());
}
