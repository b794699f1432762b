//! Numbers with their units, as prose and settings write them.

/// Names of units, each with its number of basic units: milliseconds, bytes.
const UNITS: &[(&[&str], u64)] = &[
    (&["ms"], 1),
    (&["s", "second", "seconds"], 1_000),
    (&["m", "minute", "minutes"], 60_000),
    (&["h", "hour", "hours"], 3_600_000),
    (&["d", "day", "days"], 86_400_000),
    (&["KiB"], 1 << 10),
    (&["MiB"], 1 << 20),
];
/// "One" is left out: it is more often an article than a number.
const WORDS: [&str; 11] = [
    "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
];

/// Every number of a text, in basic units: `30 s`, `30s`, `1,000`, `five seconds`, `1m 15s`.
pub(crate) fn quantities(text: &str) -> Vec<u64> {
    let is_part = |c: char| c.is_alphanumeric() || c == ',';
    let words: Vec<_> = text.split(|c| !is_part(c)).collect();
    let words: Vec<_> = words
        .iter()
        .map(|word| word.trim_matches(','))
        .filter(|word| !word.is_empty())
        .collect();
    let found = words.iter().enumerate().filter_map(|(at, word)| {
        let (number, behind) = number(word)?;
        let unit = match behind {
            "" => words.get(at + 1).and_then(|next| unit(next)),
            behind => Some(unit(behind)?),
        };
        Some(number * unit.unwrap_or(1))
    });
    found.collect()
}

/// A number at the beginning of a word, and what follows it.
fn number(word: &str) -> Option<(u64, &str)> {
    if let Some(at) = WORDS.iter().position(|known| *known == word) {
        return Some((at as u64 + 2, ""));
    }
    let end = word.find(|c: char| !c.is_ascii_digit() && c != ',');
    let (digits, behind) = word.split_at(end.unwrap_or(word.len()));
    Some((digits.replace(',', "").parse().ok()?, behind))
}

fn unit(name: &str) -> Option<u64> {
    let unit = UNITS.iter().find(|(names, _)| names.contains(&name));
    unit.map(|(_, size)| *size)
}

#[test]
fn numbers_are_read_with_their_units() {
    for (text, expected) in [
        ("10,000 in a transaction", vec![10_000]),
        (
            "reserves 2 KiB (32 KiB in ten seconds)",
            vec![2 << 10, 32 << 10, 10_000],
        ),
        (
            "`30s`, 25 ms, 5 minutes, 30 days",
            vec![30_000, 25, 300_000, 2_592_000_000],
        ),
        ("316, 1024, 32768 bytes", vec![316, 1024, 32_768]),
        ("VAL-6x, 1x, a one", vec![]),
    ] {
        assert_eq!(quantities(text), expected, "{text}");
    }
}
