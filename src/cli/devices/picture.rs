//! The node's network hardware as a picture. A physical function is a wide box above a grid of
//! boxes for its VFs. Every other kind of device has a separate grid. Each box shows which pod has
//! the device, if any.

use device_info::Inventory;

use super::usage::{DriverKind, Owner, Usage, User};
use model::Device;
use svg::{BOLD, FAINT, HEADING, PLAIN, Pair, Svg, TITLE};

mod model;
mod svg;

/// The margin of the picture. All lengths are in pixels.
const MARGIN: usize = 40;
/// The width of a box in the grid.
const WIDTH: usize = 176;
/// The height of every box.
const HEIGHT: usize = 80;
/// The gap between two boxes.
const GAP: usize = 8;
/// The height of a heading.
const HEAD: usize = 44;
/// The top of the legend.
const LEGEND: usize = 104;
/// The minimum number of columns, so that the legend fits.
const FEWEST_COLUMNS: usize = 7;

/// Draws the hardware of the node named `node` as an SVG document.
pub(super) fn picture(node: &str, inventory: &Inventory, usage: &Usage) -> String {
    let title = format!("Network hardware of {node}");
    let groups = model::groups(inventory, usage);
    // This number of columns gives the page roughly the proportions of a slide.
    let boxes: usize = groups.iter().map(|group| group.devices.len()).sum();
    let columns = ((boxes * 3 / 4).isqrt() + 1).max(FEWEST_COLUMNS);
    let width = columns * (WIDTH + GAP) - GAP;
    let mut svg = Svg::default();
    svg.text((MARGIN, 62), width, TITLE, &title);
    let summary = model::summary(inventory, usage);
    svg.text((MARGIN, 88), width, FAINT, &summary);
    legend(&mut svg);
    let mut y = LEGEND + HEAD;
    for group in &groups {
        let (base_line, half) = (y + HEAD - 12, width / 2);
        svg.text((MARGIN, base_line), half, HEADING, &group.heading);
        y += HEAD;
        if let Some(physical) = &group.physical {
            svg.text((MARGIN + half, base_line), half, FAINT, &physical.name);
            draw(&mut svg, physical, (MARGIN, y), width);
            y += HEIGHT + GAP;
        }
        for (number, device) in group.devices.iter().enumerate() {
            let x = MARGIN + number % columns * (WIDTH + GAP);
            let row = number / columns;
            draw(&mut svg, device, (x, y + row * (HEIGHT + GAP)), WIDTH);
        }
        y += group.devices.len().div_ceil(columns) * (HEIGHT + GAP);
    }
    svg.finish(width + 2 * MARGIN, y + MARGIN, &title)
}

/// Draws the legend. The stripe of a box shows the kind of driver, and the fill shows whether a pod
/// has the device.
fn legend(svg: &mut Svg) {
    let user = User::default();
    let meanings = [
        (DriverKind::Kernel, Owner::Free, "kernel driver"),
        (DriverKind::Program, Owner::Free, "user space (VFIO)"),
        (DriverKind::Vdpa, Owner::Free, "vDPA"),
        (DriverKind::Nothing, Owner::Free, "no driver"),
        (DriverKind::Kernel, Owner::Free, "free"),
        (DriverKind::Kernel, Owner::Pod(&user), "in a pod"),
        (
            DriverKind::Kernel,
            Owner::Orphan,
            "orphan: neither in a pod nor on the host",
        ),
    ];
    let mut x = MARGIN;
    for (driven, owner, meaning) in meanings {
        frame(svg, (x, LEGEND), (30, 22), driven, owner);
        let width = 7 * meaning.len();
        svg.text((x + 38, LEGEND + 16), width, PLAIN, meaning);
        x += 38 + width + 24;
    }
}

/// Draws a device as a box with four lines: the label, the owner, the first detail, and all further
/// details. If a pod has the device, the first detail is the pod's interface and network, as in
/// `net1 (demo/sriov)`. All other details are the entries of [`Device::facts`]. A line that is too
/// long for the box is shortened. The tooltip contains all lines in full, and the product name.
fn draw(svg: &mut Svg, device: &Device<'_>, (x, y): Pair, width: usize) {
    let (owner, used_as) = match device.owner {
        Owner::Pod(user) => {
            let used_as = format!("{} ({})", user.interface, user.network);
            (user.name(), Some(used_as))
        }
        Owner::Orphan => ("orphan", None),
        Owner::Free => ("free", None),
    };
    let facts = used_as.iter().chain(&device.facts);
    let facts: Vec<&str> = facts.map(String::as_str).collect();
    let mut title = vec![device.label.as_str(), owner];
    title.extend(facts.iter().chain([&device.name.as_str()]));
    title.retain(|part| !part.is_empty());
    svg.open(&device.id, &title.join(" · "));
    let size = (width, HEIGHT);
    frame(svg, (x, y), size, device.driven, device.owner);
    let (seen, more) = facts.split_at(facts.len().min(1));
    let lines = [
        (BOLD, device.label.as_str()),
        (PLAIN, owner),
        (FAINT, &seen.concat()),
        (FAINT, &more.join(" · ")),
    ];
    for (number, (look, line)) in lines.into_iter().enumerate() {
        svg.text((x + 17, y + 19 + number * 17), width - 23, look, line);
    }
    svg.close();
}

/// Draws the background of a box, and the stripe for the driver.
fn frame(svg: &mut Svg, (x, y): Pair, size: Pair, driven: DriverKind, owner: Owner<'_>) {
    let (stripe, fill, line) = match driven {
        DriverKind::Kernel => ("#2563eb", "#dbeafe", "#93b4ec"),
        DriverKind::Program => ("#9333ea", "#f3e8ff", "#cfaaf0"),
        DriverKind::Vdpa => ("#0d9488", "#ccfbf1", "#7cc7bf"),
        DriverKind::Nothing => ("#94a3b8", "#e2e8f0", "#94a3b8"),
    };
    let (fill, line) = match owner {
        Owner::Pod(_) => (fill, line),
        Owner::Orphan => ("#fee2e2", "#dc2626"),
        Owner::Free => ("#ffffff", "#cbd5e1"),
    };
    svg.rect((x, y), size, fill, line);
    svg.rect((x + 5, y + 5), (5, size.1 - 10), stripe, "none");
}

#[cfg(test)]
mod tests;
