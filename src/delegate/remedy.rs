//! Remedies for the most common errors of sriov-cni and ib-sriov-cni. The plugins' own messages
//! describe the operation that failed, but give no remedy.

use crate::cni;

/// Fragments of a plugin's message, and the remedy for the error. A message matches if it contains
/// all fragments in this order. The fragments are in lower case; the case of the message does not
/// matter.
const REMEDIES: [(&[&str], &str); 17] = [
    (
        &["link state", "not supported"],
        "the driver of the device cannot set the link state, so drop link_state from the \
         definition",
    ),
    (
        &["tx_rate", "not supported"],
        "the driver of the device cannot limit rates, so drop min_tx_rate and max_tx_rate",
    ),
    (
        &["tx_rate", "invalid argument"],
        "the driver of the device does not accept the rates: bring the physical function up if it \
         is down; otherwise drop min_tx_rate or lower both rates",
    ),
    (
        &["spoofchk", "not supported"],
        "the driver of the device cannot set spoofchk, so drop spoofchk from the definition",
    ),
    (
        &["trust", "not supported"],
        "the driver of the device does not support the key \"trust\", so drop this key from the \
         definition",
    ),
    (
        &["vlan", "not supported"],
        "the driver of the device does not support this VLAN, so drop vlanProto or vlan from the \
         definition",
    ),
    (
        &["restore original", "mac address"],
        "the driver refused the original MAC address of the virtual function, so rebind the \
         function: write its PCI address to /sys/bus/pci/drivers/DRIVER/unbind, then to \
         /sys/bus/pci/drivers/DRIVER/bind; Jackfield retries the detachment",
    ),
    (
        &["mac address", "cannot assign requested address"],
        UNTRUSTED,
    ),
    (&["mac address", "operation not permitted"], UNTRUSTED),
    (&["mac address", "permission denied"], UNTRUSTED),
    (
        &["pci address", "already allocated"],
        "the plugin's own file /var/lib/cni/sriov/pci/ADDRESS assigns the device to another network \
         namespace: wait until the pod with that namespace ends, or remove the file if there is no \
         such pod",
    ),
    (&["pci addr is required"], NO_DEVICE),
    (&["deviceid is required"], NO_DEVICE),
    (
        &["failed to get vf information"],
        "the device must be a virtual function whose physical function has an interface on the host; \
         run `jackfield devices` to see all functions and their interfaces",
    ),
    (
        &["interface name or a dpdk driver"],
        "bind the device to its driver, and run `jackfield devices` to see whether another pod has \
         the device",
    ),
    (
        &["failed to find vf"],
        "the driver of the physical function does not list this VF; run `ip link show` to see \
         which VFs the driver lists",
    ),
    (
        &["failed to get netlink device", "not found"],
        "the interface of the device is not in the pod; Jackfield retries the detachment",
    ),
];

const UNTRUSTED: &str = "the driver lets only a trusted virtual function change its MAC address, \
                         so set \"trust\": \"on\" in the definition, or drop the MAC";
const NO_DEVICE: &str = "annotate the definition with k8s.v1.cni.cncf.io/resourceName, and request \
                         that resource in a container of the pod";

/// Returns the remedy for a plugin's error, or `None` for an unknown error.
pub(super) fn remedy(refusal: &cni::Error) -> Option<&'static str> {
    let text = format!("{} {}", refusal.msg, refusal.details).to_ascii_lowercase();
    let has = |fragments: &[&str]| {
        let mut fragments = fragments.iter();
        let end = fragments.try_fold(text.as_str(), |rest, fragment| {
            rest.split_once(*fragment).map(|(_, behind)| behind)
        });
        end.is_some()
    };
    let mut remedies = REMEDIES.iter();
    remedies.find_map(|(fragments, remedy)| has(fragments).then_some(*remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table contains the messages of the plugin releases of 2026. Most messages contain an
    /// error text of the kernel.
    #[test]
    fn the_usual_refusals_of_sriov_plugins_have_a_remedy() {
        for (message, part) in [
            (
                r#"SRIOV-CNI failed to configure VF "failed to set vf 1 link state to 1: operation not supported""#,
                "drop link_state",
            ),
            (
                r#"SRIOV-CNI failed to configure VF "failed to set vf 1 min_tx_rate to 10 Mbps: max_tx_rate to 100 Mbps: invalid argument""#,
                "drop min_tx_rate",
            ),
            (
                r#"SRIOV-CNI failed to configure VF "failed to set vf 1 min_tx_rate to 0 Mbps: max_tx_rate to 100 Mbps: operation not supported""#,
                "cannot limit rates",
            ),
            (
                r#"SRIOV-CNI failed to configure VF "failed to set vf 1 vlan configuration - id 300, qos 0 and proto 802.1ad: protocol not supported""#,
                "drop vlanProto",
            ),
            (
                r#"SRIOV-CNI failed to configure VF "failed to set vf 1 trust flag to on: operation not supported""#,
                "the key \"trust\", so drop this key",
            ),
            (
                r#"failed to set up pod interface "net1" from the device "eth0": failed to set netlink MAC address to 02:11:22:33:44:55: cannot assign requested address"#,
                r#"set "trust": "on""#,
            ),
            (
                "failed to set netlink MAC address to 02:11:22:33:44:55: permission denied",
                r#"set "trust": "on""#,
            ),
            (
                "SRIOV-CNI failed to load netconf: pci address 0000:01:10.2 is already allocated",
                "/var/lib/cni/sriov/pci/",
            ),
            (
                "SRIOV-CNI failed to load netconf: LoadConf(): VF pci addr is required",
                "resourceName",
            ),
            ("deviceID is required", "resourceName"),
            (
                "failed to restore original effective netlink MAC address 02:11:22:33:44:55: cannot assign requested address",
                "rebind the function",
            ),
            (
                r#"failed to get netlink device with name net1: "Link not found""#,
                "Jackfield retries",
            ),
        ] {
            let remedy = remedy(&cni::Error::new(999, message)).unwrap_or("no remedy");
            assert!(remedy.contains(part), "{message}: {remedy}");
        }
        for message in ["no IP ranges", "not supported", "mac address", ""] {
            assert_eq!(remedy(&cni::Error::new(999, message)), None, "{message}");
        }
    }
}
