//! What is printed.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Command;

use nix::sys::resource::{UsageWho, getrusage};

use crate::background;
use crate::burst::{AT_A_TIME, Burst, PODS};
use crate::contender::{Contender, Verb};
use crate::figures::Figures;

/// What is promised of Jackfield over the bare delegates: times in shares of their own, processor
/// time in milliseconds over theirs, bursts in shares of theirs, and memory and size in MiB.
const ADD: f64 = 0.8;
const DEL: f64 = 0.4;
const CPU: f64 = 3.5;
const BURST: f64 = 0.45;
const MEMORY: f64 = 5.0;
const IDLE: f64 = 10.0;
const PEAK: f64 = 16.0;
/// How many percent of thick Multus's overhead Jackfield's may be.
const OF_THICK: f64 = 10.0;
const BINARY: f64 = 8.0 * 1000.0 * 1000.0 / 1024.0 / 1024.0;

/// The name of the contender that is Jackfield's binary a second time.
const AGAIN: &str = "again";
/// The name of the contender that is thick Multus.
const THICK: &str = "multus-thick";

/// The whole report.
///
/// # Errors
/// When a contender's memory cannot be measured.
pub(crate) fn whole(
    all: &[Contender],
    figures: &[Figures],
    bursts: &[Burst],
) -> Result<String, String> {
    let mut text = String::new();
    let (Some(bare), Some(bare_burst)) = (figures.first(), bursts.first()) else {
        return Err("there is nobody to report on".to_owned());
    };
    let _ = writeln!(
        text,
        "Cluster network and 2 networks; {} calls each in random order; ms; burst of {PODS} pods, \
         {AT_A_TIME} at a time, best of 3, pods/s.\n\n\
         {:<16} {:>21} {:>21} {:>9} {:>10} {:>10} {:>9} {:>8}",
        bare.calls(),
        "",
        "ADD median   90%",
        "DEL median   90%",
        "CPU/ADD",
        "burst ADD",
        "burst DEL",
        "peak MiB",
        "MB"
    );
    for ((contender, figures), burst) in all.iter().zip(figures).zip(bursts) {
        let memory = memory(contender)?;
        let size = contender
            .program()
            .and_then(|(program, _)| std::fs::metadata(program).ok());
        #[allow(clippy::cast_precision_loss, reason = "a file's size")]
        let size = size.map(|file| file.len() as f64 / 1e6);
        let _ = writeln!(
            text,
            "{:<16} {:>14.2} {:>6.2} {:>14.2} {:>6.2} {:>9.2} {:>10.0} {:>10.0} {:>9} {:>8}",
            contender.name,
            figures.median(Verb::Add),
            figures.ninth_decile(Verb::Add),
            figures.median(Verb::Del),
            figures.ninth_decile(Verb::Del),
            figures.cpu(),
            burst.add,
            burst.del,
            cell(memory),
            cell(size),
        );
    }
    for (figures, first) in all
        .iter()
        .zip(figures)
        .skip(2)
        .filter(|(contender, _)| contender.name == AGAIN)
        .filter_map(|(_, of_again)| Some((of_again, figures.get(1)?)))
    {
        let apart = |verb| (figures.median(verb) - first.median(verb)).abs();
        let _ = writeln!(
            text,
            "\nThe same binary measured twice in this run: medians of ADD {:.2} ms apart, of DEL \
             {:.2} ms. Smaller differences between contenders are noise.",
            apart(Verb::Add),
            apart(Verb::Del)
        );
    }
    let thick = all.iter().zip(figures).find(|(it, _)| it.name == THICK);
    let measured = all.iter().zip(figures).zip(bursts).skip(1);
    for ((contender, figures), burst) in measured.filter(|((it, _), _)| it.name != AGAIN) {
        let _ = writeln!(text, "\n{} over the bare delegates:", contender.name);
        let over = |verb| figures.median(verb) - bare.median(verb);
        let mut line = |what: &str, value: f64, unit: &str, promise: f64, kept: bool| {
            let verdict = if kept { "kept" } else { "missed" };
            let _ = writeln!(
                text,
                "  {what:<22} {value:>7.2} {unit:<18} promised {promise:.2}: {verdict}"
            );
        };
        for (verb, name, promise) in [(Verb::Add, "ADD", ADD), (Verb::Del, "DEL", DEL)] {
            let share = over(verb) / bare.median(verb);
            let unit = format!("of theirs (+{:.2})", over(verb));
            line(name, share, &unit, promise, share <= promise);
            if let Some((_, thick)) = thick.filter(|_| contender.name != THICK) {
                let of_thick = thick.median(verb) - bare.median(verb);
                let percent = 100.0 * over(verb) / of_thick;
                let unit = format!("% of +{of_thick:.2}");
                let name = format!("{name} and thick Multus");
                line(&name, percent, &unit, OF_THICK, percent <= OF_THICK);
            }
        }
        // Only one of them is served by the agent; what it hears of the others is theirs.
        let agent = figures.agent_cpu();
        let cpu = figures.cpu() - bare.cpu() + agent;
        let unit = format!("ms (agent {agent:.2})");
        line("processor per ADD", cpu, &unit, CPU, cpu <= CPU);
        #[allow(clippy::cast_precision_loss, reason = "some hundreds")]
        let per = |requests: usize| requests as f64 / figures.calls() as f64;
        let (adds, dels) = (figures.requests_of_adds, figures.requests_of_dels);
        for (what, requests, promise) in [
            ("reads per ADD", adds.reads, 0),
            ("status per ADD", adds.status, 1),
            ("events per ADD", adds.events, 1),
            ("other requests per ADD", adds.others, 0),
            ("requests per DEL", dels.sum(), 0),
        ] {
            let kept = requests <= promise * figures.calls();
            #[allow(clippy::cast_precision_loss, reason = "one at most")]
            line(what, per(requests), "", promise as f64, kept);
        }
        for (name, share) in [
            ("burst ADD", burst.add / bare_burst.add),
            ("burst DEL", burst.del / bare_burst.del),
        ] {
            line(name, share, "of theirs", BURST, share >= BURST);
        }
        if let Some(peak) = memory(contender)? {
            line("peak memory", peak, "MiB", MEMORY, peak <= MEMORY);
        }
        if let Some((program, _)) = contender.program() {
            let size = std::fs::metadata(program).map_err(|cause| cause.to_string())?;
            #[allow(clippy::cast_precision_loss, reason = "a file's size")]
            let size = size.len() as f64 / 1024.0 / 1024.0;
            line("binary", size, "MiB", BINARY, size <= BINARY);
        }
        if burst.failed > 0 {
            let _ = writeln!(text, "  {:<22} {:>4} calls failed", "bursts", burst.failed);
        }
        let start = figures.median(Verb::Version);
        let _ = writeln!(text, "  {:<22} {start:>7.2} ms", "VERSION, all of it");
    }
    Ok(text)
}

/// The times with real plugins.
pub(crate) fn real(all: &[Contender], figures: &[Figures]) -> String {
    let mut text = String::new();
    let Some(bare) = figures.first() else {
        return text;
    };
    let _ = writeln!(
        text,
        "\nReal plugins: bridge, macvlan and ptp with host-local; {} calls each; ms.\n\n{:<16} {:>21} {:>21}",
        bare.calls(),
        "",
        "ADD median   over",
        "DEL median   over"
    );
    for (contender, figures) in all.iter().zip(figures) {
        let over = |verb| figures.median(verb) - bare.median(verb);
        let _ = writeln!(
            text,
            "{:<16} {:>14.2} {:>6.2} {:>14.2} {:>6.2}",
            contender.name,
            figures.median(Verb::Add),
            over(Verb::Add),
            figures.median(Verb::Del),
            over(Verb::Del),
        );
    }
    text
}

fn cell(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
}

/// The peak memory of one ADD, in MiB.
///
/// A child counts the memory of whoever started it until it runs its own program, so the one who
/// starts it for this purpose is a fresh process of this small program, and its own memory is
/// what no figure can go below.
fn memory(contender: &Contender) -> Result<Option<f64>, String> {
    let Some((program, folder)) = contender.program() else {
        return Ok(None);
    };
    let ours = std::env::current_exe().map_err(|cause| cause.to_string())?;
    let mut command = Command::new(ours);
    command
        .arg("memory")
        .arg(folder)
        .arg(&contender.name)
        .arg(program)
        .arg(contender.conf());
    #[allow(
        clippy::disallowed_methods,
        reason = "it starts nothing that outlives it"
    )]
    let done = command.output().map_err(|cause| cause.to_string())?;
    let said = String::from_utf8_lossy(&done.stdout);
    let peak = said.trim().parse::<f64>();
    peak.map(Some).map_err(|_| {
        format!(
            "memory of {}: {}",
            contender.name,
            String::from_utf8_lossy(&done.stderr)
        )
    })
}

/// Attaches and detaches once and gives the peak memory of the ADD.
///
/// # Errors
/// When a call fails.
pub(crate) fn memory_of_one_call(arguments: &[String]) -> Result<String, String> {
    let [folder, name, program, conf] = arguments else {
        return Err("usage: bench memory FOLDER NAME PROGRAM CONF".to_owned());
    };
    let contender = Contender::parse(folder, &format!("{name}={program}:{conf}"))?;
    contender.call(Verb::Add, 0)?;
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|cause| cause.to_string())?;
    contender.call(Verb::Del, 0)?;
    #[allow(clippy::cast_precision_loss, reason = "some thousand KiB")]
    let peak = used.max_rss() as f64 / 1024.0;
    Ok(format!("{peak:.2}\n"))
}

/// What an agent that has nothing to do has in memory.
///
/// # Errors
/// When it is gone.
pub(crate) fn idle_agent(pid: &str) -> Result<String, String> {
    let (all, own, _) = background::memory(pid)?;
    let verdict = if all <= IDLE { "kept" } else { "missed" };
    Ok(format!(
        "\nidle agent, 250 pods and 10,000 definitions of 4 KiB: {all:.2} MiB, {own:.2} of them its own and \
         the rest its program; promised {IDLE:.2}: {verdict}\n"
    ))
}

/// The most that an agent ever had in memory whose pods select large definitions.
///
/// # Errors
/// When it is gone.
pub(crate) fn peak_of_agent(pid: &str) -> Result<String, String> {
    let (_, _, peak) = background::memory(pid)?;
    let verdict = if peak <= PEAK { "kept" } else { "missed" };
    Ok(format!(
        "the same with pods of 100 definitions of 1 MB: {peak:.2} MiB at its peak; promised \
         {PEAK:.2}: {verdict}\n"
    ))
}

/// To standard output.
pub(crate) fn print(text: &str) {
    #[allow(clippy::disallowed_methods, reason = "a report of its own")]
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// To standard error.
pub(crate) fn complain(cause: &str) {
    #[allow(clippy::disallowed_methods, reason = "a report of its own")]
    let _ = writeln!(std::io::stderr(), "bench: {cause}");
}
