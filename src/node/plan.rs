//! What the runtime's directory should hold, from what it and its surroundings hold now.

use std::path::{Path, PathBuf};

use super::conf::OurConf;
use super::directory::{Candidate, Directory, Kind, NAMES};
use super::manifest::Manifest;
use super::{NAME, NodeError, Place};
use crate::cluster::conf_dir;
use crate::cni::{NetworkConfig, RawObject};

/// The directories as they are.
pub(super) struct Seen {
    place: Place,
    /// What the runtime reads.
    pub(super) runtime: Directory,
    /// What the cluster network comes to, where that is another directory.
    pub(super) apart: Option<Directory>,
    /// What Multus is configured to do, where its configuration is to give way to ours now.
    pub(super) takes_over: Option<RawObject>,
    /// A copy of ours under a name that the runtime does not read.
    pub(super) lost: Option<(String, OurConf)>,
    /// What was installed last.
    kept: Option<OurConf>,
}

impl Seen {
    pub(super) fn look(place: &Place, manifest: Option<&Manifest>) -> Result<Seen, NodeError> {
        let runtime = Directory::read(place, &place.conf_dir)?;
        let apart = match place.is_apart() {
            true => Some(Directory::read(place, &place.cluster_conf_dir)?),
            false => None,
        };
        let name = manifest.and_then(|manifest| manifest.conf.file_name()?.to_str());
        let lost = name.and_then(|name| {
            runtime.aside.iter().find_map(|aside| {
                let file = place.here(&runtime.file(aside));
                match super::directory::kind(&file) {
                    Kind::Ours(conf) if aside.starts_with(name) => Some((aside.clone(), *conf)),
                    _ => None,
                }
            })
        });
        Ok(Seen {
            place: place.clone(),
            runtime,
            apart,
            takes_over: None,
            lost,
            kept: match manifest {
                Some(_) => Manifest::conf(place)?.as_ref().and_then(OurConf::read),
                None => None,
            },
        })
    }

    /// The same where what was installed last is known from elsewhere.
    pub(super) fn remembering(mut self, conf: Option<&RawObject>) -> Seen {
        self.kept = conf.and_then(OurConf::read);
        self
    }

    /// Where the cluster network's configuration is.
    pub(super) fn cluster(&self) -> &Directory {
        self.apart.as_ref().unwrap_or(&self.runtime)
    }
}

/// What is to be.
#[derive(Debug)]
pub(super) struct Plan {
    /// Our configuration.
    pub(super) conf: OurConf,
    /// Its file's name.
    pub(super) name: String,
    /// Whether it follows the first network of the directory.
    pub(super) follows: bool,
    /// What Multus was configured to do, where its place is or was taken.
    pub(super) taken_over: Option<RawObject>,
    /// Files of the runtime's directory that have no place beside it.
    pub(super) remove: Vec<String>,
    /// The cluster network, where its file was looked at.
    pub(super) network: Option<NetworkConfig>,
    /// What is not so yet; nothing when the configuration is right as it is.
    pub(super) why: Option<String>,
}

/// What can be said of the directories.
#[derive(Debug)]
pub(super) enum Outlook {
    /// This is to be.
    Ready(Box<Plan>),
    /// There is no network yet to stand in front of.
    Waiting(String),
}

/// Plans what `template` asks for, or what is installed already.
pub(super) fn plan(
    template: Option<&RawObject>,
    manifest: Option<&Manifest>,
    seen: &Seen,
) -> Result<Outlook, NodeError> {
    let runtime = &seen.runtime;
    let there = runtime.ours();
    if there.is_none() && manifest.is_none() && seen.takes_over.is_none() {
        no_multus(runtime)?;
    }
    let existing = there
        .map(|(_, conf)| conf)
        .or(seen.lost.as_ref().map(|(_, conf)| conf))
        .or(seen.kept.as_ref());
    let before = manifest.and_then(|manifest| manifest.taken_over.as_ref());
    let taken_over = seen.takes_over.as_ref().or(before);
    let wanted = wanted(template, taken_over, seen);
    let follows = wanted.is_none() && manifest.is_some_and(|manifest| manifest.follows);
    let base = match (wanted, existing) {
        // Who follows Multus in its own list is known from there.
        (Some(wanted), Some(existing)) if seen.takes_over.is_none() => wanted.followed_as(existing),
        (Some(wanted), _) => wanted,
        (None, Some(existing)) => existing.clone(),
        (None, None) => OurConf::from_template(taken_over.unwrap_or(&RawObject::new())),
    };
    let pinned = base.names_a_network() && !follows;
    let (conf, network) = if pinned {
        not_ourselves(&base, &seen.place)?;
        match named(&base, &seen.place) {
            Ok(network) => (base, network),
            Err(reason) => return Ok(Outlook::Waiting(reason)),
        }
    } else {
        let cluster = seen.cluster();
        match (cluster.cluster_network(), existing) {
            (Candidate::Found(name, network), _) => {
                (base.in_front_of(&cluster.file(name)), Some(network.clone()))
            }
            (other, Some(existing)) => match still_there(existing, cluster) {
                Some(file) => (base.in_front_of(&file), None),
                None => return Ok(Outlook::Waiting(describe(&other))),
            },
            (other, None) => return Ok(Outlook::Waiting(describe(&other))),
        }
    };
    let name = match there {
        Some((name, there)) if runtime.first().is_some_and(|first| first.name == name) => {
            if *there == conf || name.ends_with(".conflist") {
                name.to_owned()
            } else {
                first_name(runtime, seen.takes_over.is_some())?
            }
        }
        _ => first_name(runtime, seen.takes_over.is_some())?,
    };
    let superseded = runtime.files.iter().filter_map(|file| {
        let gives_way = match file.kind {
            Kind::Ours(_) => file.name != name,
            Kind::Multus => seen.takes_over.is_some(),
            _ => false,
        };
        gives_way.then(|| file.name.clone())
    });
    let remove: Vec<String> = superseded
        .chain(seen.lost.iter().map(|(name, _)| name.clone()))
        .collect();
    let why = difference(manifest, seen, &conf, &name);
    Ok(Outlook::Ready(Box::new(Plan {
        conf,
        name,
        follows: !pinned,
        taken_over: taken_over.cloned(),
        remove,
        network,
        why,
    })))
}

/// What a template asks for, laid over what was taken over from Multus; none where what is
/// installed stays as it is.
fn wanted(
    template: Option<&RawObject>,
    taken_over: Option<&RawObject>,
    seen: &Seen,
) -> Option<OurConf> {
    match (template, taken_over) {
        (Some(template), Some(multus)) => Some(OurConf::over(template, multus)),
        (Some(template), None) => Some(OurConf::from_template(template)),
        (None, _) => seen.takes_over.as_ref().map(OurConf::from_template),
    }
}

/// The network in the file that is named, where it is a file that this process sees; else why it
/// is none, and every pod would fail.
fn named(conf: &OurConf, place: &Place) -> Result<Option<NetworkConfig>, String> {
    let Some(named) = conf.cluster_network().map(PathBuf::from) else {
        return Ok(None);
    };
    let dirs = [&place.conf_dir, &place.cluster_conf_dir];
    let is_seen = place.is_host() || dirs.iter().any(|dir| named.starts_with(dir));
    let here = place.here(&named);
    if !named.is_absolute() || !is_seen || here.is_dir() {
        return Ok(None);
    }
    if here.exists() && !here.is_file() {
        return Err(format!(
            "clusterNetwork names {}, which is no file",
            named.display()
        ));
    }
    let found = conf_dir::read(&here).and_then(conf_dir::with_sibling_plugins);
    let text = found
        .map_err(|cause| format!("clusterNetwork names it: {cause}"))?
        .text;
    let network = NetworkConfig::parse(text.as_bytes());
    network.map(Some).map_err(|cause| {
        format!(
            "clusterNetwork names {}, which is none: {cause}",
            named.display()
        )
    })
}

/// What is named is not Jackfield, which would call itself.
fn not_ourselves(conf: &OurConf, place: &Place) -> Result<(), NodeError> {
    let stdin = conf.on_stdin();
    let is_ours = |object: &RawObject| {
        let plugins: Vec<RawObject> = object.read("plugins").ok().flatten().unwrap_or_default();
        let mut plugins = plugins.iter().chain([object]);
        plugins.any(|plugin| {
            let name: Option<String> = plugin.read("type").ok().flatten();
            name.is_some_and(|name| name == NAME)
        })
    };
    let delegates: Vec<RawObject> = stdin.read("delegates").ok().flatten().unwrap_or_default();
    let named = conf.cluster_network();
    let is_ourselves = match named.as_deref().map(Path::new) {
        None => delegates.iter().any(is_ours),
        Some(file) if file.is_absolute() => {
            let here = place.here(file);
            let found = match here.is_dir() {
                true => conf_dir::first(&here),
                false if here.exists() && !here.is_file() => return Ok(()),
                false => conf_dir::read(&here),
            };
            let object = found
                .ok()
                .and_then(|found| RawObject::parse(found.text.as_bytes()).ok());
            let is_to_be = NAMES.iter().any(|name| *file == place.conf_dir.join(name));
            is_to_be || *file == place.conf_dir || object.is_some_and(|object| is_ours(&object))
        }
        Some(name) => {
            let dir: Option<PathBuf> = stdin.read("confDir").ok().flatten();
            let own: Option<String> = stdin.read("name").ok().flatten();
            dir.as_ref() == Some(&place.conf_dir) && own.as_deref().map(Path::new) == Some(name)
        }
    };
    if !is_ourselves {
        return Ok(());
    }
    let which = named.map_or_else(
        || "delegates".to_owned(),
        |it| format!("clusterNetwork {it}"),
    );
    Err(NodeError::Conf {
        file: "the configuration to install".to_owned(),
        cause: format!(
            "{which} is {NAME} itself, which would call itself; name the cluster network"
        ),
    })
}

/// A name before all that stays and is not ours.
fn first_name(runtime: &Directory, takes_over: bool) -> Result<String, NodeError> {
    let first = runtime.files.iter().find(|file| {
        let goes = match file.kind {
            Kind::Ours(_) => true,
            Kind::Multus => takes_over,
            _ => false,
        };
        !goes && !NAMES.contains(&file.name.as_str())
    });
    let Some(first) = first else {
        return Ok(NAMES[0].to_owned());
    };
    let free = NAMES.iter().find(|name| **name < first.name.as_str());
    free.map(|name| (*name).to_owned())
        .ok_or_else(|| NodeError::NotFirst {
            file: runtime.file(&first.name),
        })
}

/// Multus in front is for `--from-multus`: we would stand one before the other.
fn no_multus(runtime: &Directory) -> Result<(), NodeError> {
    match runtime.multus() {
        Some(multus) => Err(NodeError::Multus {
            file: runtime.file(&multus.name),
        }),
        None => Ok(()),
    }
}

/// The cluster network's file that is named now, when it is still a network.
fn still_there(existing: &OurConf, cluster: &Directory) -> Option<PathBuf> {
    let named = PathBuf::from(existing.cluster_network()?);
    let name = named.strip_prefix(&cluster.path).ok()?.to_str()?;
    let mut files = cluster.files.iter();
    let is_network = files.any(|file| file.name == name && matches!(file.kind, Kind::Network(_)));
    is_network.then_some(named)
}

fn describe(candidate: &Candidate<'_>) -> String {
    match candidate {
        Candidate::Broken(name, cause) => format!("{name} comes first and is none: {cause}"),
        Candidate::None | Candidate::Found(..) => "there is none".to_owned(),
    }
}

/// What is not as it should be, in one line.
fn difference(
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
pub(super) fn remedy(why: &str) -> String {
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

#[cfg(test)]
mod tests;
