//! Requirements from `[X-Fleet]`.

use std::collections::BTreeMap;

use crate::unit::{FleetSection, Glob, MachineIdentity, NameParts, Requirements, file};

fn asked_by(name: &str, lines: &str) -> Requirements {
    let file = format!("[X-Fleet]\n{lines}");
    let options = file::parse(file.as_bytes()).expect(lines);
    FleetSection::of(&options).requirements(NameParts::of(name))
}

fn asked(lines: &str) -> Requirements {
    asked_by("a.service", lines)
}

fn texts(globs: &[Glob]) -> Vec<&str> {
    globs.iter().map(Glob::as_str).collect()
}

fn peers(requirements: &Requirements) -> Vec<&str> {
    requirements.machine_of.iter().map(String::as_str).collect()
}

fn metadata(lines: &str) -> BTreeMap<String, Vec<String>> {
    let pairs = asked(lines).metadata.into_iter();
    pairs
        .map(|(key, values)| (key, values.into_iter().collect()))
        .collect()
}

fn pairs(pairs: &[(&str, &[&str])]) -> BTreeMap<String, Vec<String>> {
    let owned = |values: &[&str]| values.iter().map(ToString::to_string).collect();
    let pairs = pairs.iter();
    pairs
        .map(|(key, values)| ((*key).to_owned(), owned(values)))
        .collect()
}

#[test]
fn quoted_values_are_several() {
    for (line, values) in [
        (r#"Replaces="a" "b""#, ["a", "b"].as_slice()),
        (r#"Replaces="a"  "b""#, &["a", "", "b"]),
        (r#"Replaces="a b" "c""#, &["a b", "c"]),
        (r#"Replaces="a""b""#, &["ab"]),
        ("Replaces=\"a\"\t\"b\"", &["a\tb"]),
        (r#"Replaces="a","b""#, &["a,b"]),
        (r#"Replaces="a\" "b""#, &["a\\", "b"]),
        (r#"Replaces=""#, &[""]),
        (r#"Replaces="""#, &[""]),
        (r#"Replaces="a" b"#, &[r#""a" b"#]),
        ("Replaces=a b", &["a b"]),
        ("Replaces=", &[""]),
    ] {
        assert_eq!(texts(&asked(line).replaces), values, "{line}");
    }
}

#[test]
fn conflicts_are_split_at_any_blank() {
    for lines in [
        "Conflicts=*ink* *pen*",
        "Conflicts=*ink*\nConflicts=*pen*",
        "Conflicts=\"*ink*\" \"*pen*\"",
        "Conflicts=\"*ink*\"  \"*pen*\"",
        "Conflicts=\"*ink* *pen*\"",
        "Conflicts=*ink* \t\u{a0} *pen*",
        "Conflicts=\nConflicts=*ink* *pen*",
        "Conflicts=*pen*\nX-Conflicts=*ink*",
    ] {
        assert_eq!(
            texts(&asked(lines).conflicts),
            ["*ink*", "*pen*"],
            "{lines}"
        );
    }
    assert_eq!(texts(&asked("Replaces=*ink*").replaces), ["*ink*"]);
    let both = asked("MachineOf=\"ink.service\" \"pen.service\"");
    assert_eq!(peers(&both), ["ink.service", "pen.service"]);
    assert_eq!(peers(&asked("MachineOf=ink pen")), ["ink pen"]);
}

#[test]
fn the_newest_spelling_names_the_machine() {
    for (lines, machine) in [
        ("MachineID=\"m1\" \"m2\"", Some("m1")),
        ("MachineID=m1\nMachineID=m2", Some("m1")),
        ("X-ConditionMachineID=m2\nMachineID=m1", Some("m1")),
        ("MachineID=m1\nX-ConditionMachineID=m2", Some("m1")),
        ("X-ConditionMachineBootID=b", Some("b")),
        (
            "X-ConditionMachineBootID=b\nX-ConditionMachineID=m",
            Some("m"),
        ),
        ("X-ConditionMachineBootID=b\nMachineID=", Some("")),
        ("MachineBootID=b", None),
        ("machineid=b", None),
    ] {
        let asked = asked(lines);
        let machine_id = asked.machine_id.as_ref().map(MachineIdentity::as_str);
        assert_eq!(machine_id, machine, "{lines}");
    }
}

#[test]
fn other_spellings_add_up() {
    let both = asked("MachineOf=b.service\nX-ConditionMachineOf=a.service");
    assert_eq!(peers(&both), ["a.service", "b.service"]);
    let lines = "MachineMetadata=zone=east\nX-ConditionMachineMetadata=zone=west";
    assert_eq!(metadata(lines), pairs(&[("zone", &["east", "west"])]));
}

#[test]
fn metadata_that_is_no_pair_asks_for_nothing() {
    let lines = "MachineMetadata=zone\nMachineMetadata=a=b=c\nMachineMetadata=k=\n\
                 MachineMetadata==v\nMachineMetadata=\"x=1\" \"\"\nMachineMetadata=a=b c=d";
    assert_eq!(metadata(lines), pairs(&[("x", &["1"])]));
    let options = file::parse(format!("[X-Fleet]\n{lines}").as_bytes()).expect(lines);
    assert_eq!(
        FleetSection::of(&options).malformed_metadata(),
        Some("zone")
    );
    let lines = "MachineMetadata=\"region=us\" \"disk=ssd\"\nMachineMetadata=region=eu";
    let expected = pairs(&[("region", &["eu", "us"]), ("disk", &["ssd"])]);
    assert_eq!(metadata(lines), expected);
}

#[test]
fn specifiers_are_replaced_one_after_the_other() {
    for (name, text) in [
        ("ssh@2.service", "ssh@2.service ssh@2 ssh 2"),
        ("test.service", "test.service test test "),
        ("a@b@c.socket", "a@b@c.socket a@b@c a b@c"),
        // Specifiers in an inserted name are replaced by the later ones.
        ("p@%i.service", "p@%i.service p@%i p %i"),
        ("x%p.service", "xx%p.service xx%p x%p "),
        ("no dot", "%n %N %p %i"),
    ] {
        let asked = asked_by(name, "MachineOf=%n %N %p %i");
        assert_eq!(peers(&asked), [text], "{name}");
    }
    let asked = asked_by("a@1.service", "MachineOf=%%n %m %%");
    assert_eq!(peers(&asked), ["%a@1.service %m %%"]);
}

#[test]
fn global_and_singleton_are_true_by_their_last_value() {
    let truths = ["true", "True", "Yes", "On", "1", "t", "T", "\"no\" \"yes\""];
    let others = ["12", "what", "false", "", "y", "\"yes\" \"no\""];
    for (values, is_true) in [(truths.as_slice(), true), (&others, false)] {
        for value in values {
            assert_eq!(
                asked(&format!("Global={value}")).is_global,
                is_true,
                "{value}"
            );
            let asked = asked(&format!("Singleton={value}"));
            assert_eq!(asked.is_singleton, is_true, "{value}");
            assert!(!asked.is_global, "{value}");
        }
    }
    assert!(!asked("Global=true\nGlobal=false").is_global);
    assert!(asked("Global=false\nGlobal=true").is_global);
    assert!(!asked("X-Global=true").is_global);
    for file in [
        "[Service]\nGlobal=true",
        "Global=true",
        "[x-fleet]\nGlobal=true",
    ] {
        let options = file::parse(file.as_bytes()).expect(file);
        let asked = FleetSection::of(&options).requirements(None);
        assert_eq!(asked, Requirements::default(), "{file}");
    }
}

#[test]
fn unknown_settings_are_reported_once() {
    let known = [
        "Conflicts",
        "Global",
        "MachineID",
        "MachineMetadata",
        "MachineOf",
        "Replaces",
        "Singleton",
        "X-ConditionMachineBootID",
        "X-ConditionMachineID",
        "X-ConditionMachineMetadata",
        "X-ConditionMachineOf",
        "X-Conflicts",
    ];
    let unknown = [
        "Bogus",
        "X-ConditionConflicts",
        "Machineof",
        "global",
        "MachineId",
        "X-MachineMetadata",
        "X-Global",
        "X-Peers",
    ];
    let lines: Vec<_> = known.iter().chain(&unknown).chain(&unknown).collect();
    let lines: Vec<_> = lines.into_iter().map(|name| format!("{name}=x")).collect();
    let file = format!("[Service]\nType=x\n[X-Fleet]\n{}", lines.join("\n"));
    let options = file::parse(file.as_bytes()).expect("a good file");
    assert_eq!(FleetSection::of(&options).unknown(), unknown);
}
