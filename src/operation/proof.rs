//! Verifies that an attachment matches what the pod requested and what the delegate reported. The
//! keys `verify` and `verifyCluster` decide whether a difference is an error, a warning or ignored.

use std::path::Path;
use std::time::{Duration, Instant};

use device_info::{IpoibAddr, MacAddr};
use serde_json::Value;

use super::Failure;
use super::devices::hardware::Hardware;
use crate::clock;
use crate::cluster::Event;
use crate::cni::CniResult;
use crate::kernel::{Link, PodLinks};
use crate::plan::Attachment;
use crate::request::{NodeConfig, Strictness};
use crate::verify::{self, Finding, Intended, Masters, Mismatch, Weight};

/// How long to wait for duplicate address detection to finish.
const DAD_WITHIN: Duration = Duration::from_secs(5);

/// The outcome of a successful verification.
#[derive(Debug, Default)]
pub struct Proof {
    /// The findings that count only as warnings.
    pub warnings: Vec<Event>,
    /// What network-status reports about the attachment.
    pub shown: Shown,
}

/// What network-status reports about an attachment in addition to its result.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// The MTU of the interface, if the interface was read.
    pub mtu: Option<u32>,
    /// The hardware address of the interface, if the result of the delegate has none. ib-sriov-cni,
    /// for example, reports none.
    pub mac: Option<String>,
    /// The device-info, with the facts that Jackfield added from the hardware (NPWG 1.3 §5.3.7).
    pub device_info: Option<Value>,
}

/// Reads the attachment's interface in the pod and compares it with the request and with the
/// delegate's `result`. `masters` says which interfaces may be the master of this interface.
/// Verifies nothing for the auxiliary chain (`auxiliaryCNIChainName`), which creates no interface.
///
/// # Errors
/// [`Failure::Verification`] with every finding that is an error according to `verify` or
/// `verifyCluster`. [`Failure::DeviceInfo`] if the device-info file cannot be read, is invalid or
/// contradicts the hardware. [`Failure::Kernel`] if the kernel does not answer.
pub fn prove(
    config: &NodeConfig,
    attachment: &Attachment,
    result: Option<&CniResult>,
    masters: Masters<'_>,
    links: &mut dyn PodLinks,
    deadline: Instant,
) -> Result<Proof, Failure> {
    let answered = if attachment.is_cluster {
        config.verify_cluster
    } else {
        config.verify
    };
    if attachment.is_auxiliary {
        return Ok(Proof::default());
    }
    let hardware = attachment.device_info_file.as_ref();
    let hardware = hardware.map(|_| Hardware::of(config));
    let told = hardware.as_ref().map(|it| it.told(attachment));
    let told = told.transpose()?.unwrap_or_default();
    let mut shown = Shown {
        device_info: told.device_info,
        ..Shown::default()
    };
    if config.verify == Strictness::Off && answered == Strictness::Off {
        let warnings = Vec::new();
        return Ok(Proof { warnings, shown });
    }
    // A device plugin may use its own format for the IDs of devices. Such an ID names no device in
    // sysfs, so `driver` is `None`, and Jackfield cannot compare the ID with the interface.
    let device = attachment.device.as_ref().filter(|it| it.driver.is_some());
    let intended = Intended {
        ifname: &attachment.ifname,
        requested: &attachment.requested,
        answered: result,
        device: hardware.as_ref().and(device).map(|it| it.id.as_str()),
        in_user_space: told.in_user_space || has_socket(result),
        masters,
    };
    let until = deadline.min(clock::now() + DAD_WITHIN);
    let mut observed = verify::observe(links, &intended, until)?;
    let mut findings = lost_sockets(attachment, result);
    if let Some(hardware) = &hardware {
        let mismatch = hardware.mismatch(attachment);
        let finding = |it| Finding::new(&attachment.ifname, it, Weight::Requested);
        findings.extend(mismatch.map(finding));
        if let Some(link) = observed.link.as_ref().filter(|_| intended.device.is_some()) {
            observed.device = hardware.names(link, links);
        }
    }
    findings.extend(verify::judge(&intended, &observed));
    if !intended.in_user_space {
        findings.extend(lost_others(attachment, result, links)?);
    }
    let warnings = tolerated(attachment, findings, config.verify, answered)?;
    if let Some(link) = &observed.link {
        shown.mtu = Some(link.mtu);
        let answered = result.and_then(CniResult::sandbox_interface);
        let is_told = answered.is_some_and(|(_, interface)| interface.mac.is_some());
        shown.mac = (!is_told).then(|| hardware_address(link)).flatten();
    }
    Ok(Proof { warnings, shown })
}

/// Applies a strictness to each finding. `requested` applies to findings that contradict the pod's
/// request, the definition or kubelet's allocation. `answered` applies to findings that contradict
/// only the delegate's result. With `Warn`, the finding becomes a warning. With `Off`, the function
/// drops the finding. A finding with [`Weight::Warning`] is never an error.
///
/// # Errors
/// [`Failure::Verification`] with the findings to which `Strict` applies.
pub(super) fn tolerated(
    attachment: &Attachment,
    findings: Vec<Finding>,
    requested: Strictness,
    answered: Strictness,
) -> Result<Vec<Event>, Failure> {
    let mut grave = Vec::new();
    let mut warnings = Vec::new();
    for finding in findings {
        let strictness = match finding.weight {
            Weight::Requested => requested,
            Weight::Answered => answered,
            Weight::Warning if answered == Strictness::Off => Strictness::Off,
            Weight::Warning => Strictness::Warn,
        };
        match strictness {
            Strictness::Strict => grave.push(finding),
            Strictness::Warn => {
                let message = format!("{}: {finding}", attachment.place());
                warnings.push(Event::warning("VerificationFinding", message));
            }
            Strictness::Off => {}
        }
    }
    match grave.is_empty() {
        true => Ok(warnings),
        false => Err(Failure::Verification(attachment.place(), grave)),
    }
}

/// Returns the Ethernet or IPoIB address of a link. Returns `None` for other links, such as
/// tunnels, because their address is not a hardware address.
fn hardware_address(link: &Link) -> Option<String> {
    let octets = link.address.as_slice();
    let ethernet = <[u8; 6]>::try_from(octets).map(|it| MacAddr::from(it).to_string());
    let ipoib = || <[u8; 20]>::try_from(octets).map(|it| IpoibAddr::from(it).to_string());
    ethernet.or_else(|_| ipoib()).ok()
}

/// Returns a finding for each unusable socket path in the result: the path is relative, or its
/// directory is missing. A missing socket in an existing directory is no finding, because the pod
/// may create the socket later.
fn lost_sockets(attachment: &Attachment, result: Option<&CniResult>) -> Vec<Finding> {
    let interfaces = result.into_iter().flat_map(|result| &result.interfaces);
    let sockets = interfaces.filter_map(|interface| interface.socket_path.as_deref());
    let is_lost = |path: &&str| {
        let path = Path::new(path);
        let directory = path.parent().filter(|_| path.is_absolute());
        !directory.is_some_and(Path::is_dir)
    };
    let finding = |path: &str| {
        let mismatch = Mismatch::Socket(path.to_owned());
        Finding::new(&attachment.ifname, mismatch, Weight::Answered)
    };
    sockets.filter(is_lost).map(finding).collect()
}

/// Returns a finding for each interface that is in the result and not in the pod. Skips the
/// attachment's own interface, and interfaces without `sandbox`.
fn lost_others(
    attachment: &Attachment,
    result: Option<&CniResult>,
    links: &mut dyn PodLinks,
) -> Result<Vec<Finding>, Failure> {
    let mut lost = Vec::new();
    let interfaces = result.into_iter().flat_map(|result| &result.interfaces);
    let in_pod = interfaces.filter(|interface| interface.sandbox.is_some());
    let others = in_pod.filter(|interface| interface.name != attachment.ifname.as_str());
    for name in others.filter_map(|interface| interface.name.parse().ok()) {
        if links.link(&name)?.is_none() {
            lost.push(Finding::new(&name, Mismatch::Missing, Weight::Answered));
        }
    }
    Ok(lost)
}

/// Whether an interface in the result has a `socketPath` (CNI 1.1.0 §5).
fn has_socket(result: Option<&CniResult>) -> bool {
    result.is_some_and(|result| result.interfaces.iter().any(|it| it.socket_path.is_some()))
}
