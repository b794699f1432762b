use std::fmt;
use std::path::PathBuf;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// No source gives it.
    Default,
    /// A settings file.
    File(PathBuf),
    /// A variable.
    Variable(String),
    /// The file that a variable names.
    FileOf {
        /// The variable.
        variable: String,
        /// The file.
        file: PathBuf,
    },
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Variable(variable) => f.write_str(variable),
            Self::FileOf { variable, file } => write!(f, "{variable}: {}", file.display()),
            Self::Flag(flag) => write!(f, "--{flag}"),
        }
    }
}
