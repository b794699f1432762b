//! Accepted and refused options.

use crate::unit::file::{FILE_BYTES_MAX, LINE_BYTES_MAX, OPTIONS_MAX};
use crate::unit::{Options, SECTION_BYTES_MAX, UnitOption};

fn option(name: &str, value: &str) -> UnitOption {
    UnitOption::new("A", name, value)
}

fn refused(given: &[UnitOption]) -> String {
    match Options::new(given) {
        Ok(options) => panic!("{given:?} was taken as {:?}", options.text()),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn blanks_around_a_value_make_no_other_unit() {
    let plain = Options::new(&[option("E", "a b")]).expect("good ones");
    for (name, value) in [("E", "  a b\t "), (" E ", "a b"), ("E", "\u{a0}a b")] {
        let spaced = Options::new(&[option(name, value)]).expect(value);
        assert_eq!(spaced, plain, "{value:?}");
    }
    assert_eq!(plain.text(), "[A]\nE=a b\n");
    // Text from right to left is valid, and so is a tab.
    for value in ["a\tb", "שלום \u{200f}a", "é ☃"] {
        let options = Options::new(&[option("\tE", value)]).expect(value);
        assert_eq!(options.list(), [option("E", value)]);
    }
    assert!(
        Options::parse(b"[A]\nE=a\x1bb\n").is_err(),
        "in a file, too"
    );
    assert_eq!(
        Options::parse(b"[A]\r\n E= a b # \\\n"),
        Options::parse(b"[A]\nE=a b # \\")
    );
}

#[test]
fn sections_come_together_and_what_is_empty_is_nothing() {
    let options = Options::parse(b"[A]\nx=1\n[B]\ny=2\n[C]\n[A]\nz=3").expect("good ones");
    let names: Vec<_> = options.list().iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names, ["x", "z", "y"]);
    assert!(!options.is_empty());
    assert!(Options::new(&[]).expect("none are allowed").is_empty());
}

/// systemd gets the text: a list that differs from it would deceive.
#[test]
fn a_backslash_at_the_end_takes_the_next_line() {
    for (values, text) in [
        ([r"a\", "b"], "[A]\nE=a\\\nF=b\n"),
        (["a", r"b\"], "[A]\nE=a\nF=b\\\n\n"),
        (["a\\\n", "b"], "[A]\nE=a\\\n\nF=b\n"),
        (["a\\\r\nc", "b"], "[A]\nE=a\\\nc\nF=b\n"),
        ([r"a\ ", "b"], "[A]\nE=a\\\nF=b\n"),
        (["a\\\n  ", "b"], "[A]\nE=a\\\n\nF=b\n"),
    ] {
        let given = [option("E", values[0]), option("F", values[1])];
        let options = Options::new(&given).expect(text);
        assert_eq!(options.text(), text, "{values:?}");
        assert_eq!(Options::parse(text.as_bytes()), Ok(options), "{values:?}");
    }
    let joined = Options::new(&[option("E", r"a\"), option("F", "b")]).expect("good ones");
    assert_eq!(joined.list(), [option("E", "a\\\nF=b")]);
}

#[test]
fn no_option_brings_in_another() {
    let in_section = |section: &str| UnitOption::new(section, "E", "a");
    for (given, what) in [
        (
            in_section("A]\nF=b\n[A"),
            r#"a section cannot have "]" or a newline"#,
        ),
        (
            in_section("A]"),
            r#"a section cannot have "]" or a newline"#,
        ),
        (
            in_section("A\nB"),
            r#"a section cannot have "]" or a newline"#,
        ),
        (
            in_section("A\rB"),
            "a section cannot have a carriage return",
        ),
        (
            in_section(&"s".repeat(SECTION_BYTES_MAX + 1)),
            "name of the section is longer than 100 bytes",
        ),
        (option("F=b", "a"), r#"a name cannot have "=" or a newline"#),
        (
            option("F\nE", "a"),
            r#"a name cannot have "=" or a newline"#,
        ),
        (option("F\r", "a"), "a name cannot have a carriage return"),
        (option("F\0", "a"), "a name cannot have NUL"),
        (
            option("#E", "a"),
            r##"a name cannot begin with "[", "#" or ";""##,
        ),
        (
            option(" ;E", "a"),
            r##"a name cannot begin with "[", "#" or ";""##,
        ),
        (
            option("[B]", "a"),
            r##"a name cannot begin with "[", "#" or ";""##,
        ),
        (
            option("E", "a\nF=b"),
            r#"a value cannot have a newline without a "\" before it"#,
        ),
        (
            option("E", "a\n"),
            r#"a value cannot have a newline without a "\" before it"#,
        ),
        (
            option("E", "\nF=b"),
            r#"a value cannot have a newline without a "\" before it"#,
        ),
        (
            option("E", "a\\\n\nF=b"),
            r#"a value cannot have a newline without a "\" before it"#,
        ),
        (
            option("E", "a\\\n \nF=b"),
            r#"a value cannot have a newline without a "\" before it"#,
        ),
        (
            option("E", "a\r\nF=b"),
            r#"a value cannot have a newline without a "\" before it"#,
        ),
        (
            option("E", "a\\\rF=b"),
            "a value cannot have a carriage return",
        ),
        (option("E", "a\\\0F=b"), "a value cannot have NUL"),
        (option("E", "a\r"), "a value cannot have a carriage return"),
        (
            option("E", &"v".repeat(LINE_BYTES_MAX)),
            "line too long (max 2048 bytes)",
        ),
    ] {
        let message = refused(&[option("D", "d"), given.clone()]);
        let is_told = message.starts_with("option 2 (") && message.ends_with(what);
        assert!(is_told, "{given:?}: {message}");
    }
}

#[test]
fn nothing_hidden_comes_in() {
    for (given, what) in [
        (
            UnitOption::new("A\tB", "E", "a"),
            "a section cannot have the control character U+0009",
        ),
        (
            UnitOption::new("A\u{202e}B", "E", "a"),
            "a section cannot have the control character U+202E",
        ),
        (
            option("F\u{1b}[31m", "a"),
            "a name cannot have the control character U+001B",
        ),
        (
            option("F\u{2066}", "a"),
            "a name cannot have the control character U+2066",
        ),
        (
            option("F\tG", "a"),
            "a name cannot have the control character U+0009",
        ),
        (
            option("E", "a\u{8}b"),
            "a value cannot have the control character U+0008",
        ),
        (
            option("E", "a\u{7f}b"),
            "a value cannot have the control character U+007F",
        ),
        (
            option("E", "a\u{9b}31m"),
            "a value cannot have the control character U+009B",
        ),
    ] {
        let message = refused(&[option("D", "d"), given.clone()]);
        let is_told = message.starts_with("option 2 (") && message.ends_with(what);
        assert!(is_told, "{given:?}: {message}");
    }
}

#[test]
fn options_have_limits() {
    let longest = option("E", &"v".repeat(LINE_BYTES_MAX - 2));
    assert!(Options::new(std::slice::from_ref(&longest)).is_ok());
    let many = |count| vec![option("E", "a"); count];
    assert!(Options::new(&many(OPTIONS_MAX)).is_ok());
    let message = refused(&many(OPTIONS_MAX + 1));
    assert_eq!(message, "unit file has more than 1000 options");
    let large = vec![longest; FILE_BYTES_MAX / LINE_BYTES_MAX + 1];
    assert!(refused(&large).starts_with("unit file is larger than 65536 bytes"));
    let huge = option("E", &"v\\\n".repeat(FILE_BYTES_MAX));
    assert!(refused(&[huge]).starts_with("unit file is larger than 65536 bytes"));
    let section = UnitOption::new(&"s".repeat(SECTION_BYTES_MAX), "E", "a");
    assert!(Options::new(&[section]).is_ok());
}
