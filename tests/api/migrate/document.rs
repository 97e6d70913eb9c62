//! The commands of a document.

use std::fs;
use std::path::Path;

/// A fenced block of commands.
pub(super) struct Block {
    /// Where it begins.
    pub(super) line: usize,
    /// Its commands.
    pub(super) text: String,
}

/// Every block of a document that is marked as `sh`, in their order.
pub(super) fn blocks(document: &str) -> Vec<Block> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(document);
    let text = fs::read_to_string(&path).unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (number, line) in text.lines().enumerate() {
        match (line.trim(), &mut open) {
            ("```sh", None) => {
                open = Some(Block {
                    line: number + 1,
                    text: String::new(),
                });
            }
            ("```", Some(_)) => blocks.extend(open.take()),
            (_, Some(block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (_, None) => {}
        }
    }
    assert!(open.is_none() && !blocks.is_empty(), "{}", path.display());
    blocks
}
