//! Reading of unit files, and positions of faults.

use crate::unit::file::{FILE_BYTES_MAX, LINE_BYTES_MAX, OPTIONS_MAX, parse};
use crate::unit::{UnitHash, UnitOption, canonical};

/// The options as `section/name=value`.
fn read(file: &str) -> Vec<String> {
    let options = parse(file.as_bytes()).unwrap_or_else(|fault| panic!("{file:?}: {fault}"));
    let shown = |o: &UnitOption| format!("{}/{}={}", o.section, o.name, o.value);
    options.iter().map(shown).collect()
}

fn fault(file: &[u8]) -> String {
    match parse(file) {
        Ok(options) => panic!(
            "{:?} was read as {options:?}",
            String::from_utf8_lossy(file)
        ),
        Err(fault) => fault.to_string(),
    }
}

/// The older system's results for these files, with its hashes.
#[test]
fn the_table_of_the_reference_holds() {
    let none: &[&str] = &[];
    for (file, options, hash) in [
        ("", none, "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        ("Foo=bar", none, "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        ("[Unit]", none, "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        (
            "[Unit]\nA=b",
            &["Unit/A=b"],
            "9936816f25a659b2b12b116e85777205069365a9",
        ),
        (
            "[Unit]\nA=b\n",
            &["Unit/A=b"],
            "9936816f25a659b2b12b116e85777205069365a9",
        ),
        (
            "[Unit]\n  A  =   b c  ",
            &["Unit/A=b c"],
            "59d158b5cb95cce1739b8d08bd9d39dfa54c5099",
        ),
        (
            "[Unit]\nA=\nB=c",
            &["Unit/A=", "Unit/B=c"],
            "ee6ba6eff392f647946f4a89d92d4c1deb74a06f",
        ),
        (
            "[Unit]\n# cont \\\nA=swallowed\nB=c",
            &["Unit/B=c"],
            "f3c4067a11f5873c65672dbe7963423e9e844b03",
        ),
        (
            "[S]\nE=one \\\n  two\nF=x",
            &["S/E=one \\\n  two", "S/F=x"],
            "e82c948629d61b91814657e8d06aba4d2a6eaa1d",
        ),
        (
            "[S]\nE=one \\\n# two\nF=x",
            &["S/E=one \\\n# two", "S/F=x"],
            "0cda393c0418837135ab222f798d336df545decd",
        ),
        (
            "[S]\nE=one \\\n\nF=x",
            &["S/E=one \\\n", "S/F=x"],
            "c1cf6a8a19893db850719f09dee4d86ec3ecbc5e",
        ),
        (
            "[S]\nE=one \\ \nF=x",
            &["S/E=one \\", "S/F=x"],
            "7cc8e500eb42e7d2c91974932eb0365796f06ba4",
        ),
        (
            "[S]\r\nE=one\r\nF=two\r\n",
            &["S/E=one", "S/F=two"],
            "e4aff49e9d1a2171708c843fa8505f927687ac7d",
        ),
        (
            "[A]\nx=1\n[B]\ny=2\n[A]\nz=3",
            &["A/x=1", "B/y=2", "A/z=3"],
            "b0ec5394d87ef22dd43bb992cc6676e4063f7351",
        ),
        (
            "[A]\nDesc=héllo ☃",
            &["A/Desc=héllo ☃"],
            "0ffeb3e9f5704917f57c3185da170b59df8dfa14",
        ),
        (
            "[Service]\nExecStart=/bin/sleep 3000",
            &["Service/ExecStart=/bin/sleep 3000"],
            "7dc08eb00f0c705e84a61e030d98e8cc3c994954",
        ),
    ] {
        assert_eq!(read(file), options, "{file:?}");
        let text = canonical(&parse(file.as_bytes()).expect(file));
        assert_eq!(UnitHash::of(&text).to_string(), hash, "{file:?}");
    }
}

#[test]
fn faults_say_what_and_where() {
    for (file, message) in [
        (
            "[A] junk",
            "found garbage after section name : [106 117 110 107] at line 1, column 5",
        ),
        ("[A", "unable to find end of section at line 1, column 1"),
        (
            "[B]\n [A\nx=1",
            "unable to find end of section at line 2, column 2",
        ),
        ("[A]\njunk", "EOF at line 2, column 5"),
        (
            "[A]\nabc\nx=1",
            "unexpected newline encountered while parsing option name at line 2, column 4",
        ),
        (
            "[A]\r\nx=1\r\nabc\r\n",
            "unexpected newline encountered while parsing option name at line 3, column 4",
        ),
        (
            "[S]\nE\rx=1",
            "unexpected newline encountered while parsing option name at line 2, column 2",
        ),
        (
            "# é\n[é] ☃",
            "found garbage after section name : [226 152 131] at line 2, column 5",
        ),
    ] {
        assert_eq!(fault(file.as_bytes()), message, "{file:?}");
    }
    assert_eq!(
        fault(b"[A]\nx=\xc3\xa9\xff"),
        "unit file is not UTF-8 at line 2, column 4"
    );
}

#[test]
fn before_the_first_section_nothing_counts() {
    for file in [
        "abc[A]\nx=1",
        "\u{feff}[A]\nx=1",
        "x=2\n=\n]\n[A]\nx=1",
        "# [B]\n[A]\nx=1",
        "abc # [B] \\\n[C]\n; [D]\n[A]\nx=1",
    ] {
        assert_eq!(read(file), ["A/x=1"], "{file:?}");
    }
}

#[test]
fn sections_options_and_comments_are_distinguished() {
    for (file, options) in [
        ("[A]\n =x\n<<<=bar", ["A/=x", "A/<<<=bar"]),
        (
            "[A]\nx=1 ; no comment\n;y=2\n  # z=3\nw==4",
            ["A/x=1 ; no comment", "A/w==4"],
        ),
        ("[A]  \t\nx=1\n[ B]\ny=[C]", ["A/x=1", " B/y=[C]"]),
        ("[A\nB]\nx=1\n[]\ny=2", ["A\nB/x=1", "/y=2"]),
        ("[A]x=1".replace("]x", "]\nx").as_str(), ["A/x=1", ""]),
        ("[A]\nx=\ny=1", ["A/x=", "A/y=1"]),
        ("[A]\n# c \\ \ny=1\nx=1\n# c \\  \nz=1", ["A/x=1", "A/z=1"]),
        ("[A]\n#\\\n#\\\nx=1\ny=1\n#\\\n\nz=1", ["A/y=1", "A/z=1"]),
    ] {
        let options: Vec<_> = options.into_iter().filter(|o| !o.is_empty()).collect();
        assert_eq!(read(file), options, "{file:?}");
    }
}

#[test]
fn values_go_on_after_a_backslash_at_the_very_end() {
    for (file, value) in [
        ("E=\\\n\nF=x", "\\\n"),
        ("E=\\\n", "\\\n"),
        ("E=a\\", "a\\"),
        ("E=a\\\n \t\nF=x", "a\\\n"),
        ("E=  a\\\n  b  ", "a\\\n  b"),
        ("E=a\\\n[B]", "a\\\n[B]"),
        ("E=a\\\n\\\nb", "a\\\n\\\nb"),
        ("E=a\\\\\nb", "a\\\\\nb"),
        ("E=a\rb", "a\rb"),
        // Windows lines can be continued, too.
        ("E=one \\\r\n  two\r\nF=x\r\n", "one \\\n  two"),
        ("E=one \\\r\n\r\nF=x", "one \\\n"),
        ("E=one \\\r", "one \\"),
        ("E=one \\\r\r\nF=x", "one \\"),
    ] {
        let file = format!("[A]\n{file}");
        assert_eq!(read(&file)[0], format!("A/E={value}"), "{file:?}");
    }
}

#[test]
fn lines_have_2047_bytes_at_most_wherever_they_stand() {
    let long = "é".repeat(LINE_BYTES_MAX / 2);
    for start in ["[A]\nb=", "[A]\n#x", "xx", "[A]\nb=\\\nxx", "[A]\n#\\\nxx"] {
        let head = start.rsplit('\n').next().expect("there is a last line");
        let fits = &long[..LINE_BYTES_MAX - head.len() - 1];
        for end in ["", "\n", "\r\n", "\r\nc=d", "\n[B]\n"] {
            let file = |more: &str| format!("{start}{fits}{more}{end}");
            assert_eq!(file("c").lines().map(str::len).max(), Some(LINE_BYTES_MAX));
            assert!(
                parse(file("c").as_bytes()).is_ok() || start == "xx",
                "{start:?} {end:?}"
            );
            let line = start.lines().count();
            let message = format!("line too long (max 2048 bytes) at line {line}, column ");
            let refused = fault(file("cc").as_bytes());
            assert!(refused.starts_with(&message), "{refused}");
        }
    }
}

#[test]
fn of_two_faults_the_first_is_reported() {
    let long = "c".repeat(LINE_BYTES_MAX + 1);
    let told = |file: String| fault(file.as_bytes());
    assert!(told(format!("[A] x\n{long}")).starts_with("found garbage"));
    assert!(told(format!("[A\n{long}")).starts_with("unable to find"));
    assert!(told(format!("{long}\n[A] x")).starts_with("line too long"));
    assert!(told(format!("[A]\n{long}")).starts_with("line too long"));
    assert!(told(format!("[A]\n[{long}")).starts_with("line too long"));
    assert!(told(format!("[A]\nx\n{long}")).starts_with("unexpected newline"));
}

#[test]
fn files_have_limits() {
    let large = |bytes: usize| format!("[A]\nb=c\n{}", "#\n".repeat((bytes - 8) / 2));
    assert!(parse(large(FILE_BYTES_MAX).as_bytes()).is_ok());
    assert_eq!(
        fault(large(FILE_BYTES_MAX + 2).as_bytes()),
        "unit file is larger than 65536 bytes at line 32767, column 1"
    );
    let many = |count: usize| format!("[A]\n{}", "b=c\n".repeat(count));
    assert_eq!(read(&many(OPTIONS_MAX)).len(), OPTIONS_MAX);
    assert_eq!(
        fault(many(OPTIONS_MAX + 1).as_bytes()),
        "unit file has more than 1000 options at line 1002, column 1"
    );
}
