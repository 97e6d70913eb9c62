//! What the colours mean.

use super::canvas::{Area, Canvas};
use super::palette::{faint, plain};
use super::tile::frame;
use crate::cli::devices::usage::{Driven, Owner, User};

/// The height of the row.
pub(super) const HEIGHT: f64 = 26.0;
/// Its width; no picture is narrower.
pub(super) const WIDTH: f64 = 1180.0;

/// One row: what the stripe says, then what the fill says.
pub(super) fn draw(canvas: &mut Canvas, (x, y): (f64, f64)) {
    let somebody = User {
        device: String::new(),
        pod: None,
        container: String::new(),
        network: String::new(),
        interface: String::new(),
    };
    let stripes = [
        (Driven::Kernel, "kernel driver", 96.0),
        (Driven::Program, "user space (VFIO)", 132.0),
        (Driven::Vdpa, "vDPA", 44.0),
        (Driven::Nothing, "no driver", 70.0),
    ];
    let grounds = [
        (Owner::Pod(&somebody), "in a pod", 62.0),
        (Owner::Nobody, "free", 34.0),
        (
            Owner::Lost,
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
        next = entry(canvas, next, driven, Owner::Nobody, text, width);
    }
    canvas.text((next, y + 17.0), 60.0, "fill", faint(13.0));
    next += 34.0;
    for (owner, text, width) in grounds {
        next = entry(canvas, next, Driven::Kernel, owner, text, width);
    }
    canvas.close();
}
