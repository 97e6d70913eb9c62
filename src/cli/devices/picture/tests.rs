//! Tests of the picture: the document is valid, and no boxes overlap.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use device_info::{Capture, fixtures};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::*;
use crate::cli::devices::usage::User;
use crate::operation::devices::orphans::Orphan;

/// The names of two vendors and of one device, in the format of `pci.ids`.
const NAMES: &[u8] =
    b"15b3  <M> & Company\n8086  Intel Corporation\n\t10c9  82576 Gigabit\x1b[31m\n";

fn inventory(capture: &Capture) -> Inventory {
    let directory = tempfile::tempdir().unwrap();
    let sysfs = capture.build(directory.path()).unwrap();
    let mut inventory = Inventory::read(&sysfs, &mut |device| capture.switch(device).cloned());
    inventory.name(NAMES);
    inventory
}

fn orphan(address: &str) -> Orphan {
    Orphan {
        address: address.parse().unwrap(),
        physical: address.parse().unwrap(),
        index: 1,
        driver: "igbvf".to_owned(),
    }
}

/// Gives every third VF to a pod, and makes one VF an orphan.
fn usage(inventory: &Inventory) -> Usage {
    let vfs = inventory.physical_functions.iter().flat_map(|pf| &pf.vfs);
    let addresses: Vec<String> = vfs.map(|vf| vf.function.address.to_string()).collect();
    let user = |(number, address): (usize, &String)| User {
        device: address.clone(),
        pod: Some(format!("telco/user-plane-{number}")),
        container: format!("c{number}"),
        network: "telco/sriov-<a> & \"b\"".to_owned(),
        interface: "net1".to_owned(),
    };
    Usage {
        users: addresses.iter().step_by(3).enumerate().map(user).collect(),
        orphans: addresses.get(1).map(|it| orphan(it)).into_iter().collect(),
    }
}

/// Returns nodes of all kinds, with 0 to 512 VFs. Builds their sysfs trees only once.
fn nodes() -> &'static [Inventory] {
    static NODES: OnceLock<Vec<Inventory>> = OnceLock::new();
    NODES.get_or_init(make_nodes)
}

fn make_nodes() -> Vec<Inventory> {
    let mut nodes: Vec<Inventory> = [1, 8, 64, 256]
        .map(|vfs| inventory(&fixtures::unverified_connectx6(vfs)))
        .into();
    nodes.push(inventory(
        &fixtures::unverified_e810(256).with(fixtures::unverified_connectx6(256)),
    ));
    nodes.extend(
        [
            fixtures::igb_vfio(),
            fixtures::unverified_bluefield2(),
            fixtures::unverified_vmd(),
            fixtures::unverified_i350(3)
                .with(fixtures::vduse())
                .with(fixtures::rxe()),
            fixtures::vp_vdpa_vhost(),
            fixtures::netdevsim(),
        ]
        .iter()
        .map(inventory),
    );
    nodes.push(Inventory::default());
    nodes
}

/// The rectangle of a page or of a device's box.
#[derive(Debug, Clone, Copy)]
struct Drawn {
    x: f64,
    y: f64,
    right: f64,
    bottom: f64,
}

impl Drawn {
    fn is_within(self, other: Drawn) -> bool {
        self.x >= other.x
            && self.y >= other.y
            && self.right <= other.right
            && self.bottom <= other.bottom
    }

    fn is_apart_from(self, other: Drawn) -> bool {
        self.right <= other.x
            || other.right <= self.x
            || self.bottom <= other.y
            || other.bottom <= self.y
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let attribute = element.try_get_attribute(name).unwrap()?;
    let text = std::str::from_utf8(&attribute.value).unwrap().to_owned();
    Some(quick_xml::escape::unescape(&text).unwrap().into_owned())
}

/// Returns the rectangle of a picture's page, and the first rectangle in each device's `<g>`.
/// Panics if the picture is not XML.
fn read(svg: &str) -> (Drawn, Vec<(String, Drawn)>) {
    let mut reader = Reader::from_str(svg);
    let (mut page, mut drawn, mut group) = (None, Vec::new(), None);
    let mut depth = 0;
    loop {
        match reader.read_event().unwrap() {
            Event::Eof => break,
            Event::Start(element) => {
                depth += 1;
                if element.name().as_ref() == b"g" {
                    group = attribute(&element, "data-device");
                }
            }
            Event::End(_) => depth -= 1,
            Event::Empty(element) if element.name().as_ref() == b"rect" => {
                let number = |name: &str| -> f64 {
                    attribute(&element, name).map_or(0.0, |text| text.parse().unwrap())
                };
                let area = Drawn {
                    x: number("x"),
                    y: number("y"),
                    right: number("x") + number("width"),
                    bottom: number("y") + number("height"),
                };
                page = page.or(Some(area));
                drawn.extend(group.take().map(|device| (device, area)));
            }
            Event::Text(text) => {
                quick_xml::escape::unescape(&text.decode().unwrap()).unwrap();
            }
            _ => {}
        }
    }
    assert_eq!(depth, 0);
    (page.unwrap(), drawn)
}

/// Lists the devices that the picture must show, sorted.
fn devices(inventory: &Inventory) -> Vec<String> {
    let mut names = Vec::new();
    for pf in &inventory.physical_functions {
        names.push(pf.function.address.to_string());
        names.extend(pf.vfs.iter().map(|vf| vf.function.address.to_string()));
    }
    let functions = inventory.functions.iter();
    names.extend(functions.map(|function| function.address.to_string()));
    names.extend(
        inventory
            .subfunctions
            .iter()
            .map(|entry| entry.name.clone()),
    );
    let vdpa = inventory
        .vdpa
        .iter()
        .filter(|entry| entry.pci_address.is_none());
    names.extend(vdpa.map(|entry| entry.name.clone()));
    let rdma = inventory
        .rdma
        .iter()
        .filter(|entry| entry.pci_address.is_none());
    names.extend(rdma.map(|entry| entry.name.clone()));
    names.sort();
    names
}

#[test]
fn a_picture_shows_each_device_once() {
    for inventory in nodes() {
        let usage = usage(inventory);
        let svg = picture("node<1> & \"co\"", inventory, &usage);
        let (_, drawn) = read(&svg);
        let mut shown: Vec<String> = drawn.into_iter().map(|(device, _)| device).collect();
        shown.sort();
        assert_eq!(shown, devices(inventory));
        let representors = inventory.physical_functions.iter().flat_map(|pf| &pf.vfs);
        for representor in representors.filter_map(|vf| vf.representor.as_ref()) {
            assert!(svg.contains(&format!("⇄ {representor}")), "{representor}");
        }
        for user in &usage.users {
            assert!(
                svg.contains(&format!("{} · net1 (", user.name())),
                "{user:?}"
            );
        }
    }
}

#[test]
fn boxes_do_not_overlap_and_stay_within_the_page() {
    for inventory in nodes() {
        let (page, drawn) = read(&picture("node", inventory, &usage(inventory)));
        for (number, (device, area)) in drawn.iter().enumerate() {
            assert!(area.is_within(page), "{device} {area:?}");
            for (other, at) in &drawn[number + 1..] {
                let fits = area.is_apart_from(*at) || at.is_within(*area);
                assert!(fits, "{device} {area:?}, {other} {at:?}");
            }
        }
    }
}

#[test]
fn a_picture_of_256_vfs_has_the_proportions_of_a_slide() {
    let inventory = &nodes()[3];
    let (page, _) = read(&picture("node", inventory, &usage(inventory)));
    let ratio = page.right / page.bottom;
    assert!((1.2..2.0).contains(&ratio), "{page:?}");
}

#[test]
fn each_colour_has_one_meaning() {
    let inventory = inventory(&fixtures::igb_vfio());
    let free = picture("node", &inventory, &Usage::default());
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for color in ["#fee2e2", "#f3e8ff", "#dbeafe"] {
        seen.insert(color.to_owned(), free.matches(color).count());
    }
    // Without users and orphans, the boxes of all devices are white. The legend has two coloured
    // boxes: an orphan, and a pod's device with a kernel driver.
    assert_eq!(seen["#fee2e2"], 1);
    assert_eq!(seen["#f3e8ff"], 0);
    assert_eq!(seen["#dbeafe"], 1);
    let used = picture("node", &inventory, &usage(&inventory));
    assert_eq!(
        used.matches("#f3e8ff").count(),
        1,
        "a VF on vfio-pci, in a pod"
    );
    assert_eq!(
        used.matches("#fee2e2").count(),
        2,
        "the legend and one orphan"
    );
}

#[test]
fn a_picture_shows_the_product_name_of_each_function() {
    let inventory = inventory(&fixtures::igb_vfio());
    let svg = picture("node", &inventory, &Usage::default());
    let name = r"Intel Corporation 82576 Gigabit\u{1b}[31m";
    assert!(svg.contains(&format!(">{name}</text>")), "{svg}");
    let vf = &inventory.physical_functions[0].vfs[0].function;
    let title = format!(" · {}</title>", vf.name().unwrap());
    assert!(svg.contains(&title), "{title} is not in\n{svg}");
    let marks = picture("node", &nodes()[0], &Usage::default());
    assert!(marks.contains("&lt;M&gt; &amp; Company"), "{marks}");
}

/// With `JACKFIELD_PICTURES=DIR`, saves a picture of each node in `DIR`, so that a developer can
/// look at the pictures.
#[test]
fn the_pictures_can_be_saved() {
    let Some(directory) = std::env::var_os("JACKFIELD_PICTURES") else {
        return;
    };
    for (number, inventory) in nodes().iter().enumerate() {
        let svg = picture("worker-7", inventory, &usage(inventory));
        let file = std::path::Path::new(&directory).join(format!("{number:02}.svg"));
        std::fs::write(file, svg).unwrap();
    }
}
