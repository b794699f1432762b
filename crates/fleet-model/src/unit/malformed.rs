//! What makes a text no unit file.

/// Largest unit file, in bytes: 32 of the longest lines. JSON may write each byte as six (`\u0000`),
/// and even so a unit stays well below what etcd takes in one request by default, 1.5 MiB.
pub const FILE_BYTES_MAX: usize = 64 * 1024;
/// Most options of one unit: each repeats its section where options are listed.
pub const OPTIONS_MAX: usize = 1000;
/// Longest line without its end, in bytes.
pub const LINE_BYTES_MAX: usize = 2047;

/// What may be wrong with a unit file. The words are those of the older server, where it has any.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It is too large.
    #[error("unit file is larger than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    /// It has too many options.
    #[error("unit file has more than {OPTIONS_MAX} options")]
    TooManyOptions,
    /// It is no text.
    #[error("unit file is not UTF-8")]
    NotUtf8,
    /// A line is too long.
    #[error("line too long (max {} bytes)", LINE_BYTES_MAX + 1)]
    LineTooLong,
    /// A section begins and does not end.
    #[error("unable to find end of section")]
    OpenSection,
    /// These bytes stand behind the name of a section.
    #[error("found garbage after section name : [{}]", bytes(.0))]
    Garbage(Vec<u8>),
    /// A line has no `=`.
    #[error("unexpected newline encountered while parsing option name")]
    NewlineInName,
    /// The last line has no `=`.
    #[error("EOF")]
    EndInName,
}

fn bytes(garbage: &[u8]) -> String {
    let numbers: Vec<_> = garbage.iter().map(ToString::to_string).collect();
    numbers.join(" ")
}
