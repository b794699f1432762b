//! Properties of any bytes and any options.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::unit::laws::{check_file, check_options};
use crate::unit::{Options, UNIT_TYPES, UnitName, UnitOption};

/// Typical pieces of unit files, and disturbing ones.
fn piece() -> impl Strategy<Value = String> {
    let words = vec![
        "[",
        "]",
        "=",
        "\\",
        "\n",
        "\r\n",
        "\r",
        " ",
        "\t",
        "#",
        ";",
        "\"",
        "%n",
        "%N",
        "%p",
        "%i",
        "a",
        "é",
        "\u{feff}",
        "\u{a0}",
        "\0",
        "\\\n",
        "\\ \n",
        "\n\n",
        "[A]\n",
        "[B]\n",
        "\n[X-Fleet]\n",
        "[X-Fleet]\n",
        "Global=true\n",
        "Singleton=yes\n",
        "MachineID=m\n",
        "MachineOf=%p.socket\n",
        "MachineMetadata=",
        "MachineMetadata=\"a=b\" \"c=d\"\n",
        "Conflicts=a* b?",
        "Replaces=c",
        "X-Conflicts=",
        "ExecStart=/bin/true\n",
        "x=1\n",
        "y=2",
    ];
    prop_oneof![
        20 => select(words).prop_map(str::to_owned),
        2 => any::<String>(),
        1 => (select(vec!["a", "\\\n", " ", "é"]), 1000..2050_usize)
            .prop_map(|(text, count)| text.repeat(count / text.len())),
    ]
}

fn text(pieces: usize) -> impl Strategy<Value = String> {
    vec(piece(), 0..pieces).prop_map(|pieces| pieces.concat())
}

fn option() -> impl Strategy<Value = UnitOption> {
    let section =
        prop_oneof![4 => select(vec!["A", "B", "X-Fleet"]).prop_map(str::to_owned), 1 => text(3)];
    let name = prop_oneof![4 => select(vec!["E", " F", "", "Conflicts"]).prop_map(str::to_owned), 1 => text(3)];
    (section, name, text(6)).prop_map(|(section, name, value)| UnitOption {
        name,
        section,
        value,
    })
}

/// Options, most of which are valid.
fn good_option() -> impl Strategy<Value = UnitOption> {
    let value = vec(
        select(vec!["a", " ", "\\", "\\\n", "=", "[B]", "#", "\""]),
        0..6,
    );
    let parts = (
        select(vec!["A", "B", "X-Fleet"]),
        select(vec!["E", "F", ""]),
        value,
    );
    parts.prop_map(|(section, name, value)| UnitOption::new(section, name, &value.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_keep_the_laws(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert_eq!(check_file(&bytes), Ok(()));
    }

    #[test]
    fn files_that_are_nearly_right_keep_the_laws(file in text(30)) {
        prop_assert_eq!(check_file(file.as_bytes()), Ok(()));
        prop_assert_eq!(check_file(format!("[A]\n{file}").as_bytes()), Ok(()));
    }

    #[test]
    fn options_keep_the_laws(given in vec(option(), 0..6)) {
        prop_assert_eq!(check_options(&given), Ok(()));
    }

    #[test]
    fn options_that_are_taken_keep_the_laws(given in vec(good_option(), 0..6)) {
        prop_assert_eq!(check_options(&given), Ok(()));
    }

    #[test]
    fn hashes_are_equal_if_texts_are_and_only_then(
        one in vec(good_option(), 0..3),
        other in vec(good_option(), 0..3),
    ) {
        if let (Ok(one), Ok(other)) = (Options::new(&one), Options::new(&other)) {
            prop_assert_eq!(one.text() == other.text(), one.hash() == other.hash());
            prop_assert_eq!(one.text() == other.text(), one == other);
        }
    }

    #[test]
    fn any_name_is_taken_or_refused_and_taken_whole(
        name in prop_oneof![
            any::<String>(),
            "[a-z@.\\\\%]{0,6}\\.(service|mount|socket|nothing)",
        ],
    ) {
        if let Ok(parsed) = UnitName::parse(name.clone()) {
            prop_assert_eq!(parsed.as_str(), &name);
            let parts = parsed.parts().expect("a dot");
            prop_assert_eq!(&format!("{}.{}", parts.stem, parts.suffix), &name);
            prop_assert!(!parts.stem.is_empty() && !name.contains(['/', '%', ' ']));
            prop_assert!(UNIT_TYPES.contains(&parts.suffix));
            let is_own_template = parts.template().as_deref() == Some(name.as_str());
            prop_assert_eq!(parsed.is_template(), is_own_template);
        }
    }
}
