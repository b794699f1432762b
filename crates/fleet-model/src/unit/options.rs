//! The options of a unit as they are stored, sent and hashed.

use super::file::{self, FILE_BYTES_MAX, LINE_BYTES_MAX, Malformed, OPTIONS_MAX, Unreadable};
use super::option::UnitOption;
use super::text::{UnitHash, canonical};
use crate::shown;

/// Longest name of a section, in bytes: it occurs once in the file, and with each option elsewhere.
pub const SECTION_BYTES_MAX: usize = 100;

/// The options of a unit, as read from their own canonical text. So a unit keeps its hash when it is stored and
/// read again, and systemd gets exactly these options.
///
/// # Guarantees
/// Reading [`Options::text`] returns equal options. Options with equal text are equal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    list: Vec<UnitOption>,
    hash: UnitHash,
}

/// Why options are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOptions {
    #[error(transparent)]
    File(#[from] Unreadable),
    #[error("{}", Malformed::TooManyOptions)]
    TooMany,
    #[error("{}", Malformed::TooLarge)]
    TooLarge,
    /// An option cannot be written to a file.
    #[error("option {number} ({name:?} in section {section:?}): {what}")]
    Option {
        /// Counted from one.
        number: usize,
        /// The beginning of its section.
        section: String,
        /// The beginning of its name.
        name: String,
        what: InvalidOption,
    },
}

/// Why an option is invalid: written to a file, it would be read differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOption {
    /// `]` ends the name of a section.
    #[error(r#"a section cannot have "]" or a newline"#)]
    Section,
    #[error("name of the section is longer than {SECTION_BYTES_MAX} bytes")]
    SectionTooLong,
    /// `=` ends a name.
    #[error(r#"a name cannot have "=" or a newline"#)]
    Name,
    /// It would be read as a comment or a section.
    #[error(r##"a name cannot begin with "[", "#" or ";""##)]
    NameStart,
    /// The rest would be read as another option, or as nothing.
    #[error(r#"a value cannot have a newline without a "\" before it"#)]
    Value,
    /// A section with an invisible character, or one that changes how others are displayed.
    #[error("a section cannot have {}", control(*.0))]
    SectionControl(char),
    /// Such a character in a name.
    #[error("a name cannot have {}", control(*.0))]
    NameControl(char),
    /// A value with a control character other than a tab.
    #[error("a value cannot have {}", control(*.0))]
    ValueControl(char),
    #[error("{}", Malformed::LineTooLong)]
    LineTooLong,
}

impl Options {
    /// The options of a list, as they would be read from their text: without blanks around names and values,
    /// sections together. A value that ends in `\` takes the next line of the text, as in the older fleet.
    ///
    /// # Errors
    /// An invalid option, or an exceeded limit.
    pub fn new(list: &[UnitOption]) -> Result<Self, InvalidOptions> {
        if list.len() > OPTIONS_MAX {
            return Err(InvalidOptions::TooMany);
        }
        let mut written = Vec::with_capacity(list.len());
        let mut bytes = 0;
        for (index, option) in list.iter().enumerate() {
            bytes += option.name.len() + option.value.len();
            if bytes > FILE_BYTES_MAX {
                return Err(InvalidOptions::TooLarge);
            }
            let option = checked(option).map_err(|what| InvalidOptions::Option {
                number: index + 1,
                section: shown(&option.section),
                name: shown(&option.name),
                what,
            })?;
            written.push(option);
        }
        let list = file::parse(canonical(&written).as_bytes())?;
        let text = canonical(&list);
        if text.len() > FILE_BYTES_MAX {
            return Err(InvalidOptions::TooLarge);
        }
        let hash = UnitHash::of(&text);
        Ok(Self { list, hash })
    }

    /// The options of a unit file.
    ///
    /// # Errors
    /// Faults of the file, or of its options once they are written in canonical form.
    pub fn parse(file: &[u8]) -> Result<Self, InvalidOptions> {
        Self::new(&file::parse(file)?)
    }

    /// All options, in the order of their text.
    pub fn list(&self) -> &[UnitOption] {
        &self.list
    }

    /// The canonical text, which agents write to disk and users see.
    pub fn text(&self) -> String {
        canonical(&self.list)
    }

    pub fn hash(&self) -> UnitHash {
        self.hash
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// A name for an invisible character, for people.
fn control(c: char) -> String {
    match c {
        '\0' => "NUL".to_owned(),
        '\r' => "a carriage return".to_owned(),
        c => format!("the control character U+{:04X}", u32::from(c)),
    }
}

/// Characters that change how others are displayed: directions of writing, and line ends that are no control
/// characters.
fn is_misleading(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The first character that sections and names cannot have. systemd reads a carriage return or NUL as the end
/// of a line. No name that it knows has any of the others.
fn hidden(text: &str) -> Option<char> {
    text.chars().find(|c| c.is_control() || is_misleading(*c))
}

/// The option without blanks around its name and value, if it is valid. A newline after a backslash stays, even
/// if nothing follows it.
fn checked(option: &UnitOption) -> Result<UnitOption, InvalidOption> {
    let (section, name) = (&option.section, option.name.trim());
    if section.contains([']', '\n']) {
        return Err(InvalidOption::Section);
    }
    if let Some(c) = hidden(section) {
        return Err(InvalidOption::SectionControl(c));
    }
    if section.len() > SECTION_BYTES_MAX {
        return Err(InvalidOption::SectionTooLong);
    }
    if option.name.contains(['=', '\n']) {
        return Err(InvalidOption::Name);
    }
    if let Some(c) = hidden(option.name.trim_matches(['\t', ' '])) {
        return Err(InvalidOption::NameControl(c));
    }
    if name.starts_with(['[', '#', ';']) {
        return Err(InvalidOption::NameStart);
    }
    let value = option.value.replace("\r\n", "\n");
    let mut newlines = value.match_indices('\n');
    if newlines.any(|(at, _)| !value[..at].ends_with('\\')) {
        return Err(InvalidOption::Value);
    }
    let is_refused = |c: &char| c.is_control() && !matches!(c, '\t' | '\n');
    if let Some(c) = value.chars().find(is_refused) {
        return Err(InvalidOption::ValueControl(c));
    }
    let (trimmed, behind) = value.split_at(value.trim_end().len());
    let end = if behind.starts_with('\n') { "\n" } else { "" };
    let value = format!("{}{end}", trimmed.trim_start());
    let line = format!("{name}={value}");
    if line.split('\n').any(|line| line.len() > LINE_BYTES_MAX) {
        return Err(InvalidOption::LineTooLong);
    }
    Ok(UnitOption::new(section, name, &value))
}
