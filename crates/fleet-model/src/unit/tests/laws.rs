//! Properties of any bytes as a unit file, and of any options. The fuzz target (`fuzz/`) searches for
//! counterexamples; tests check its corpus.

use std::collections::BTreeSet;
use std::fmt::Debug;

use super::file::{self, FILE_BYTES_MAX, LINE_BYTES_MAX, Malformed, OPTIONS_MAX, Unreadable};
use super::{FleetSection, NameParts, Options, UnitHash, UnitOption, canonical, validity};

/// Most bytes of a message beyond what it quotes of the file.
const MESSAGE_BYTES_MAX: usize = 256;
/// A byte in a message: three digits and a space.
const SHOWN_BYTE: usize = 4;

/// Between two options, where bytes are read as a list of them.
const OPTION_END: char = '\u{1e}';
/// Between the parts of an option.
const PART_END: char = '\u{1f}';

/// Checks bytes against all properties: as a unit file, and as a list of options whose parts ASCII separators
/// keep apart.
///
/// # Errors
/// The broken property.
pub fn check_bytes(bytes: &[u8]) -> Result<(), String> {
    check_file(bytes)?;
    let text = String::from_utf8_lossy(bytes);
    let options = text.split(OPTION_END).map(|option| {
        let mut parts = option.splitn(3, PART_END);
        let mut part = || parts.next().unwrap_or_default();
        UnitOption::new(part(), part(), part())
    });
    check_options(&options.collect::<Vec<_>>())
}

/// Checks bytes against the properties of unit files.
///
/// - Reading them ends, without a panic, and with the same result each time.
/// - They are too large if and only if there are more than [`FILE_BYTES_MAX`].
/// - A fault has a message of bounded length, and points into the file or to its end.
/// - The options keep every limit and the properties of [`check_options`].
///
/// # Errors
///
/// The broken property.
pub fn check_file(file: &[u8]) -> Result<(), String> {
    let answer = file::parse(file);
    same(&file::parse(file), &answer, "what is read twice")?;
    let is_too_large = matches!(&answer, Err(fault) if fault.what == Malformed::TooLarge);
    same(
        &is_too_large,
        &(file.len() > FILE_BYTES_MAX),
        "whether it is too large",
    )?;
    match answer {
        Ok(options) => {
            let long = file.split(|b| *b == b'\n').find(|line| {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                line.len() > LINE_BYTES_MAX
            });
            same(&long, &None, "a line")?;
            check_options(&options)
        }
        Err(fault) => of_fault(file, &fault),
    }
}

/// Checks options from any source against the properties of options.
///
/// - The same options are always accepted or always refused, without a panic.
/// - Accepted options keep every limit; their text is read as the same options; these are
///   accepted unchanged; equal text has an equal hash.
/// - No section and no name is added. If no value ends in `\`, there are as
///   many options as were given.
/// - Their requirements can be read, with a name and without.
///
/// # Errors
///
/// The broken property.
pub fn check_options(given: &[UnitOption]) -> Result<(), String> {
    let answer = Options::new(given);
    same(&Options::new(given), &answer, "what is taken twice")?;
    let _ = FleetSection::of(given).requirements(None);
    let Ok(options) = answer else {
        return Ok(());
    };
    of_options(&options)?;
    of_what_was_given(given, &options)?;
    of_requirements(&options)
}

fn of_fault(file: &[u8], fault: &Unreadable) -> Result<(), String> {
    let shown = SHOWN_BYTE * LINE_BYTES_MAX;
    let message = fault.to_string();
    at_most(message.len(), shown + MESSAGE_BYTES_MAX, "bytes of message")?;
    let mut lines = file.split(|b| *b == b'\n');
    let Some(line) = fault.line.checked_sub(1).and_then(|n| lines.nth(n)) else {
        return Err(format!("a fault in line {}", fault.line));
    };
    at_most(fault.column, line.len() + 1, "characters to a fault")?;
    same(
        &(fault.column > 0),
        &true,
        "that columns are counted from one",
    )
}

fn of_options(options: &Options) -> Result<(), String> {
    let text = options.text();
    at_most(options.list().len(), OPTIONS_MAX, "options")?;
    at_most(text.len(), FILE_BYTES_MAX, "bytes of text")?;
    let read = file::parse(text.as_bytes());
    same(
        &read.as_deref(),
        &Ok(options.list()),
        "what is read of the text",
    )?;
    same(
        &canonical(options.list()),
        &text,
        "the text that is written again",
    )?;
    same(
        &Options::new(options.list()).as_ref(),
        &Ok(options),
        "what is taken again",
    )?;
    let hash = UnitHash::of(&text);
    same(&options.hash(), &hash, "the hash")?;
    same(
        &UnitHash::parse(&hash.to_string()),
        &Some(hash),
        "the hash that is read",
    )
}

fn of_what_was_given(given: &[UnitOption], options: &Options) -> Result<(), String> {
    let names = |list: &[UnitOption]| -> BTreeSet<(String, String)> {
        let names = list
            .iter()
            .map(|o| (o.section.clone(), o.name.trim().to_owned()));
        names.collect()
    };
    let (names_given, names_taken) = (names(given), names(options.list()));
    if let Some(added) = names_taken.difference(&names_given).next() {
        return Err(format!("{added:?} was not given"));
    }
    let may_join = given.iter().any(|o| o.value.trim_end().ends_with('\\'));
    let (taken, given) = (options.list().len(), given.len());
    if taken == given || (may_join && taken < given) {
        return Ok(());
    }
    Err(format!("of {given} options there are {taken}"))
}

fn of_requirements(options: &Options) -> Result<(), String> {
    let section = FleetSection::of(options.list());
    for name in [None, NameParts::of("a@%i%n.b@c.service")] {
        let requirements = section.requirements(name);
        let mut pairs = requirements.metadata.iter();
        let empty = pairs.find(|(key, values)| key.is_empty() || values.contains(""));
        same(&empty, &None, "metadata")?;
    }
    let unknown = section.unknown();
    let distinct: BTreeSet<_> = unknown.iter().collect();
    same(
        &distinct.len(),
        &unknown.len(),
        "the number of unknown names",
    )?;
    let checked = validity::check(options);
    let is_malformed = checked.is_ok() && section.malformed_metadata().is_some();
    same(&is_malformed, &false, "whether malformed metadata came in")
}

fn same<T: PartialEq + Debug>(is: &T, should: &T, what: &str) -> Result<(), String> {
    if is == should {
        return Ok(());
    }
    Err(format!("{what} is {is:?}, not {should:?}"))
}

fn at_most(count: usize, most: usize, what: &str) -> Result<(), String> {
    if count <= most {
        return Ok(());
    }
    Err(format!("{count} {what}, {most} are allowed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_broken(result: Result<(), String>, law: &str) {
        let broken = result.expect_err(law);
        assert!(broken.contains(law), "{broken}");
    }

    #[test]
    fn they_hold_at_the_limits() {
        let lines = |count: usize, line: &str| format!("[A]\n{}", line.repeat(count));
        for file in [
            lines(OPTIONS_MAX, "a=b\n"),
            lines(OPTIONS_MAX + 1, "a=b\n"),
            format!("[A]\nb={}", "c".repeat(LINE_BYTES_MAX - 2)),
            format!("[A]\nb={}", "c".repeat(LINE_BYTES_MAX - 1)),
            // As large as possible, with a last line that gets an end in canonical form.
            format!(
                "{}a=\\",
                lines(FILE_BYTES_MAX / 1024, &format!("{}=\n", "n".repeat(1000)))
            ),
            format!("[A]\n{}\na=\\", "# c\n".repeat((FILE_BYTES_MAX - 8) / 4)),
            " ".repeat(FILE_BYTES_MAX),
            " ".repeat(FILE_BYTES_MAX + 1),
            format!("[{}]\na=b", "s".repeat(200)),
        ] {
            assert_eq!(check_file(file.as_bytes()), Ok(()), "{}", &file[..40]);
        }
    }

    #[test]
    fn faults_that_mislead_are_noticed() {
        let at = |line, column| Unreadable {
            what: Malformed::EndInName,
            line,
            column,
        };
        assert_eq!(of_fault(b"a\nb", &at(2, 2)), Ok(()));
        assert_broken(of_fault(b"a\nb", &at(2, 3)), "characters to a fault");
        assert_broken(of_fault(b"a\nb", &at(3, 1)), "in line 3");
        assert_broken(of_fault(b"a\nb", &at(0, 1)), "in line 0");
        assert_broken(of_fault(b"a\nb", &at(1, 0)), "counted from one");
        let long = Unreadable {
            what: Malformed::Garbage(vec![200; 3000]),
            ..at(1, 1)
        };
        assert_broken(of_fault(b"a", &long), "bytes of message");
    }

    #[test]
    fn what_was_not_given_is_noticed() {
        let one = UnitOption::new("A", "a", "b");
        let two = UnitOption::new("A", "b", "c");
        let options = Options::new(&[one.clone(), two.clone()]).expect("good ones");
        let held = of_what_was_given(&[one.clone(), two.clone()], &options);
        assert_eq!(held, Ok(()));
        assert_broken(
            of_what_was_given(std::slice::from_ref(&one), &options),
            "not given",
        );
        let more = [one.clone(), two.clone(), two];
        assert_broken(of_what_was_given(&more, &options), "of 3 options");
    }
}
