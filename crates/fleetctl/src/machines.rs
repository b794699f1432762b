//! Machines by name, and their short forms for tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hyperfleet_fleet_model::unit::MachineIdentity;

use hyperfleet_fleet_model::wire::MachineView;

use crate::output::{counted, notice};

/// Machines that a warning names at most.
const NAMED_MAX: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Short,
    Full,
}

/// The machines of the cluster, by ID.
#[derive(Debug, Clone, Default)]
pub(crate) struct Machines(BTreeMap<String, MachineView>);

/// A name that matches no machine, or several.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnknownMachine {
    #[error("Could not find machine {0}; fleetctl list-machines --full lists them")]
    None(String),
    #[error("Machine {name} is ambiguous: it fits {}", .ids.join(", "))]
    Several { name: String, ids: Vec<String> },
}

impl Machines {
    pub(crate) fn new(machines: impl IntoIterator<Item = MachineView>) -> Self {
        Self(machines.into_iter().map(|m| (m.id.clone(), m)).collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &MachineView> {
        self.0.values()
    }

    pub(crate) fn get(&self, id: &str) -> Option<&MachineView> {
        self.0.get(id)
    }

    /// A machine as tables show it: `0f1e2d3c.../192.0.2.1`.
    pub(crate) fn legend(&self, id: &str, detail: Detail) -> String {
        if id.is_empty() {
            return "-".to_owned();
        }
        let legend = id_legend(id, detail);
        match self.get(id).map(|machine| machine.ip.as_str()) {
            None | Some("") => legend,
            Some(ip) => format!("{legend}/{ip}"),
        }
    }

    /// The machine with this ID, or the only one with this prefix.
    ///
    /// # Errors
    /// None matches, or several do.
    pub(crate) fn find(&self, name: &str) -> Result<&MachineView, UnknownMachine> {
        // Tables append dots to IDs.
        let start = name.strip_suffix("...").unwrap_or(name);
        if let Some(machine) = self.get(start) {
            return Ok(machine);
        }
        let fitting = self.iter().filter(|machine| machine.id.starts_with(start));
        let fitting: Vec<_> = fitting.filter(|_| !start.is_empty()).collect();
        match fitting[..] {
            [] => Err(UnknownMachine::None(name.to_owned())),
            [machine] => Ok(machine),
            _ => Err(UnknownMachine::Several {
                name: name.to_owned(),
                ids: fitting.iter().map(|machine| machine.id.clone()).collect(),
            }),
        }
    }
}

/// A machine ID as tables show it: `0f1e2d3c...`
pub(crate) fn id_legend(id: &str, detail: Detail) -> String {
    match detail {
        Detail::Full => id.to_owned(),
        Detail::Short => {
            let end = id.char_indices().nth(MachineIdentity::SHORT);
            format!("{}...", &id[..end.map_or(id.len(), |(at, _)| at)])
        }
    }
}

/// Whether units are started on a machine, in one word.
pub(crate) fn state(machine: &MachineView) -> &'static str {
    match (machine.halted, machine.draining, machine.cordoned) {
        (true, ..) => "halted",
        (false, true, _) => "draining",
        (false, false, true) => "cordoned",
        (false, false, false) => "ready",
    }
}

/// What halted machines mean; `None` without any.
pub(crate) fn halted<'m>(machines: impl IntoIterator<Item = &'m MachineView>) -> Option<String> {
    let machines = machines.into_iter().filter(|machine| machine.halted);
    let ids: Vec<_> = machines
        .map(|machine| id_legend(&machine.id, Detail::Short))
        .collect();
    if ids.is_empty() {
        return None;
    }
    let mut named = ids[..ids.len().min(NAMED_MAX)].join(", ");
    if ids.len() > NAMED_MAX {
        let _ = write!(named, " and {} more", ids.len() - NAMED_MAX);
    }
    let machines = counted(ids.len(), "machine");
    Some(format!(
        "{machines} halted ({named}) and will start and stop no unit, because etcd went back in time or is another one"
    ))
}

/// What to do about halted machines.
pub(crate) const HALTED_HINT: &str =
    "check that etcd has the right units, then run: fleetctl resume";

/// Prints a warning on standard error if machines are halted.
pub(crate) fn warn_of_halted<'m>(machines: impl IntoIterator<Item = &'m MachineView>) {
    if let Some(text) = halted(machines) {
        notice(&format!("Warning: {text}; {HALTED_HINT}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machines(machines: &[(&str, &str)]) -> Machines {
        Machines::new(machines.iter().map(|(id, ip)| MachineView {
            id: (*id).to_owned(),
            ip: (*ip).to_owned(),
            ..MachineView::default()
        }))
    }

    #[test]
    fn legends_are_short_unless_they_are_full() {
        let machines = machines(&[("0f1e2d3c4b5a", "192.0.2.1"), ("abc", "")]);
        for (id, detail, expected) in [
            ("0f1e2d3c4b5a", Detail::Short, "0f1e2d3c.../192.0.2.1"),
            ("0f1e2d3c4b5a", Detail::Full, "0f1e2d3c4b5a/192.0.2.1"),
            ("abc", Detail::Short, "abc..."),
            ("0123456789", Detail::Short, "01234567..."),
            ("", Detail::Full, "-"),
        ] {
            assert_eq!(machines.legend(id, detail), expected);
        }
    }

    #[test]
    fn a_warning_names_a_few_halted_machines() {
        let text = |count: usize| {
            let machine = |number| MachineView {
                id: format!("{number:08}-machine"),
                halted: number < count,
                ..MachineView::default()
            };
            halted(&(0..8).map(machine).collect::<Vec<_>>())
        };
        assert_eq!(text(0), None);
        let one = text(1).unwrap();
        assert!(
            one.starts_with("1 machine halted (00000000...) and"),
            "{one}"
        );
        let all = text(8).unwrap();
        assert!(all.contains("00000004... and 3 more)"), "{all}");
    }

    #[test]
    fn machines_are_found_by_unique_prefixes() {
        let machines = machines(&[("aa1", ""), ("aa2", ""), ("aa", "")]);
        let find = |name| machines.find(name).map(|machine| machine.id.as_str());
        assert_eq!(find("aa1"), Ok("aa1"));
        assert_eq!(find("aa"), Ok("aa"));
        assert_eq!(find("aa2..."), Ok("aa2"));
        let several = find("a").unwrap_err().to_string();
        assert_eq!(several, "Machine a is ambiguous: it fits aa, aa1, aa2");
        assert!(matches!(find("b"), Err(UnknownMachine::None(_))));
        assert!(matches!(find(""), Err(UnknownMachine::None(_))));
    }
}
