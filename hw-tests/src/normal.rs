//! Captures in normal form, in which two captures of the same hardware are equal.
//!
//! Names that a machine assigns at each boot or bind are replaced: interface names by their device, IOMMU groups by
//! their first member, addresses and GUIDs by the order in which they occur. Numbers of virtio
//! devices and of device nodes are dropped.

use std::collections::{BTreeMap, BTreeSet};

use device_info::Capture;

/// Lines of a capture in normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NormalForm(BTreeSet<String>);

impl NormalForm {
    /// Makes the normal form of the devices at these paths below the root of sysfs, and of links to
    /// them.
    pub(crate) fn of(capture: &Capture, devices: &[&str]) -> Self {
        let mut names = Names::default();
        let lines: Vec<String> = capture
            .lines()
            .filter(|line| concerns(line, devices))
            .collect();
        for line in &lines {
            names.learn(line);
        }
        let nodes = capture.lines().filter_map(|line| names.node(&line));
        let lines = lines.iter().map(|line| names.replace(line));
        Self(lines.chain(nodes).collect())
    }

    /// Replaces names that people chose.
    pub(crate) fn renamed(self, names: &[(&str, &str)]) -> Self {
        let rename = |line: String| {
            names
                .iter()
                .fold(line, |line, (from, to)| line.replace(from, to))
        };
        Self(self.0.into_iter().map(rename).collect())
    }

    /// Returns the lines that only one of the two has; `None` if they are equal.
    pub(crate) fn difference(&self, expected: &Self) -> Option<String> {
        let more = self
            .0
            .difference(&expected.0)
            .map(|line| format!("+ {line}"));
        let less = expected
            .0
            .difference(&self.0)
            .map(|line| format!("- {line}"));
        let lines: Vec<String> = more.chain(less).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// Returns whether a line is below one of the devices, or a link to it or to something below it.
fn concerns(line: &str, devices: &[&str]) -> bool {
    let below = |path: &str, device: &str| {
        path.strip_prefix(device)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let (path, target) = split(line);
    devices.iter().any(|device| {
        below(path, device)
            || target.is_some_and(|target| below(target.trim_start_matches("../"), device))
    })
}

/// Returns the path of a line and the target of its link.
fn split(line: &str) -> (&str, Option<&str>) {
    if let Some((path, target)) = line.split_once(" -> ") {
        return (path, Some(target));
    }
    let path = line.split_once(" = ").map_or(line, |(path, _)| path);
    (path.trim_end_matches('/'), None)
}

#[derive(Debug, Default)]
struct Names {
    /// Replacements for names between slashes.
    parts: BTreeMap<String, String>,
    /// Replacements for the numbers of IOMMU groups.
    groups: BTreeMap<String, String>,
    /// Replacements for addresses and GUIDs.
    identities: BTreeMap<String, String>,
}

impl Names {
    fn learn(&mut self, line: &str) {
        let (path, target) = split(line);
        let parts: Vec<&str> = path.split('/').collect();
        for window in parts.windows(3) {
            match window {
                [device, "net", name] if *device != "class" => {
                    let device = self.parts.get(*device).map_or(*device, String::as_str);
                    let number = format!("interface-of-{device}");
                    self.parts.entry((*name).to_owned()).or_insert(number);
                }
                [_, _, name] if numbered(name, "virtio") || numbered(name, "vhost-vdpa-") => {
                    let kind = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
                    self.parts.insert((*name).to_owned(), kind.to_owned());
                }
                _ => {}
            }
        }
        if let (Some(["iommu_group"]), Some(group), Some(device)) = (
            parts.last_chunk::<1>(),
            target.and_then(|target| target.rsplit('/').next()),
            parts.iter().rev().nth(1),
        ) {
            let number = format!("group-of-{device}");
            self.groups.entry(group.to_owned()).or_insert(number);
        }
        if let Some((path, value)) = line.split_once(" = ")
            && is_identity(path)
        {
            let next = self.identities.len() + 1;
            self.identities
                .entry(value.to_owned())
                .or_insert_with(|| format!("identity-{next}"));
        }
    }

    fn replace(&self, line: &str) -> String {
        let (path, rest) = match (line.split_once(" = "), line.split_once(" -> ")) {
            (Some((path, value)), _) => (path, self.value(path, value)),
            (None, Some((path, target))) => (path, format!(" -> {}", self.path(target))),
            (None, None) => (line, String::new()),
        };
        self.path(path) + &rest
    }

    /// Returns the line of a device node that belongs to one of the devices, or to its IOMMU group.
    fn node(&self, line: &str) -> Option<String> {
        let (node, _) = line.strip_prefix("/dev/")?.split_once(" = ")?;
        if let Some(kind) = self.parts.get(node) {
            return Some(format!("/dev/{kind}"));
        }
        let (folder, name) = node.rsplit_once('/')?;
        let group = name.trim_start_matches("noiommu-");
        let known = self.groups.get(group)?;
        (folder == "vfio").then(|| format!("/dev/{}", node.replace(group, known)))
    }

    fn value(&self, path: &str, value: &str) -> String {
        if path.ends_with("/dev") {
            return " = numbers".to_owned();
        }
        let known = is_identity(path).then(|| self.identities.get(value));
        format!(" = {}", known.flatten().map_or(value, String::as_str))
    }

    fn path(&self, path: &str) -> String {
        let mut previous = "";
        let replaced = path.split('/').map(|part| {
            let groups = previous == "iommu_groups";
            previous = part;
            let known = if groups {
                self.groups.get(part)
            } else {
                self.parts.get(part)
            };
            known.map_or(part, String::as_str)
        });
        replaced.collect::<Vec<_>>().join("/")
    }
}

fn numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix)
        .is_some_and(|number| number.parse::<u32>().is_ok())
}

/// Returns whether the attribute identifies a device.
fn is_identity(path: &str) -> bool {
    let attribute = path.rsplit('/').next().unwrap_or(path);
    ["address", "node_guid", "phys_switch_id"].contains(&attribute) || path.ends_with("/gids/0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use device_info::fixtures;

    const PF: &str = "devices/pci0000:00/0000:00:04.0/0000:01:00.0";
    const VF: &str = "devices/pci0000:00/0000:00:04.0/0000:01:10.0";

    fn of_json(edit: impl Fn(String) -> String) -> NormalForm {
        let json = edit(fixtures::igb().to_json());
        NormalForm::of(&Capture::from_json(&json).unwrap(), &[PF, VF])
    }

    #[test]
    fn newly_assigned_names_make_no_difference() {
        let original = of_json(|json| json);
        let again = of_json(|json| {
            json.replace("eth0", "enp1s0")
                .replace("eth2", "dev4")
                .replace("02:00:00:00:00:01", "02:00:00:00:77:01")
                .replace("iommu_groups/11", "iommu_groups/42")
        });
        assert_eq!(again.difference(&original), None);
    }

    #[test]
    fn every_other_change_makes_a_difference() {
        let original = of_json(|json| json);
        for (from, to) in [
            ("0x10ca", "0x10cb"),
            ("drivers/igbvf", "drivers/vfio-pci"),
            ("virtfn0", "virtfn3"),
        ] {
            let other = of_json(|json| json.replace(from, to));
            let difference = other.difference(&original).unwrap();
            assert!(
                difference.contains(to) && difference.contains(from),
                "{difference}"
            );
        }
    }

    #[test]
    fn other_devices_are_left_out() {
        let pf = NormalForm::of(&fixtures::igb(), &[PF]);
        let lines: Vec<&String> = pf.0.iter().collect();
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("bus/pci/devices/0000:01:00.0 "))
        );
        assert!(
            !lines.iter().any(|line| line.contains("0000:01:10.2/")),
            "{lines:?}"
        );
    }
}
