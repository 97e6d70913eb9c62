//! Whether an attachment is what was asked for and what was answered, and what becomes of it if
//! not (SURFACES: `verify`, `verifyCluster`).

use std::time::{Duration, Instant};

use super::Failure;
use crate::cluster::Event;
use crate::cni::CniResult;
use crate::kernel::PodLinks;
use crate::plan::Attachment;
use crate::request::{NodeConfig, Strictness};
use crate::verify::{self, Intended, Masters, Weight};

/// How long duplicate address detection may take before it counts as not finished.
const DAD_WITHIN: Duration = Duration::from_secs(5);

/// What is proven of an attachment.
#[derive(Debug, Default)]
pub struct Proof {
    /// Findings that are allowed, but should be known.
    pub warnings: Vec<Event>,
    /// The interface's MTU, where it was looked at.
    pub mtu: Option<u32>,
}

/// Looks at the pod's interface and judges it. `masters` are those that may have enslaved it.
///
/// # Errors
/// [`Failure::Verification`] with every finding that is not allowed.
pub fn prove(
    node: &NodeConfig,
    attachment: &Attachment,
    result: Option<&CniResult>,
    masters: Masters<'_>,
    links: &mut dyn PodLinks,
    deadline: Instant,
) -> Result<Proof, Failure> {
    let answered = if attachment.is_cluster {
        node.verify_cluster
    } else {
        node.verify
    };
    if attachment.is_auxiliary {
        return Ok(Proof::default());
    }
    if node.verify == Strictness::Off && answered == Strictness::Off {
        return Ok(Proof::default());
    }
    let intended = Intended {
        requested: &attachment.requested,
        answered: result,
        masters,
        ..Intended::new(&attachment.ifname)
    };
    let until = deadline.min(Instant::now() + DAD_WITHIN);
    let observed = verify::observe(links, &intended, until)?;
    let mut grave = Vec::new();
    let mut warnings = Vec::new();
    for finding in verify::judge(&intended, &observed) {
        let strictness = match finding.weight {
            Weight::Requested => node.verify,
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
    if grave.is_empty() {
        let mtu = observed.link.map(|link| link.mtu);
        return Ok(Proof { warnings, mtu });
    }
    let place = attachment.place();
    Err(Failure::Verification {
        place,
        findings: grave,
    })
}
