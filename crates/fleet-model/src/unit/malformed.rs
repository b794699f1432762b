//! Faults of unit files.

/// Largest unit file, in bytes: 32 of the longest lines. JSON may write each byte as six (`\u0000`), and even
/// so a unit stays well below etcd's default limit of a request, 1.5 MiB.
pub const FILE_BYTES_MAX: usize = 64 * 1024;
/// Most options of one unit. A list repeats the section with each of them.
pub const OPTIONS_MAX: usize = 1000;
/// Longest line without its end, in bytes.
pub const LINE_BYTES_MAX: usize = 2047;

/// Faults of a unit file, in the older server's words where it has some.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("unit file is larger than {FILE_BYTES_MAX} bytes")]
    TooLarge,
    #[error("unit file has more than {OPTIONS_MAX} options")]
    TooManyOptions,
    #[error("unit file is not UTF-8")]
    NotUtf8,
    #[error("line too long (max {} bytes)", LINE_BYTES_MAX + 1)]
    LineTooLong,
    #[error("unable to find end of section")]
    OpenSection,
    /// These bytes follow the name of a section.
    #[error("found garbage after section name : [{}]", bytes(.0))]
    Garbage(Vec<u8>),
    #[error("unexpected newline encountered while parsing option name")]
    NewlineInName,
    #[error("EOF")]
    EndInName,
}

fn bytes(garbage: &[u8]) -> String {
    let numbers: Vec<_> = garbage.iter().map(ToString::to_string).collect();
    numbers.join(" ")
}
