//! Options of `[X-Fleet]` that fleet accepts but that have no effect, which clients show as warnings when a unit is
//! submitted.

use super::fleet_section::{FleetSection, Key, is_true};
use super::options::Options;
use crate::shown;

/// Below this likeness a known option is not suggested.
const LIKENESS_MIN: f64 = 0.8;
/// Prefix of the option names before version 0.8, longest first.
const OLD_PREFIXES: [&str; 2] = ["X-Condition", "X-"];

/// Why an option of `[X-Fleet]` has no effect, or another than its author probably expects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionWarning {
    /// In the older fleetctl's words.
    #[error("unrecognized requirement in [X-Fleet] section: {name:?}{}", suggestion(*.meant))]
    Unknown {
        name: String,
        /// The most similar option.
        meant: Option<&'static str>,
    },
    #[error("{option}={value} in [X-Fleet] section is not a boolean: it counts as false")]
    NotBoolean { option: &'static str, value: String },
    #[error(
        "{option}={value} in [X-Fleet] section: {specifier} is not a specifier of fleet (%n, %N, %p, %i), and stays \
         as text"
    )]
    Specifier {
        option: &'static str,
        value: String,
        specifier: String,
    },
    #[error(
        "{option}={value} in [X-Fleet] section: variables are not replaced, and ${{ stays as text"
    )]
    Variable { option: &'static str, value: String },
    #[error(
        "{option}={value} in [X-Fleet] section is one value, which matches nothing because of its blank: for several \
         values, quote each"
    )]
    Blank { option: &'static str, value: String },
}

impl Options {
    /// Warnings about options of `[X-Fleet]` that are valid for the server but have no effect: unknown options,
    /// values that are no booleans, unknown specifiers. Unknown options come first.
    pub fn warnings(&self) -> Vec<OptionWarning> {
        let section = FleetSection::of(self.list());
        let mut warnings: Vec<_> = section.unknown().into_iter().map(unknown).collect();
        for (key, value) in section.known_values() {
            let warning = of_value(key, value);
            if let Some(warning) = warning.filter(|warning| !warnings.contains(warning)) {
                warnings.push(warning);
            }
        }
        warnings
    }
}

fn unknown(name: &str) -> OptionWarning {
    let bare = OLD_PREFIXES.iter().find_map(|old| name.strip_prefix(old));
    let bare = bare.unwrap_or(name).to_lowercase();
    let known = Key::names();
    let scored = known.map(|known| (strsim::jaro_winkler(&bare, &known.to_lowercase()), known));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
    OptionWarning::Unknown {
        name: shown(name),
        meant: best
            .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
            .map(|(_, known)| known),
    }
}

fn suggestion(meant: Option<&str>) -> String {
    meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"))
}

fn of_value(key: Key, value: &str) -> Option<OptionWarning> {
    let option = key.name();
    let shown = || shown(value);
    if key.is_boolean() {
        let is_boolean = is_true(value) || is_false(value);
        return (!is_boolean).then(|| OptionWarning::NotBoolean {
            option,
            value: shown(),
        });
    }
    if value.contains("${") {
        return Some(OptionWarning::Variable {
            option,
            value: shown(),
        });
    }
    if let Some(specifier) = unknown_specifier(value) {
        return Some(OptionWarning::Specifier {
            option,
            value: shown(),
            specifier,
        });
    }
    (key.names_one_thing() && value.contains(char::is_whitespace)).then(|| OptionWarning::Blank {
        option,
        value: shown(),
    })
}

/// The first `%` with the character that follows it, if they are no specifier.
fn unknown_specifier(value: &str) -> Option<String> {
    let mut rest = value;
    loop {
        let (_, after) = rest.split_once('%')?;
        match after.chars().next() {
            Some('n' | 'N' | 'p' | 'i') => rest = &after[1..],
            Some(c) => return Some(format!("%{c}")),
            None => return Some("%".to_owned()),
        }
    }
}

/// The words for false of `systemd.syntax(7)`. An empty value resets an option.
fn is_false(value: &str) -> bool {
    const FALSE: [&str; 7] = ["", "false", "no", "0", "off", "f", "n"];
    FALSE.contains(&value.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(lines: &str) -> Vec<String> {
        let file =
            format!("[Service]\nExecStart=/bin/echo %H ${{X}}\nBogus=1\n[X-Fleet]\n{lines}\n");
        let options = Options::parse(file.as_bytes()).expect(lines);
        let warnings = options.warnings().into_iter();
        warnings.map(|warning| warning.to_string()).collect()
    }

    #[test]
    fn unknown_options_name_the_most_similar_one() {
        for (name, meant) in [
            ("Machineof", "; did you mean MachineOf?"),
            ("MachineId", "; did you mean MachineID?"),
            ("MachineBootID", "; did you mean MachineID?"),
            ("MachineMetdata", "; did you mean MachineMetadata?"),
            ("X-MachineMetadata", "; did you mean MachineMetadata?"),
            ("X-ConditionConflicts", "; did you mean Conflicts?"),
            ("Conflict", "; did you mean Conflicts?"),
            ("Replace", "; did you mean Replaces?"),
            ("X-Global", "; did you mean Global?"),
            ("singelton", "; did you mean Singleton?"),
            ("Bogus", ""),
            ("X-Peers", ""),
        ] {
            let expected =
                format!("unrecognized requirement in [X-Fleet] section: {name:?}{meant}");
            assert_eq!(warnings(&format!("{name}=x\n{name}=y")), [expected]);
        }
    }

    #[test]
    fn values_without_effect_are_warned_about() {
        for (line, warning) in [
            (
                "Global=y",
                "Global=y in [X-Fleet] section is not a boolean: it counts as false",
            ),
            (
                "Singleton=ture",
                "Singleton=ture in [X-Fleet] section is not a boolean: it counts as false",
            ),
            (
                "MachineOf=hub${HUBID}@%i.service",
                "MachineOf=hub${HUBID}@%i.service in [X-Fleet] section: variables are not replaced, and ${ stays as text",
            ),
            (
                "MachineOf=%p-data@%I.service",
                "MachineOf=%p-data@%I.service in [X-Fleet] section: %I is not a specifier of fleet (%n, %N, %p, %i), and stays as text",
            ),
            (
                "MachineMetadata=\"a=b\" \"host=%H\"",
                "MachineMetadata=host=%H in [X-Fleet] section: %H is not a specifier of fleet (%n, %N, %p, %i), and stays as text",
            ),
            (
                "X-Conflicts=100%% %p@*.service",
                "Conflicts=100%% %p@*.service in [X-Fleet] section: %% is not a specifier of fleet (%n, %N, %p, %i), and stays as text",
            ),
            (
                "MachineID=%p%",
                "MachineID=%p% in [X-Fleet] section: % is not a specifier of fleet (%n, %N, %p, %i), and stays as text",
            ),
            (
                "MachineOf=a.service b.service",
                "MachineOf=a.service b.service in [X-Fleet] section is one value, which matches nothing because of its blank: for several values, quote each",
            ),
        ] {
            assert_eq!(warnings(line), [warning]);
        }
    }

    #[test]
    fn values_with_effect_are_not_warned_about() {
        for lines in [
            "",
            "MachineOf=\"a.service\" \"%p@%i.service\"\nMachineMetadata=zone=east wing",
            "Conflicts=a.service b@*.service",
            "X-ConditionMachineID=%n%N",
            "Global=true\nGlobal=T\nGlobal=on\nGlobal=1\nGlobal=Yes",
            "Singleton=false\nSingleton=Off\nSingleton=0\nSingleton=n\nSingleton=",
        ] {
            assert_eq!(warnings(lines), Vec::<String>::new(), "{lines}");
        }
    }

    #[test]
    fn warnings_repeat_no_more_than_the_beginning_of_a_value() {
        let warnings = warnings(&format!("Global={}", "x".repeat(1500)));
        assert!(warnings[0].len() < 200, "{warnings:?}");
    }
}
