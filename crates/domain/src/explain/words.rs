//! Parts of sentences: ages, lists of names, texts of clients.

use chrono::{DateTime, TimeDelta, Utc};

use super::surroundings::Blockers;
use crate::moment::rfc3339;

/// Most names in one sentence.
const NAMED_MAX: usize = 5;
/// Longest text of an adapter in a sentence, in characters. The data have all of it.
const QUOTED_MAX: usize = 300;

/// `since 2026-01-01T10:00:00Z (3 h)`.
pub(super) fn since(at: DateTime<Utc>, now: DateTime<Utc>) -> String {
    format!("since {} ({})", rfc3339(at), age(now - at))
}

/// A span in its largest unit of which it has at least two, rounded down.
pub(super) fn age(span: TimeDelta) -> String {
    // The clocks of adapters and of other instances may be ahead.
    let span = span.max(TimeDelta::zero());
    if span.num_days() >= 2 {
        format!("{} days", span.num_days())
    } else if span.num_hours() >= 2 {
        format!("{} h", span.num_hours())
    } else if span.num_minutes() >= 2 {
        format!("{} min", span.num_minutes())
    } else {
        format!("{} s", span.num_seconds())
    }
}

/// The first of `count` names, and whether there are more.
pub(super) fn names(count: usize, names: impl Iterator<Item = String>) -> String {
    let mut first: Vec<_> = names.take(NAMED_MAX).collect();
    if count > first.len() {
        first.push("…".to_owned());
    }
    first.join(", ")
}

/// `3 descendants (NodePool "a", NodePool "b", …)`, with the number of hidden ones.
pub(super) fn counted<T: AsRef<super::Kin>>(blockers: &Blockers<T>, noun: &str) -> String {
    let Blockers {
        total,
        hidden,
        is_partial,
        items,
    } = blockers;
    let more = if *is_partial { "at least " } else { "" };
    let plural = if *total == 1 { "" } else { "s" };
    let seen = names(
        total - hidden,
        items.iter().map(|item| item.as_ref().quoted()),
    );
    let hidden = match hidden {
        0 => None,
        hidden => Some(format!("{hidden} of other tenants")),
    };
    let seen = Some(seen).filter(|seen| !seen.is_empty());
    let each: Vec<_> = seen.into_iter().chain(hidden).collect();
    format!("{more}{total} {noun}{plural} ({})", each.join(", "))
}

/// A client's text in a sentence: one line, cut.
pub(super) fn quoted(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// `: Reason: message`, without the parts that are missing or empty.
pub(super) fn because(reason: Option<&str>, message: Option<&str>) -> String {
    let parts = [reason, message].into_iter().flatten().map(quoted);
    let parts = parts.filter(|part| !part.is_empty());
    parts.fold(String::new(), |all, part| format!("{all}: {part}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        for (seconds, text) in [
            (-5, "0 s"),
            (119, "119 s"),
            (120, "2 min"),
            (7199, "119 min"),
            (7200, "2 h"),
            (172_799, "47 h"),
            (172_800, "2 days"),
        ] {
            assert_eq!(age(TimeDelta::seconds(seconds)), text);
        }
    }

    #[test]
    fn few_names_are_all_there_and_many_are_cut() {
        let some = |count: usize| names(count, (0..count).map(|n| n.to_string()));
        assert_eq!(some(0), "");
        assert_eq!(some(5), "0, 1, 2, 3, 4");
        assert_eq!(some(6), "0, 1, 2, 3, 4, …");
    }

    #[test]
    fn texts_become_one_short_line() {
        assert_eq!(
            because(Some("Quota"), Some("no\n  room ")),
            ": Quota: no room"
        );
        assert_eq!(because(Some(""), None), "");
        let long = quoted(&"é".repeat(QUOTED_MAX + 1));
        assert_eq!(long, format!("{}…", "é".repeat(QUOTED_MAX)));
    }
}
