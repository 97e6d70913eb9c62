//! The meanings of the colours.

use super::canvas::{Area, Canvas};
use super::palette::{faint, plain};
use super::tile::frame;
use crate::cli::devices::usage::{DriverKind, Owner, User};

/// The height of the row.
pub(super) const HEIGHT: f64 = 26.0;
/// Its width; no picture is narrower.
pub(super) const WIDTH: f64 = 1180.0;

/// Draws one row: the meanings of the stripes, then those of the fills.
pub(super) fn draw(canvas: &mut Canvas, (x, y): (f64, f64)) {
    let user = User {
        device: String::new(),
        pod: None,
        container: String::new(),
        network: String::new(),
        interface: String::new(),
    };
    let stripes = [
        (DriverKind::Kernel, "kernel driver", 96.0),
        (DriverKind::Program, "user space (VFIO)", 132.0),
        (DriverKind::Vdpa, "vDPA", 44.0),
        (DriverKind::Nothing, "no driver", 70.0),
    ];
    let grounds = [
        (Owner::Pod(&user), "in a pod", 62.0),
        (Owner::Free, "free", 34.0),
        (
            Owner::Orphan,
            "orphan: neither in a pod nor on the host",
            260.0,
        ),
    ];
    canvas.open(None, "What the colours mean");
    canvas.text((x, y + 17.0), 60.0, "stripe", faint(13.0));
    let mut next = x + 48.0;
    let entry = |canvas: &mut Canvas, at: f64, driven, owner, text: &str, width: f64| {
        let area = Area {
            x: at,
            y: y + 2.0,
            width: 30.0,
            height: 22.0,
        };
        frame(canvas, area, driven, owner);
        canvas.text((at + 38.0, y + 17.0), width * 1.4, text, plain(13.0));
        at + 38.0 + width + 18.0
    };
    for (driven, text, width) in stripes {
        next = entry(canvas, next, driven, Owner::Free, text, width);
    }
    canvas.text((next, y + 17.0), 60.0, "fill", faint(13.0));
    next += 34.0;
    for (owner, text, width) in grounds {
        next = entry(canvas, next, DriverKind::Kernel, owner, text, width);
    }
    canvas.close();
}
