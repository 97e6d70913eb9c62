//! Nested configurations. A plugin of a chain may execute further plugins, and its configuration
//! then contains the configurations of these plugins.

use serde_json::value::RawValue;

use crate::cni::RawObject;
use crate::cni::json::same_key;

/// The keys with which some plugins configure the plugins that they execute.
const DELEGATES: [&str; 3] = ["delegate", "delegates", "plugins"];
/// How deep lists may nest. For example, `ranges` of `host-local` is a list of lists. The policy
/// check parses an inner list once for each list around it, so deep nesting would make the check
/// slow. A policy refuses deeper lists.
pub(in crate::plan) const LISTS: usize = 4;
/// How deep plugins may nest. The policy check parses an inner plugin's configuration once for each
/// plugin around it, so deep nesting would make the check slow. A policy refuses deeper plugins.
pub(in crate::plan) const LEVELS: usize = 8;
/// The number of bytes that [`NestedPlugin::below`] counts for each object, in addition to the
/// length of the object's text.
const OBJECT: usize = 64;
/// How many bytes [`room`] allows for each level, in addition to the length of the configuration.
const SHORT: usize = 4 << 10;

/// One plugin's configuration.
pub(super) struct NestedPlugin {
    /// The configuration.
    pub(super) config: RawObject,
    /// Whether the configuration is under the key `ipam` of an outer configuration. The search for
    /// denied keys skips such a configuration, because the search in the outer configuration covers
    /// paths such as `ipam.dataDir`.
    pub(super) is_part: bool,
}

/// Returns how many bytes a check may parse to read all plugins inside one configuration. The text
/// of this configuration has `length` bytes.
pub(super) fn room(length: usize) -> usize {
    LEVELS * (length + SHORT)
}

impl NestedPlugin {
    /// A configuration that is not under the key `ipam`.
    pub(super) fn new(config: RawObject) -> NestedPlugin {
        NestedPlugin {
            config,
            is_part: false,
        }
    }

    /// Returns the configurations of the plugins that this plugin executes. For example, the key
    /// `ipam` contains the configuration of the IPAM plugin. The key `delegate` of flannel contains
    /// the configuration of another plugin.
    ///
    /// Returns `None` if lists nest deeper than [`LISTS`], or if `below` would parse more than
    /// `room` bytes. Subtracts the parsed bytes from `room`.
    ///
    /// A key in [`DELEGATES`] may contain an object that has no `type`. Such an object may be one
    /// plugin's configuration, or may map names to configurations. `below` reads the object in both
    /// ways, so each level can double the number of configurations. `room` limits this work.
    pub(super) fn below(&self, room: &mut usize) -> Option<Vec<NestedPlugin>> {
        let mut plugins = Vec::new();
        for (key, raw) in self.config.iter() {
            let is_ipam = same_key(key, "ipam");
            if is_ipam || is_of_delegates(key) {
                let mut configs = Vec::new();
                objects(raw, LISTS, room, &mut configs)?;
                for config in configs {
                    if !is_ipam && config.get("type").is_none() {
                        // An object without `type` may contain several configurations by name.
                        let mut by_name = Vec::new();
                        let others = config.iter();
                        for (_, raw) in others.filter(|(key, _)| !is_of_delegates(key)) {
                            objects(raw, LISTS, room, &mut by_name)?;
                        }
                        plugins.extend(by_name.into_iter().map(NestedPlugin::new));
                    }
                    plugins.push(NestedPlugin {
                        config,
                        is_part: is_ipam,
                    });
                }
            }
        }
        Some(plugins)
    }
}

fn is_of_delegates(key: &str) -> bool {
    DELEGATES.iter().any(|delegates| same_key(key, delegates))
}

/// Adds `raw` to `all` if it is an object. If `raw` is a list, adds the objects in this list and in
/// its inner lists. Skips all other values, because a plugin may skip them too. For example, a
/// plugin in Go skips `null` in a list. Returns `None` if lists nest too deeply or `room` is too
/// small.
fn objects(raw: &RawValue, lists: usize, room: &mut usize, all: &mut Vec<RawObject>) -> Option<()> {
    if raw.get().starts_with('{') {
        let one = serde_json::from_str(raw.get()).ok()?;
        *room = room.checked_sub(raw.get().len() + OBJECT)?;
        all.push(one);
    } else if raw.get().starts_with('[') {
        let list = serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok()?;
        let lists = lists.checked_sub(1)?;
        for element in list {
            objects(element, lists, room, all)?;
        }
    }
    Some(())
}
