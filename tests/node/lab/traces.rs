//! What Jackfield and its delegates leave on a node: calls in its log, the journal, links, leases.

use std::fs;
use std::time::{Duration, Instant};

use super::{Lab, eventually};

impl Lab {
    /// The lines of Jackfield's log with all of these words.
    pub(crate) fn logged(&self, words: &[&str]) -> Vec<String> {
        let log = self.machine.path("disk/var/log/jackfield");
        let text = fs::read_to_string(log).unwrap_or_default();
        let lines = text.lines();
        lines
            .filter(|line| words.iter().all(|word| line.contains(word)))
            .map(str::to_owned)
            .collect()
    }

    /// How often a verb was called for a pod.
    pub(crate) fn calls(&self, verb: &str, pod: &str) -> usize {
        let call = format!("{verb} pod {}/{pod},", self.namespace);
        self.logged(&[&call]).len()
    }

    /// What the journal has on record of a pod, as text.
    pub(crate) fn journal(&self, pod: &str) -> String {
        let dir = self.machine.path("disk/var/lib/jackfield/sandboxes");
        let entries = fs::read_dir(dir).into_iter().flatten();
        // A record may go while its folder is read.
        let texts = entries.filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok());
        let of_pod = format!("\"{pod}\"");
        texts.filter(|text| text.contains(&of_pod)).collect()
    }

    /// The container IDs of a pod's sandboxes on record.
    pub(crate) fn sandboxes(&self, pod: &str) -> Vec<String> {
        let dir = self.machine.path("disk/var/lib/jackfield/sandboxes");
        let of_pod = format!("\"{pod}\"");
        let mut found = names(&dir);
        found
            .retain(|it| fs::read_to_string(dir.join(it)).is_ok_and(|text| text.contains(&of_pod)));
        found
            .iter()
            .map(|it| it.split('@').next().unwrap().to_owned())
            .collect()
    }

    /// The container ID of a pod's only sandbox.
    #[track_caller]
    pub(crate) fn sandbox(&self, pod: &str) -> String {
        let sandboxes = self.sandboxes(pod);
        assert_eq!(sandboxes.len(), 1, "{sandboxes:?}");
        sandboxes.into_iter().next().unwrap()
    }

    /// Waits until nothing is left of any pod, whoever attached it: containerd deletes a network
    /// namespace after its DEL, the agent a publication after it was made, and kubelet tries a pod
    /// that failed again, so that there is something of it for a moment.
    #[track_caller]
    pub(crate) fn wait_until_clean(&self) {
        let mut left = Vec::new();
        let until = Instant::now() + Duration::from_secs(60);
        while Instant::now() < until {
            left = self.leftovers();
            if left.is_empty() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("left after a minute: {left:#?}");
    }

    /// Everything that may be left of pods: records, debts, network namespaces, links, leases.
    fn leftovers(&self) -> Vec<String> {
        let mut left = Vec::new();
        for folder in [
            "sandboxes",
            "owed",
            "changes",
            "quarantine",
            "exclusive",
            "publish",
        ] {
            let dir = self
                .machine
                .path(&format!("disk/var/lib/jackfield/{folder}"));
            left.extend(names(&dir).into_iter().map(|it| format!("{folder}/{it}")));
        }
        for network in names(&self.machine.path("disk/var/lib/cni/networks")) {
            let dir = self
                .machine
                .path(&format!("disk/var/lib/cni/networks/{network}"));
            let leases = names(&dir).into_iter();
            let leases = leases.filter(|it| it != "lock" && !it.starts_with("last_reserved"));
            left.extend(leases.map(|it| format!("lease {network}/{it}")));
        }
        let links = self
            .machine
            .run(&["ip", "-o", "link", "show", "type", "veth"]);
        let links = links.lines().filter(|line| !line.contains("uplink0"));
        left.extend(links.map(|line| format!("link {line}")));
        let spaces = self.machine.run(&["ls", "/run/netns"]);
        left.extend(spaces.lines().map(|line| format!("netns {line}")));
        left
    }

    /// Waits until the last DEL of deleted pods has come, `dels` for each, and sees that nothing is
    /// left of them.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self, pods: &[&str], dels: usize) {
        let what = format!("{pods:?} have their {dels} DELs");
        // The last ones come when kubelet collects dead sandboxes, once a minute.
        eventually(&what, || {
            pods.iter().all(|pod| self.calls("DEL", pod) >= dels)
        });
        self.wait_until_clean();
        assert_eq!(self.logged(&["[error] DEL"]), [""; 0]);
    }
}

fn names(dir: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect()
}
