//! Whether an attachment is what was asked for and what was answered, and what becomes of it if
//! not (SURFACES: `verify`, `verifyCluster`).

use std::time::{Duration, Instant};

use super::Failure;
use crate::cluster::Event;
use crate::cni::{CniResult, InterfaceName};
use crate::kernel::PodLinks;
use crate::plan::Attachment;
use crate::request::{NodeConfig, Strictness};
use crate::verify::{self, Finding, Intended, Weight};

/// How long duplicate address detection may take before it counts as not finished.
const DAD_WITHIN: Duration = Duration::from_secs(5);

/// Looks at the pod's interface and judges it.
///
/// # Errors
/// [`Failure::Verification`] with every finding that is not allowed; the others come back as
/// events.
pub fn prove(
    node: &NodeConfig,
    attachment: &Attachment,
    result: Option<&CniResult>,
    later: &[InterfaceName],
    links: &mut dyn PodLinks,
    deadline: Instant,
) -> Result<Vec<Event>, Failure> {
    let answered = if attachment.is_cluster {
        node.verify_cluster
    } else {
        node.verify
    };
    if attachment.is_auxiliary {
        return Ok(Vec::new());
    }
    if node.verify == Strictness::Off && answered == Strictness::Off {
        return Ok(Vec::new());
    }
    let until = deadline.min(Instant::now() + DAD_WITHIN);
    let intended = Intended {
        ifname: &attachment.ifname,
        requested: &attachment.requested,
        answered: result,
        later_interfaces: later,
    };
    let observed = verify::observe(links, &intended, until)?;
    let mut grave = Vec::new();
    let mut events = Vec::new();
    for finding in verify::judge(&intended, &observed) {
        let strictness = match finding.weight {
            Weight::Requested => node.verify,
            Weight::Answered => answered,
            Weight::Warning => {
                if answered == Strictness::Off {
                    Strictness::Off
                } else {
                    Strictness::Warn
                }
            }
        };
        match strictness {
            Strictness::Strict => grave.push(finding),
            Strictness::Warn => events.push(warning(attachment, &finding)),
            Strictness::Off => {}
        }
    }
    if grave.is_empty() {
        return Ok(events);
    }
    Err(Failure::Verification {
        place: attachment.place(),
        findings: grave,
    })
}

fn warning(attachment: &Attachment, finding: &Finding) -> Event {
    Event::warning(
        "VerificationFinding",
        format!("{}: {finding}", attachment.place()),
    )
}
