//! Escapes values for unit files: no value of a spec can add an option, an argument or a specifier.
//!
//! | where | what a value may be | how it is written |
//! | --- | --- | --- |
//! | name of a unit, program of a command | letters, digits, `.`, `_`, `-`; not empty, no `..`, no `-` first | as it is |
//! | arguments of `Exec…=` | any text without control characters | blanks, quotes, `\`, `;`, `#`, `%`, `$` escaped |
//! | `Environment=` | the same | the same, but for `$`, which means nothing there |
//! | `Description=` | the same without `\` | `%` doubled |
//! | other options | letters, digits, `. _ @ = + , ~ -`, and `/ :` at the beginning of the option and in `[X-Fleet]`; not empty, no `..` | as it is |

use std::fmt::Write as _;

/// Where a value is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    /// Name of a unit, or program of a command.
    Name,
    /// Argument of a command.
    Argument,
    /// Assignment in `Environment=`.
    Environment,
    /// `Description=`.
    Text,
    /// Any other option.
    Plain {
        /// Whether it begins the option's value, where signs such as `-` and `!` have a meaning.
        is_first: bool,
        /// Whether `/` and `:` are plain characters. Elsewhere they separate the parts of an option.
        may_separate: bool,
    },
}

impl Usage {
    /// Where a value is put that stands behind `before` in an option.
    pub(super) fn of(section: &str, name: &str, before: &str) -> Self {
        let is_first = before.trim().is_empty();
        match (section, name) {
            ("Service" | "Socket" | "Mount" | "Swap", name) if name.starts_with("Exec") => {
                if is_program(before) {
                    Self::Name
                } else {
                    Self::Argument
                }
            }
            ("X-Fleet", _) => Self::Plain {
                is_first,
                may_separate: true,
            },
            (_, "Environment") => Self::Environment,
            (_, "Description") => Self::Text,
            _ => Self::Plain {
                is_first,
                may_separate: is_first,
            },
        }
    }

    /// The text that stands for a value in the file.
    ///
    /// # Errors
    /// What is wrong with the value, as what follows it in a sentence.
    pub(super) fn escape(self, value: &str) -> Result<String, String> {
        if let Some(c) = value.chars().find(|c| is_hidden(*c)) {
            return Err(format!("has the control character U+{:04X}", u32::from(c)));
        }
        match self {
            Self::Name | Self::Plain { .. } if value.contains("..") => Err("has \"..\"".to_owned()),
            Self::Name if value.starts_with('-') => Err("begins with \"-\"".to_owned()),
            Self::Name => plain(value, "._-"),
            Self::Plain {
                is_first,
                may_separate,
            } => {
                let starts =
                    value.starts_with(|c: char| c.is_ascii_alphanumeric() || "/._".contains(c));
                if is_first && !value.is_empty() && !starts {
                    return Err(
                        "begins with neither a letter, a digit, nor one of / . _".to_owned()
                    );
                }
                plain(
                    value,
                    if may_separate {
                        "._:/@=+,~-"
                    } else {
                        "._@=+,~-"
                    },
                )
            }
            Self::Text if value.contains('\\') => Err("has a backslash".to_owned()),
            Self::Text => Ok(value.replace('%', "%%")),
            Self::Argument => Ok(word(value).replace('$', "$$")),
            Self::Environment => Ok(word(value)),
        }
    }

    /// Whether a value may be empty; then it is written as `""` where it stands alone.
    pub(super) fn is_word(self) -> bool {
        matches!(self, Self::Argument | Self::Environment)
    }
}

/// Whether what follows in an `Exec…=` belongs to the program of a command: of the first one, or of one behind a `;`.
fn is_program(before: &str) -> bool {
    let (mut words, mut word, mut quote) = (0, String::new(), None);
    for c in before.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c.is_ascii_whitespace() => {
                match word.as_str() {
                    "" => {}
                    ";" => words = 0,
                    _ => words += 1,
                }
                word.clear();
                continue;
            }
            _ => {}
        }
        word.push(c);
    }
    words == 0
}

/// Characters that do not show, or change how others are shown.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn plain(value: &str, signs: &str) -> Result<String, String> {
    if value.is_empty() {
        return Err("is empty".to_owned());
    }
    let is_refused = |c: &char| !c.is_ascii_alphanumeric() && !signs.contains(*c);
    match value.chars().find(is_refused) {
        Some(c) => Err(format!(
            "has {c:?}: letters, digits and {signs} may stand here"
        )),
        None => Ok(value.to_owned()),
    }
}

/// One word for systemd, whatever stands around it (systemd.service(5), "Command lines"). A backslash is written as a
/// code: at the end of a line fleet and systemd do not agree on what two of them mean.
fn word(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            ' ' | '"' | '\'' | '\\' | ';' | '#' => {
                // A String takes everything.
                let _ = write!(text, "\\x{:02x}", u32::from(c));
            }
            '%' => text.push_str("%%"),
            // systemd takes only ASCII blanks for the end of a word.
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_stay_one_word() {
        for (value, text) in [
            ("eu-1", "eu-1"),
            ("eu --evil", "eu\\x20--evil"),
            ("\"a' b\\", "\\x22a\\x27\\x20b\\x5c"),
            ("%H;$HOME", "%%H\\x3b$$HOME"),
            ("#x", "\\x23x"),
            ("größe", "größe"),
        ] {
            assert_eq!(
                Usage::Argument.escape(value).as_deref(),
                Ok(text),
                "{value}"
            );
        }
        assert_eq!(Usage::Environment.escape("$a b").as_deref(), Ok("$a\\x20b"));
        assert_eq!(Usage::Text.escape("100 % $x").as_deref(), Ok("100 %% $x"));
    }

    #[test]
    fn what_could_mean_something_else_is_refused() {
        let plain = Usage::Plain {
            is_first: false,
            may_separate: true,
        };
        let first = Usage::Plain {
            is_first: true,
            may_separate: true,
        };
        let part = Usage::Plain {
            is_first: false,
            may_separate: false,
        };
        for (usage, value) in [
            (Usage::Argument, "a\nExecStart=/bin/evil"),
            (Usage::Environment, "a\r"),
            (Usage::Text, "a\u{2028}b"),
            (Usage::Text, "a\\"),
            (plain, "eu\" \"disk=ssd"),
            (plain, "%n"),
            (plain, "*"),
            (plain, ""),
            (plain, "a b"),
            (plain, "../../etc/shadow"),
            (part, "a:/data"),
            (part, "a/b"),
            (first, "-eu"),
            (first, "~CAP"),
            (Usage::Name, "-a"),
            (Usage::Name, "a/b"),
            (Usage::Name, "a..b"),
            (Usage::Name, "a@b"),
            (Usage::Name, ""),
        ] {
            assert!(usage.escape(value).is_err(), "{usage:?} {value:?}");
        }
        assert_eq!(plain.escape("eu-west/1").as_deref(), Ok("eu-west/1"));
    }

    #[test]
    fn the_option_decides_what_a_value_may_be() {
        let plain = |is_first, may_separate| Usage::Plain {
            is_first,
            may_separate,
        };
        for (section, name, before, usage) in [
            ("Service", "ExecStart", "", Usage::Name),
            ("Service", "ExecStart", "/opt/", Usage::Name),
            ("Service", "ExecStartPre", "/bin/a --x=", Usage::Argument),
            ("Service", "ExecStart", "/bin/a ; ", Usage::Name),
            ("Service", "ExecStart", "\"/opt/my tools/", Usage::Name),
            (
                "Service",
                "ExecStart",
                "\"/opt/my tools/x\" ",
                Usage::Argument,
            ),
            ("Service", "Environment", "A=", Usage::Environment),
            ("Unit", "Description", "Pool ", Usage::Text),
            ("Service", "User", "", plain(true, true)),
            ("Service", "BindPaths", "/srv/", plain(false, false)),
            ("X-Fleet", "MachineMetadata", "region=", plain(false, true)),
            ("X-Fleet", "Environment", "", plain(true, true)),
        ] {
            assert_eq!(
                Usage::of(section, name, before),
                usage,
                "{section} {name} {before}"
            );
        }
    }
}
