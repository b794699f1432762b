//! Names and files with results that the older system's functions computed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::unit::{
    FleetSection, Glob, MachineIdentity, NameParts, Options, UnitHash, UnitOption, canonical, file,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
    /// Whether it has parts. It need not be valid for a unit.
    parsed: bool,
    info: Option<Info>,
}

#[derive(Deserialize, Default, PartialEq, Debug)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct Info {
    full_name: String,
    #[serde(rename = "Name")]
    stem: String,
    prefix: String,
    template: String,
    instance: String,
}

#[test]
fn names_have_the_parts_that_they_had() {
    let text = include_str!("../../../../../tests/vectors/fleet_unit_names.json");
    let vectors: Vec<Named> = serde_json::from_str(text).expect("vectors are of this shape");
    assert_eq!(vectors.len(), 15);
    for Named { name, parsed, info } in vectors {
        let parts = NameParts::of(&name).map(|parts| Info {
            full_name: parts.full.to_owned(),
            stem: parts.stem.to_owned(),
            prefix: parts.prefix.to_owned(),
            template: parts.template().unwrap_or_default(),
            instance: parts.instance.to_owned(),
        });
        assert_eq!(parts.is_some(), parsed, "{name}");
        assert_eq!(parts, info, "{name}");
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    unit_name: String,
    raw: String,
    #[serde(default)]
    error: bool,
    options: Option<Vec<UnitOption>>,
    serialized: String,
    hash: String,
    global: bool,
    required_target: Option<String>,
    conflicts: Option<Vec<String>>,
    replaces: Option<Vec<String>>,
    peers: Option<Vec<String>>,
    required_metadata: Option<BTreeMap<String, BTreeSet<String>>>,
    requirements_valid: bool,
}

fn files() -> Vec<File> {
    let text = include_str!("../../../../../tests/vectors/fleet_unit_files.json");
    let files: Vec<File> = serde_json::from_str(text).expect("vectors are of this shape");
    assert_eq!(files.len(), 250);
    files
}

#[test]
fn files_are_read_and_written_as_they_were() {
    let mut refused = 0;
    for vector in files() {
        let read = file::parse(vector.raw.as_bytes());
        assert_eq!(read.is_err(), vector.error, "{}: {read:?}", vector.raw);
        let Ok(options) = read else {
            refused += 1;
            continue;
        };
        assert_eq!(
            options,
            vector.options.unwrap_or_default(),
            "{}",
            vector.raw
        );
        let text = canonical(&options);
        assert_eq!(text, vector.serialized, "{}", vector.raw);
        assert_eq!(
            UnitHash::of(&text).to_string(),
            vector.hash,
            "{}",
            vector.raw
        );
    }
    assert_eq!(refused, 46);
}

/// One file ends in a backslash. The older server stored its text and read another value from it, with another
/// hash. Ours has that value and hash from the start.
#[test]
fn units_have_the_hash_of_their_files() {
    let mut others = Vec::new();
    for vector in files().into_iter().filter(|vector| !vector.error) {
        let options = Options::parse(vector.raw.as_bytes()).expect("good options");
        if options.hash().to_string() != vector.hash {
            assert_eq!(options.text(), vector.serialized.clone() + "\n");
            others.push(vector.raw);
        }
    }
    assert_eq!(others.len(), 1, "{others:?}");
    assert!(others[0].ends_with(r"Trail=\"), "{others:?}");
}

#[test]
fn files_ask_of_machines_what_they_asked() {
    for vector in files().into_iter().filter(|vector| !vector.error) {
        let raw = &vector.raw;
        let options = vector.options.unwrap_or_default();
        let section = FleetSection::of(&options);
        let asked = section.requirements(NameParts::of(&vector.unit_name));
        assert_eq!(asked.is_global, vector.global, "{raw}");
        // The vectors omit empty values: `%i` of a name without an instance.
        let machine = asked.machine_id.as_ref().map(MachineIdentity::as_str);
        let machine = machine.filter(|id| !id.is_empty());
        assert_eq!(machine, vector.required_target.as_deref(), "{raw}");
        let texts = |globs: &[Glob]| -> Vec<_> { globs.iter().map(ToString::to_string).collect() };
        assert_eq!(
            texts(&asked.conflicts),
            vector.conflicts.unwrap_or_default(),
            "{raw}"
        );
        assert_eq!(
            texts(&asked.replaces),
            vector.replaces.unwrap_or_default(),
            "{raw}"
        );
        let peers: BTreeSet<_> = vector.peers.unwrap_or_default().into_iter().collect();
        assert_eq!(asked.machine_of, peers, "{raw}");
        assert_eq!(
            asked.metadata,
            vector.required_metadata.unwrap_or_default(),
            "{raw}"
        );
        assert_eq!(
            section.unknown().is_empty(),
            vector.requirements_valid,
            "{raw}"
        );
    }
}
