//! The networks that a pod selects.

use fastrand::Rng;
use serde_json::{Value, json};

/// The most networks that a pod selects.
const MOST: usize = 4;

/// The definitions, each with its plugin. `LAB` is the lab's folder.
pub(super) const DEFINITIONS: [(&str, &str); 4] = [
    ("left", r#"{"type":"small"}"#),
    ("right", r#"{"type":"small"}"#),
    (
        "asked",
        r#"{"type":"small","capabilities":{"ips":true,"mac":true}}"#,
    ),
    (
        "bridged",
        r#"{"type":"bridge","bridge":"soak0","ipam":{"type":"host-local","dataDir":"LAB/ipam","subnet":"10.64.0.0/12"}}"#,
    ),
];

/// One element of the annotation `k8s.v1.cni.cncf.io/networks`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Selection {
    /// The name of the definition.
    pub(super) definition: &'static str,
    /// The name of the interface, if the pod asks for one.
    pub(super) interface: Option<String>,
    /// What the pod asks for: an address and a MAC.
    pub(super) request: Option<(String, String)>,
}

impl Selection {
    /// The networks of a new pod.
    pub(super) fn of_new_pod(random: &mut Rng, pod: u32) -> Vec<Selection> {
        let count = random.usize(0..=MOST);
        let mut selections = Vec::with_capacity(count);
        for place in 0..count {
            let name = random.bool().then(|| format!("data{place}"));
            selections.push(Selection::draw(random, pod, place, name));
        }
        selections
    }

    /// The networks of a running pod after its change number `change`: some go, some come.
    pub(super) fn changed(
        before: &[Selection],
        random: &mut Rng,
        pod: u32,
        change: usize,
    ) -> Vec<Selection> {
        let mut selections = before.to_vec();
        selections.retain(|_| random.u8(0..3) > 0);
        let room = MOST - selections.len();
        for place in 0..random.usize(0..=room.min(2)) {
            // Every place of every change has its own number, and so its own address.
            let place = MOST * (change + 1) + place;
            let name = format!("hot{place}");
            selections.push(Selection::draw(random, pod, place, Some(name)));
        }
        selections
    }

    fn draw(random: &mut Rng, pod: u32, place: usize, interface: Option<String>) -> Selection {
        // The reference plugins cost many times as much as the small one.
        let definition = match random.u8(0..20) {
            0..8 => "left",
            8..14 => "right",
            14..18 => "asked",
            _ => "bridged",
        };
        let request = (definition == "asked").then(|| {
            let [_, high, middle, low] = pod.to_be_bytes();
            let [.., place] = place.to_be_bytes();
            let address = format!("100.{}.{middle}.{low}/32", 64 + u32::from(high));
            let mac = format!("02:5a:{place:02x}:{high:02x}:{middle:02x}:{low:02x}");
            (address, mac)
        });
        Selection {
            definition,
            interface,
            request,
        }
    }

    /// The name of the interface that a new pod gets for its network number `place`.
    pub(super) fn interface_at(&self, place: usize) -> String {
        let by_place = || format!("net{}", place + 1);
        self.interface.clone().unwrap_or_else(by_place)
    }

    /// Whether the small plugin attaches it, which takes faults.
    pub(super) fn is_small(&self) -> bool {
        self.definition != "bridged"
    }
}

/// The value of the annotation.
pub(super) fn annotation(selections: &[Selection]) -> String {
    let elements: Vec<Value> = selections
        .iter()
        .map(|selection| {
            let mut element = json!({"name": selection.definition});
            if let Some(interface) = &selection.interface {
                element["interface"] = json!(interface);
            }
            if let Some((address, mac)) = &selection.request {
                element["ips"] = json!([address]);
                element["mac"] = json!(mac);
            }
            element
        })
        .collect();
    Value::from(elements).to_string()
}
