//! Why what is there is not what is to be, for people.

use super::Seen;
use crate::setup::conf::OurConf;
use crate::setup::directory::Kind;
use crate::setup::manifest::Manifest;

/// What is not as it should be, in one line.
pub(super) fn find(
    manifest: Option<&Manifest>,
    seen: &Seen,
    conf: &OurConf,
    name: &str,
) -> Option<String> {
    let runtime = &seen.runtime;
    let at = |name: &str| runtime.file(name).display().to_string();
    let Some((there_as, there)) = runtime.ours() else {
        let was = manifest.map_or_else(|| runtime.file(name), |manifest| manifest.conf.clone());
        let was_name = was.file_name().unwrap_or_default().to_string_lossy();
        let now = runtime.files.iter().find(|file| file.name == was_name);
        return Some(match (&seen.lost, now.map(|file| &file.kind)) {
            (Some((lost, _)), _) => format!("{} was renamed to {lost}", was.display()),
            (None, Some(Kind::Broken(cause))) => {
                format!(
                    "{} was changed and is no configuration: {cause}",
                    was.display()
                )
            }
            (None, Some(_)) => format!("{} was changed to somebody else's", was.display()),
            (None, None) => format!("{} is not there", was.display()),
        });
    };
    if there_as != name {
        let first = runtime.first().map_or(name, |first| first.name.as_str());
        return Some(format!("{} comes before {there_as}", at(first)));
    }
    if there == conf {
        return None;
    }
    let (now, then) = (conf.cluster_network(), there.cluster_network());
    if now != then {
        return Some(format!(
            "the cluster network is {} and no longer {}",
            now.unwrap_or_else(|| "another one".to_owned()),
            then.unwrap_or_else(|| "what it was".to_owned()),
        ));
    }
    Some(format!("{} differs from what is to be installed", at(name)))
}

/// What helps when the same is found again and again.
pub(in crate::setup) fn remedy(why: &str) -> String {
    let words = [
        (
            ".cilium_bak",
            "set cni.exclusive to false in Cilium's values, then restart this",
        ),
        (
            "comes before",
            "rename that file, or let the runtime read a directory of its own",
        ),
        (
            "the cluster network is",
            "let one network alone configure this directory",
        ),
    ];
    let known = words.iter().find(|(word, _)| why.contains(word));
    known
        .map_or(
            "find out who changes it, then restart this",
            |(_, remedy)| remedy,
        )
        .to_owned()
}
