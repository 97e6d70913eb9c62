//! `install`, `uninstall`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};

use super::call::read_object;
use super::doctor::node_name;
use super::{CommandError, no_findings, print, report};
use crate::cni::RawObject;
use crate::diagnostic;
use crate::setup::conf::OurConf;
use crate::setup::install::{self, InstallOutcome, Options};
use crate::setup::takeover::FromMultus;
use crate::setup::{HostPaths, guard, uninstall};

/// The directories of a node.
#[derive(Debug, Args)]
pub(super) struct PlaceArgs {
    /// Directory of CNI configurations that the container runtime reads
    #[arg(long, value_name = "DIR", default_value = "/etc/cni/net.d", value_parser = absolute())]
    conf_dir: PathBuf,
    /// Directory of the CNI plugins
    #[arg(long, value_name = "DIR", default_value = "/opt/cni/bin", value_parser = absolute())]
    bin_dir: PathBuf,
    /// Where the host's directories are mounted, if jackfield runs in a container
    #[arg(long, value_name = "DIR", default_value = "/", value_parser = absolute())]
    host_root: PathBuf,
}

impl PlaceArgs {
    pub(super) fn paths(&self, cluster_conf_dir: Option<&PathBuf>) -> HostPaths {
        // Resolve symlinks, so that a directory always has the same name. But do not resolve them
        // in a container (with a `--host-root` other than `/`), where the host's symlinks would
        // lead to wrong paths.
        let is_host = self.host_root == Path::new("/");
        let real = |dir: &PathBuf| match dir.canonicalize() {
            Ok(real) if is_host => real,
            _ => dir.clone(),
        };
        HostPaths {
            host_root: self.host_root.clone(),
            conf_dir: real(&self.conf_dir),
            cluster_conf_dir: real(cluster_conf_dir.unwrap_or(&self.conf_dir)),
            bin_dir: real(&self.bin_dir),
        }
    }
}

/// Returns `cni_path` if it is set. Otherwise returns the path at which this process finds the
/// node's directory of CNI plugins.
pub(super) fn programs(paths: &HostPaths, cni_path: Option<&String>) -> String {
    let bin_dir = || paths.here(&paths.bin_dir).display().to_string();
    cni_path.cloned().unwrap_or_else(bin_dir)
}

/// Parses an absolute path.
pub(super) fn absolute() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|dir: PathBuf| {
        let is_absolute = dir.is_absolute();
        is_absolute.then_some(dir).ok_or("write an absolute path")
    })
}

/// Options of `install`.
#[derive(Debug, Args)]
pub(super) struct InstallArgs {
    #[command(flatten)]
    paths: PlaceArgs,
    /// Directory to which the cluster network writes its configuration [default: --conf-dir]
    #[arg(long, value_name = "DIR", value_parser = absolute())]
    cluster_conf_dir: Option<PathBuf>,
    /// File with keys of the node configuration; if it contains neither the key clusterNetwork nor the key delegates, install adds clusterNetwork
    #[arg(long, value_name = "FILE")]
    conf: Option<PathBuf>,
    /// How long to wait for the cluster network's configuration; no limit with --watch
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "5m",
        overrides_with = "wait"
    )]
    wait: humantime::Duration,
    /// Keep running, and repair the installation when another program damages it
    #[arg(long)]
    watch: bool,
    /// Replace even a newer binary; this release may not be able to read the newer release's records
    #[arg(long)]
    allow_downgrade: bool,
    /// Take over from Multus, and convert Multus' configuration for jackfield. If the ADD of a pod on this node would fail after the takeover, or if jackfield cannot find out, install refuses (with --watch, install waits); --force takes over anyway
    #[arg(long)]
    from_multus: bool,
    /// List the pods whose ADD would fail, and why; change nothing; exit with 1 if there are such pods
    #[arg(long, requires = "from_multus", conflicts_with = "watch")]
    dry_run: bool,
    /// Take over even if the ADD of a pod would fail, or if jackfield cannot find out whether an ADD would fail
    #[arg(long, requires = "from_multus")]
    force: bool,
    /// Undo a takeover: give the node back to Multus, but keep the install process running; needs --from-multus and --watch
    #[arg(long, requires_all = ["from_multus", "watch"])]
    back: bool,
    /// File with the configuration of Multus' daemon [default: multus.d/daemon-config.json in --conf-dir]
    #[arg(long, value_name = "FILE", requires = "from_multus")]
    multus_daemon_config: Option<PathBuf>,
    /// This node's name in the cluster [default: $NODE_NAME, else the host's name]
    #[arg(long, value_name = "NAME", requires = "from_multus")]
    node: Option<String>,
    /// Directories to search for CNI plugins, separated by colons; the configuration's binDir is searched first [default: --bin-dir]
    #[arg(long, value_name = "DIRS", requires = "from_multus")]
    cni_path: Option<String>,
}

/// Options of `uninstall`.
#[derive(Debug, Args)]
pub(super) struct UninstallArgs {
    #[command(flatten)]
    paths: PlaceArgs,
    /// Directories to search for CNI plugins, separated by colons; the configuration's binDir is searched first [default: --bin-dir]
    #[arg(long, value_name = "DIRS")]
    cni_path: Option<String>,
    /// Also detach the pods that still run, and continue even if records are damaged
    #[arg(long)]
    force: bool,
}

pub(super) fn install(args: &InstallArgs) -> Result<(), CommandError> {
    let paths = args.paths.paths(args.cluster_conf_dir.as_ref());
    let template = args.conf.as_ref().map(|file| {
        let object = read_object(file, RawObject::parse)?;
        let is_of_a_plugin = object.contains("type") || object.contains("plugins");
        if is_of_a_plugin && OurConf::read(&object).is_none() {
            return Err(CommandError::OtherPlugin(file.clone()));
        }
        Ok(object)
    });
    let from_multus = args.from_multus.then(|| FromMultus {
        dry_run: args.dry_run,
        force: args.force,
        pods_alone: false,
        back: args.back,
        node: node_name(args.node.as_deref()),
        cni_path: programs(&paths, args.cni_path.as_ref()),
        daemon_conf: args.multus_daemon_config.clone(),
    });
    let options = Options {
        paths,
        template: template.transpose()?,
        wait: (!args.watch).then(|| Duration::from(args.wait)),
        allow_downgrade: args.allow_downgrade,
        from_multus,
    };
    if args.watch {
        return Ok(guard::watch(&options, &report)?);
    }
    match install::install(&options, &report)? {
        InstallOutcome::Done(_) => Ok(()),
        InstallOutcome::Ended => Err(CommandError::EndedEarly),
        InstallOutcome::Rehearsed(rehearsal) => {
            let findings = rehearsal.findings.iter();
            print(findings.map(|finding| diagnostic::line(finding)))?;
            no_findings(rehearsal.failing == 0)
        }
    }
}

pub(super) fn uninstall(args: &UninstallArgs) -> Result<(), CommandError> {
    let paths = args.paths.paths(None);
    let cni_path = programs(&paths, args.cni_path.as_ref());
    uninstall::uninstall(&paths, &cni_path, args.force, &report)?;
    Ok(())
}
