//! The contents of the picture, without a layout.

use std::collections::BTreeMap;

use device_info::{
    EswitchMode, Function, Inventory, PhysicalFunction, SubfunctionEntry, VirtualFunction,
};

use crate::cli::devices::usage::{DriverKind, Owner, Usage};

/// The whole node.
pub(super) struct Node<'a> {
    pub(super) title: String,
    pub(super) summary: String,
    pub(super) bands: Vec<Band<'a>>,
}

/// The devices of a NUMA node, or those without one.
pub(super) struct Band<'a> {
    pub(super) title: String,
    pub(super) cards: Vec<Card<'a>>,
}

/// A physical function with its VFs and subfunctions, or a group of devices without one.
pub(super) struct Card<'a> {
    /// Its address; `None` for a group.
    pub(super) device: Option<String>,
    pub(super) title: String,
    pub(super) subtitle: String,
    /// Its product name; empty if unknown.
    pub(super) name: String,
    pub(super) note: String,
    pub(super) driven: DriverKind,
    pub(super) owner: Owner<'a>,
    pub(super) tiles: Vec<Tile<'a>>,
}

/// A device with a box of its own.
pub(super) struct Tile<'a> {
    pub(super) device: String,
    /// `VF 3`.
    pub(super) label: String,
    /// Its label where there is room only for a number.
    pub(super) short: String,
    pub(super) driven: DriverKind,
    pub(super) owner: Owner<'a>,
    /// Its interface, driver or path on the host.
    pub(super) seen: String,
    /// Its product name; empty if unknown.
    pub(super) name: String,
    /// Its other devices: representor, RDMA and vDPA devices.
    pub(super) more: Vec<String>,
}

impl<'a> Node<'a> {
    pub(super) fn of(name: &str, inventory: &Inventory, usage: &'a Usage) -> Self {
        let mut numa: BTreeMap<Option<u32>, Vec<Card<'a>>> = BTreeMap::new();
        for pf in &inventory.physical_functions {
            let card = Card::of_pf(pf, &inventory.subfunctions, usage);
            numa.entry(pf.function.numa_node).or_default().push(card);
        }
        for function in &inventory.functions {
            let card = Card::of_function(function, usage);
            numa.entry(function.numa_node).or_default().push(card);
        }
        let mut bands: Vec<Band<'a>> = numa
            .into_iter()
            .map(|(node, cards)| Band {
                title: node.map_or_else(
                    || "No NUMA node".to_owned(),
                    |node| format!("NUMA node {node}"),
                ),
                cards,
            })
            .collect();
        let cards = without_function(inventory, usage);
        if !cards.is_empty() {
            bands.push(Band {
                title: "Without a PCI function".to_owned(),
                cards,
            });
        }
        Node {
            title: format!("Network hardware of {name}"),
            summary: summary(inventory, usage),
            bands,
        }
    }

    /// The boxes of all cards.
    pub(super) fn tiles(&self) -> usize {
        let cards = self.bands.iter().flat_map(|band| &band.cards);
        cards.map(|card| card.tiles.len()).sum()
    }
}

/// `2 PFs, 64 VFs …; 12 devices in 8 pods`.
fn summary(inventory: &Inventory, usage: &Usage) -> String {
    let vfs: usize = inventory
        .physical_functions
        .iter()
        .map(|pf| pf.vfs.len())
        .sum();
    let counted = [
        (inventory.physical_functions.len(), "PF"),
        (vfs, "VF"),
        (inventory.functions.len(), "other function"),
        (inventory.subfunctions.len(), "subfunction"),
        (inventory.vdpa.len(), "vDPA device"),
        (inventory.rdma.len(), "RDMA device"),
    ];
    let mut parts: Vec<String> = counted
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| number(count, what))
        .collect();
    if parts.is_empty() {
        parts.push("nothing found".to_owned());
    }
    let mut pods: Vec<&str> = usage.users.iter().map(|user| user.name()).collect();
    pods.sort_unstable();
    pods.dedup();
    let used = if usage.users.is_empty() {
        "no device in a pod".to_owned()
    } else {
        let devices = number(usage.users.len(), "device");
        format!("{devices} in {}", number(pods.len(), "pod"))
    };
    let lost = match usage.orphans.len() {
        0 => String::new(),
        count => format!(" · {}", number(count, "orphan")),
    };
    format!("{} · {used}{lost}", parts.join(", "))
}

fn number(count: usize, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}

impl<'a> Card<'a> {
    fn of_pf(pf: &PhysicalFunction, subfunctions: &[SubfunctionEntry], usage: &'a Usage) -> Self {
        let mut tiles: Vec<Tile<'a>> = pf.vfs.iter().map(|vf| Tile::of_vf(vf, usage)).collect();
        let own = subfunctions
            .iter()
            .filter(|entry| entry.parent == Some(pf.function.address));
        tiles.extend(own.map(|entry| Tile::of_subfunction(entry, usage)));
        let used = tiles
            .iter()
            .filter(|tile| matches!(tile.owner, Owner::Pod(_)))
            .count();
        let mut note = format!("{} of {} VFs", pf.vfs.len(), pf.total_vfs);
        if used > 0 {
            note = format!("{note}, {used} in pods");
        }
        note = match pf.eswitch {
            Some(EswitchMode::Switchdev) => format!("{note} · switchdev"),
            Some(EswitchMode::Legacy) | None => note,
        };
        Card {
            note,
            tiles,
            ..Card::of_function(&pf.function, usage)
        }
    }

    fn of_function(function: &Function, usage: &'a Usage) -> Self {
        let address = function.address.to_string();
        let id = |number: Option<u16>| {
            number.map_or_else(|| "????".to_owned(), |number| format!("{number:04x}"))
        };
        let mut subtitle = vec![
            address.clone(),
            format!("{}:{}", id(function.vendor), id(function.device)),
            function
                .driver
                .clone()
                .unwrap_or_else(|| "no driver".to_owned()),
        ];
        subtitle.extend(made_of(function));
        Card {
            title: function.netdev.clone().unwrap_or_else(|| address.clone()),
            device: Some(address),
            subtitle: subtitle.join(" · "),
            name: function.name().unwrap_or_default(),
            note: String::new(),
            driven: DriverKind::of(function),
            owner: usage.of_function(function),
            tiles: Vec::new(),
        }
    }
}

/// The RDMA and vDPA devices of a function.
fn made_of(function: &Function) -> Vec<String> {
    let rdma = function.rdma.iter().map(|name| format!("RDMA {name}"));
    let vdpa = function.vdpa.iter().map(|name| format!("vDPA {name}"));
    rdma.chain(vdpa).collect()
}

impl<'a> Tile<'a> {
    fn of_vf(vf: &VirtualFunction, usage: &'a Usage) -> Self {
        let function = &vf.function;
        let driver = function.driver.as_deref().unwrap_or("no driver");
        let path = function.vfio.as_ref().and_then(|vfio| vfio.path.as_ref());
        let at = function.netdev.as_ref().or(path);
        let mut more: Vec<String> = vf
            .representor
            .iter()
            .map(|name| format!("⇄ {name}"))
            .collect();
        more.extend(made_of(function));
        Tile {
            device: function.address.to_string(),
            label: format!("VF {}", vf.index),
            short: vf.index.to_string(),
            driven: DriverKind::of(function),
            owner: usage.of_function(function),
            seen: at.map_or_else(|| driver.to_owned(), |at| format!("{at}, {driver}")),
            name: function.name().unwrap_or_default(),
            more,
        }
    }

    fn of_subfunction(entry: &SubfunctionEntry, usage: &'a Usage) -> Self {
        let number = entry
            .number
            .map_or_else(|| "?".to_owned(), |number| number.to_string());
        let representor = entry.representor.iter().map(|name| format!("⇄ {name}"));
        let rdma = entry.rdma.iter().map(|name| format!("RDMA {name}"));
        Tile {
            device: entry.name.clone(),
            label: format!("SF {number}"),
            short: format!("SF {number}"),
            driven: DriverKind::Kernel,
            owner: usage.of(&entry.name),
            seen: entry.netdev.clone().unwrap_or_default(),
            name: String::new(),
            more: representor.chain(rdma).collect(),
        }
    }
}

/// Devices without a card.
fn without_function<'a>(inventory: &Inventory, usage: &'a Usage) -> Vec<Card<'a>> {
    let group = |title: &str, tiles: Vec<Tile<'a>>| Card {
        device: None,
        title: title.to_owned(),
        subtitle: number(tiles.len(), "device"),
        name: String::new(),
        note: String::new(),
        driven: DriverKind::Vdpa,
        owner: Owner::Free,
        tiles,
    };
    let here = |entry: &&SubfunctionEntry| {
        let mut pfs = inventory.physical_functions.iter();
        !pfs.any(|pf| entry.parent == Some(pf.function.address))
    };
    let subfunctions = inventory.subfunctions.iter().filter(here);
    let subfunctions: Vec<Tile<'a>> = subfunctions
        .map(|entry| Tile::of_subfunction(entry, usage))
        .collect();
    let vdpa = inventory.vdpa.iter();
    let vdpa: Vec<Tile<'a>> = vdpa
        .filter(|entry| entry.pci_address.is_none())
        .map(|entry| Tile {
            device: entry.name.clone(),
            label: entry.name.clone(),
            short: entry.name.clone(),
            driven: entry
                .driver
                .map_or(DriverKind::Nothing, |_| DriverKind::Vdpa),
            owner: usage.of(&entry.name),
            seen: entry.path.clone().unwrap_or_default(),
            name: String::new(),
            more: entry.driver.iter().map(ToString::to_string).collect(),
        })
        .collect();
    let rdma = inventory.rdma.iter();
    let rdma: Vec<Tile<'a>> = rdma
        .filter(|entry| entry.pci_address.is_none())
        .map(|entry| Tile {
            device: entry.name.clone(),
            label: entry.name.clone(),
            short: entry.name.clone(),
            driven: DriverKind::Kernel,
            owner: usage.of(&entry.name),
            seen: entry
                .node_guid
                .map_or_else(String::new, |guid| guid.to_string()),
            name: String::new(),
            more: Vec::new(),
        })
        .collect();
    [
        ("Subfunctions", subfunctions),
        ("vDPA devices", vdpa),
        ("RDMA devices of software", rdma),
    ]
    .into_iter()
    .filter(|(_, tiles)| !tiles.is_empty())
    .map(|(title, tiles)| group(title, tiles))
    .collect()
}
