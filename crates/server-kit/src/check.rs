//! The output of `config check`.

use anyhow::Context as _;

use crate::ending::Misuse;
use crate::program::{print, print_to_stderr};
use crate::settings::{self, CheckOptions, OutputFormat};

/// Prints settings with their values and origins, and notes on them and on the plan made from them.
///
/// # Errors
/// The settings or the plan have errors.
pub fn print_check<S>(
    loaded: &settings::Loaded<S>,
    of_plan: anyhow::Result<Vec<String>>,
    options: CheckOptions,
) -> anyhow::Result<()> {
    let mut effective = loaded.effective();
    effective.retain(|setting| !(options.changed && setting.is_default));
    print(&match options.output {
        OutputFormat::Text => settings::as_table(&effective),
        OutputFormat::Json => serde_json::to_string_pretty(&settings::as_json(&effective))? + "\n",
    });
    let of_plan_or_none = of_plan.as_ref().map_or(&[][..], |notes| notes);
    for note in loaded.notes.iter().chain(of_plan_or_none) {
        print_to_stderr(&format!("note: {note}"));
    }
    of_plan.map(drop).context(Misuse)
}
