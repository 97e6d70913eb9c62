//! The node's network hardware as a picture: a band per NUMA node, a card per physical function, a
//! box per virtual one, with the pod that has it.
//!
//! ```text
//! inventory, usage ──▶ model ──▶ layout ──▶ tile ──▶ canvas
//! ```

use device_info::Inventory;

use super::usage::Usage;

mod canvas;
mod layout;
mod legend;
mod model;
mod palette;
mod tile;

/// The picture of the node of this name, as SVG.
pub(super) fn picture(node: &str, inventory: &Inventory, usage: &Usage) -> String {
    layout::draw(&model::Node::of(node, inventory, usage))
}

#[cfg(test)]
mod tests;
