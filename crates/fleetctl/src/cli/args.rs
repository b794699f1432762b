//! Flags and arguments of single commands.

use clap::{Args, ValueEnum};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Table,
    Json,
    Yaml,
}

/// The format of a command's output.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct OutputArgs {
    /// Output format
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORMAT",
        default_value = "table"
    )]
    pub format: Format,
}

/// How long a command waits for units.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct BlockArgs {
    /// Return immediately, without waiting for the units
    #[arg(long)]
    pub no_block: bool,
    /// Wait for at most this many attempts of 2 s each; 0 waits until the units are ready, or the server says why they cannot be
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub block_attempts: u32,
}

/// Names of units.
#[derive(Debug, Clone, Args)]
pub(crate) struct UnitListArgs {
    /// Unit names or paths of unit files; .service is appended to a name without a unit type
    #[arg(value_name = "UNIT")]
    pub units: Vec<String>,
}

/// Flags of commands that store unit files.
#[derive(Debug, Clone, Args)]
pub(crate) struct SubmitArgs {
    /// Replace units whose files differ from those that are stored
    #[arg(long)]
    pub replace: bool,
    /// Removed: signed units are not supported.
    #[arg(long, hide = true)]
    pub sign: bool,
    #[command(flatten)]
    pub names: UnitListArgs,
}

/// Flags of `load` and `start`.
#[derive(Debug, Clone, Args)]
pub(crate) struct EnsureArgs {
    #[command(flatten)]
    pub block: BlockArgs,
    #[command(flatten)]
    pub submit: SubmitArgs,
}

/// Flags of `stop`, `unload` and `destroy`.
#[derive(Debug, Clone, Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    pub block: BlockArgs,
    #[command(flatten)]
    pub names: UnitListArgs,
}

/// Flags of `restart`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RestartArgs {
    /// Wait for at most this many attempts of 2 s each; 0 waits until the units are ready, or the server says why they cannot be
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub block_attempts: u32,
    #[command(flatten)]
    pub names: UnitListArgs,
}

/// Flags of `cat`.
#[derive(Debug, Clone, Args)]
pub(crate) struct CatArgs {
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub names: UnitListArgs,
}

/// Flags of `explain`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub names: UnitListArgs,
}

/// Flags of `status`.
#[derive(Debug, Clone, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub ssh: SshPathArgs,
    #[command(flatten)]
    pub names: UnitListArgs,
}

/// Whether and how a command goes through ssh.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct SshPathArgs {
    /// Run the command over ssh instead of asking the API
    #[arg(long)]
    pub ssh: bool,
    /// Port of ssh on the machines
    #[arg(long, value_name = "PORT", default_value_t = 22)]
    pub ssh_port: u16,
}

/// How entries of a journal are printed, as by `journalctl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JournalFormat {
    Short,
    Cat,
    Json,
}

impl JournalFormat {
    /// Its name for `journalctl`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Short => "short",
            Self::Cat => "cat",
            Self::Json => "json",
        }
    }
}

/// Flags of `journal`.
#[derive(Debug, Clone, Args)]
pub(crate) struct JournalArgs {
    /// Number of recent lines
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub lines: u32,
    /// Keep printing new lines
    #[arg(long, short = 'f', alias = "f")]
    pub follow: bool,
    /// Output format
    #[arg(long, short = 'o', value_name = "FORMAT", default_value = "short")]
    pub output: JournalFormat,
    /// Run journalctl with sudo, over ssh
    #[arg(long)]
    pub sudo: bool,
    /// Machine to ask, for a global unit
    #[arg(long, value_name = "ID")]
    pub machine: Option<String>,
    #[command(flatten)]
    pub ssh: SshPathArgs,
    #[command(flatten)]
    pub names: UnitListArgs,
}

/// Flags of `ssh`.
#[derive(Debug, Clone, Args)]
pub(crate) struct SshArgs {
    /// Machine to connect to
    #[arg(long, value_name = "ID", conflicts_with = "unit")]
    pub machine: Option<String>,
    /// Unit whose machine to connect to
    #[arg(long, value_name = "UNIT")]
    pub unit: Option<String>,
    /// Forward the local ssh agent
    #[arg(long, short = 'A', alias = "A")]
    pub forward_agent: bool,
    /// Port of ssh on the machine
    #[arg(long, value_name = "PORT", default_value_t = 22)]
    pub ssh_port: u16,
    /// Machine or unit, unless a flag names one; then the command to run
    #[arg(value_name = "[NAME] COMMAND")]
    pub words: Vec<String>,
}

/// Flags of the lists.
#[derive(Debug, Clone, Args)]
pub(crate) struct ListArgs {
    /// Print whole machine IDs and hashes
    #[arg(long, short = 'l', alias = "l")]
    pub full: bool,
    /// Leave out the heading
    #[arg(long)]
    pub no_legend: bool,
    /// Comma-separated columns; an unknown one lists those there are
    #[arg(long, value_name = "FIELDS")]
    pub fields: Option<String>,
    /// Print the list again whenever it changes
    #[arg(long, short = 'w')]
    pub watch: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What `verify` was called with.
#[derive(Debug, Clone, Args)]
pub(crate) struct VerifyArgs {
    /// Ignored.
    #[arg(value_name = "UNIT")]
    pub units: Vec<String>,
}

/// The shell to complete for.
#[derive(Debug, Clone, Args)]
pub(crate) struct CompletionArgs {
    /// Shell to print a script for
    #[arg(value_name = "SHELL", required = true)]
    pub shell: clap_complete::Shell,
}
