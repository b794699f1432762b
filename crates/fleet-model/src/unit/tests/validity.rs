//! Options that exclude each other.

use crate::unit::Options;
use crate::unit::validity::{REQUIREMENTS_BYTES_MAX, check};

fn checked(lines: &str) -> Result<(), String> {
    let file = format!("[X-Fleet]\n{lines}");
    let options = Options::parse(file.as_bytes()).expect(lines);
    check(&options).map_err(|fault| fault.to_string())
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    for (lines, message) in [
        (
            "MachineOf=a.service\nConflicts=b* a*",
            r#"unresolvable requirements: peer "a.service" matches conflict "a*""#,
        ),
        (
            "MachineOf=a.service\nReplaces=a*",
            r#"unresolvable requirements: peer "a.service" matches replace "a*""#,
        ),
        (
            "MachineID=m\nMachineOf=a",
            "MachineID cannot be used with Peers",
        ),
        (
            "MachineID=m\nConflicts=a",
            "MachineID cannot be used with Conflicts",
        ),
        (
            "MachineID=m\nGlobal=true",
            "MachineID cannot be used with Global",
        ),
        (
            "MachineID=m\nReplaces=a",
            "MachineID cannot be used with Replaces",
        ),
        (
            "Global=true\nMachineOf=a",
            "Global cannot be used with Peers",
        ),
        (
            "Global=true\nReplaces=a",
            "Global cannot be used with Replaces",
        ),
        (
            "Conflicts=a\nReplaces=b",
            "Conflicts cannot be used with Replaces",
        ),
        (
            "X-ConditionMachineID=m\nX-Conflicts=a",
            "MachineID cannot be used with Conflicts",
        ),
        (
            "Global=true\nSingleton=true",
            "Global cannot be used with Singleton",
        ),
        (
            "MachineMetadata=a=b c=d",
            r#"invalid MachineMetadata "a=b c=d": expect key=value, several of them each in quotes"#,
        ),
    ] {
        assert_eq!(checked(lines), Err(message.to_owned()), "{lines}");
    }
    for malformed in ["zone", "k=", "=v", "k=v=w", "", "\"a=b\"  \"c=d\""] {
        for spelling in ["MachineMetadata", "X-ConditionMachineMetadata"] {
            let lines = format!("{spelling}={malformed}");
            let refused = checked(&lines).expect_err(&lines);
            assert!(refused.starts_with("invalid MachineMetadata"), "{refused}");
        }
    }
}

#[test]
fn others_may_meet() {
    for lines in [
        "",
        "Bogus=1",
        "MachineID=m\nMachineMetadata=a=b",
        "MachineOf=a.service\nMachineMetadata=a=b\nConflicts=b*",
        "MachineOf=a.service\nReplaces=b*",
        "Replaces=b\nMachineMetadata=a=b",
        "Global=true\nConflicts=a*",
        "Global=true\nMachineMetadata=a=b",
        "Global=false\nMachineID=m",
        "Global=false\nSingleton=true",
        "Singleton=true\nMachineID=m",
        "MachineID=m\nConflicts=",
        // The name is ignored: this is `a.service` for some names only.
        "MachineOf=%p.service\nConflicts=a*",
        "MachineOf=a.service\nConflicts=[a",
    ] {
        assert_eq!(checked(lines), Ok(()), "{lines}");
    }
}

#[test]
fn of_several_contradictions_the_first_rule_is_reported() {
    for (lines, beginning) in [
        ("MachineID=m\nMachineOf=a\nConflicts=a", "unresolvable"),
        (
            "MachineOf=a\nConflicts=a\nReplaces=a",
            r#"unresolvable requirements: peer "a" matches conflict"#,
        ),
        (
            "MachineID=m\nMachineOf=a\nConflicts=b\nReplaces=c\nGlobal=1",
            "MachineID cannot be used with Peers",
        ),
        (
            "MachineID=m\nConflicts=b\nReplaces=c\nGlobal=1",
            "MachineID cannot be used with Conflicts",
        ),
        (
            "MachineID=m\nReplaces=c\nGlobal=1",
            "MachineID cannot be used with Global",
        ),
        (
            "MachineOf=a\nConflicts=b\nReplaces=c\nGlobal=1",
            "Global cannot be used with Peers",
        ),
        (
            "Conflicts=b\nReplaces=c\nGlobal=1",
            "Global cannot be used with Replaces",
        ),
        (
            "Conflicts=b\nReplaces=c\nMachineMetadata=x",
            "Conflicts cannot",
        ),
        ("Global=1\nSingleton=1\nMachineMetadata=x", "Global cannot"),
    ] {
        let refused = checked(lines).expect_err(lines);
        assert!(refused.starts_with(beginning), "{lines}: {refused}");
    }
}

#[test]
fn requirements_have_a_limit() {
    let lines = |bytes: usize| "Conflicts=%n%n%n%n\n".repeat(bytes / 8);
    assert_eq!(checked(&lines(REQUIREMENTS_BYTES_MAX / 2)), Ok(()));
    let one = |bytes: usize| {
        let lines = vec!["a".repeat(1023); bytes / 1024].join(" \\\n");
        format!("Bogus={lines}{}", "b".repeat(bytes % 1024))
    };
    assert_eq!(checked(&one(REQUIREMENTS_BYTES_MAX / 2)), Ok(()));
    let empty_ones = format!("Replaces=\"\"{}\"\"\n", " ".repeat(2000)).repeat(5);
    for large in [one(2 * REQUIREMENTS_BYTES_MAX), empty_ones] {
        let refused = checked(&large).expect_err("too large");
        assert_eq!(refused, "more than 8192 bytes of values in section X-Fleet");
    }
    let exactly = |bytes: usize| checked(&format!("Bogus={}\n", "b".repeat(bytes / 8)).repeat(8));
    assert_eq!(exactly(REQUIREMENTS_BYTES_MAX), Ok(()));
    assert!(exactly(REQUIREMENTS_BYTES_MAX + 8).is_err());
}
