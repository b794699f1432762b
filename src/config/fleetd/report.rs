//! The table of docs/fleet-running.md.

use super::keys::{KEYS, Key, Status};

/// Every key as Markdown: those of this version, then those of older files.
#[must_use]
pub fn reference() -> String {
    let mut text =
        "\n| key | variable | default | what it is |\n| --- | --- | --- | --- |\n".to_owned();
    let (mut agent, mut gone) = (Vec::new(), Vec::new());
    for key in KEYS {
        match key.status {
            Status::Used => text.push_str(&row(key, "")),
            Status::Reloaded => text.push_str(&row(key, "; taken by a reload")),
            Status::Agent => agent.push(format!("`{}`", key.name)),
            Status::Gone(instead) => gone.push(format!("| `{}` | {instead} |\n", key.name)),
        }
    }
    let (agent, gone) = (agent.join(", "), gone.concat());
    text + &format!(
        "\nChecked, and without effect because this version runs no agent: {agent}.\n\n\
         Without a meaning any more:\n\n| key | because |\n| --- | --- |\n{gone}"
    )
}

fn row(key: &Key, more: &str) -> String {
    let default = match key.default {
        "" => String::new(),
        default => format!("`{default}`"),
    };
    let (name, variable, help) = (key.name, key.variable(), key.help);
    format!("| `{name}` | `{variable}` | {default} | {help}{more} |\n")
}
