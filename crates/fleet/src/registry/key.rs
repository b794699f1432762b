//! The keys of the registry. Their values are in [`record`](super::record), and both are described in
//! `docs/internals/keys.md`.

use std::fmt;

use crate::keys::Range;

/// Longest part of a key, in bytes.
pub const PART_BYTES_MAX: usize = 256;
/// Separates a unit's name from the machine's id in the key of a state. It sorts before every character of a
/// name and `/`, so states are in the order of their units' names.
const BEFORE_MACHINE: char = ',';

/// A parsed key below the prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// `unit/<name>`: the unit's file.
    Unit(String),
    /// `want/<name>`: its desired state.
    Desired(String),
    /// `place/<name>`: its machine.
    Placement(String),
    /// `run/<machine>/<name>`: an order to one agent.
    Run(RunKey),
    /// `global/<name>`: an order to every matching agent.
    Global(String),
    /// `machine/<id>`: a registered machine.
    Machine(String),
    /// `label/<id>/<key>`: metadata that users set.
    Label(LabelKey),
    /// `cordon/<id>`: no further units are placed on the machine.
    Cordon(String),
    /// `drain/<id>`: the machine's units must leave.
    Drain(String),
    /// `move/<name>`: an order to move a unit.
    Move(String),
    /// `state/<name>,<machine>`: what a machine reports of a unit.
    State(StateKey),
    /// `report/<id>`: the machine's last report. It outlives the machine's lease.
    LastReport(String),
    /// `engine/leader`: the leading engine.
    Leader,
    /// `engine/version`: the newest engine that ever led.
    EngineVersion,
    /// `order/replaces`: the last unit that was given `Replaces`.
    ReplacesOrder,
    /// `order/resume`: the order to resume after the registry went back in time.
    Resume,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey {
    pub machine: String,
    pub unit: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelKey {
    pub machine: String,
    /// Name of the metadata.
    pub key: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateKey {
    pub unit: String,
    pub machine: String,
}

impl StateKey {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (unit, machine) = text.split_once(BEFORE_MACHINE)?;
        let (unit, machine) = (unit.to_owned(), machine.to_owned());
        Some(Self { unit, machine })
    }
}

impl fmt::Display for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{BEFORE_MACHINE}{}", self.unit, self.machine)
    }
}

impl Key {
    /// The keys that make up a unit: all that are named after it alone.
    pub(super) fn own(unit: &str) -> [Self; 4] {
        [Self::Unit, Self::Desired, Self::Placement, Self::Global].map(|key| key(unit.to_owned()))
    }

    /// The unit that the key is about, if any.
    pub(crate) fn unit(&self) -> Option<&str> {
        match self {
            Self::Unit(unit)
            | Self::Desired(unit)
            | Self::Placement(unit)
            | Self::Global(unit)
            | Self::Move(unit)
            | Self::Run(RunKey { unit, .. })
            | Self::State(StateKey { unit, .. }) => Some(unit),
            Self::Machine(_)
            | Self::LastReport(_)
            | Self::Label(_)
            | Self::Cordon(_)
            | Self::Drain(_)
            | Self::Leader
            | Self::EngineVersion
            | Self::ReplacesOrder
            | Self::Resume => None,
        }
    }

    pub(crate) fn run(machine: &str, unit: &str) -> Self {
        Self::Run(RunKey {
            machine: machine.to_owned(),
            unit: unit.to_owned(),
        })
    }
}

/// The family of keys that a name belongs to, for ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Unit,
    Desired,
    Placement,
    Run,
    Global,
    Machine,
    Label,
    State,
    Order,
}

impl Family {
    const fn folder(self) -> &'static str {
        match self {
            Self::Unit => "unit/",
            Self::Desired => "want/",
            Self::Placement => "place/",
            Self::Run => "run/",
            Self::Global => "global/",
            Self::Machine => "machine/",
            Self::Label => "label/",
            Self::State => "state/",
            Self::Order => "order/",
        }
    }
}

/// The prefix of all keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

impl Default for Prefix {
    fn default() -> Self {
        Self("/fleet/v3/".to_owned())
    }
}

/// A text that cannot be part of a key, or is too large to store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unusable {what}: {rule}")]
pub struct UnusablePart {
    pub what: &'static str,
    /// The rule that it breaks.
    pub rule: String,
}

impl Prefix {
    pub const BYTES_MAX: usize = 256;

    /// Parses a prefix, and adds a slash at its end if it has none.
    ///
    /// # Errors
    /// [`UnusablePart`] if it is empty, too long, or not plain ASCII.
    pub fn new(text: &str) -> Result<Self, UnusablePart> {
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        let text = text.trim_end_matches('/');
        if text.is_empty() || text.len() >= Self::BYTES_MAX || !plain {
            return Err(UnusablePart {
                what: "key prefix",
                rule: format!(
                    "expect printable ASCII, less than {} bytes",
                    Self::BYTES_MAX
                ),
            });
        }
        Ok(Self(format!("{text}/")))
    }

    /// All keys below the prefix.
    pub(super) fn everything(&self) -> Range {
        Range::below(&self.0)
    }

    /// Keys of earlier versions, which stored below `why/` why units were on no machine.
    pub(super) fn reasons(&self) -> Range {
        Range::below(&format!("{}why/", self.0))
    }

    pub(super) fn family(&self, family: Family) -> Range {
        Range::below(&format!("{}{}", self.0, family.folder()))
    }

    /// The `run/` or `label/` keys of one machine, or the states of one unit.
    pub(super) fn part(&self, family: Family, part: &str) -> Range {
        let end = if family == Family::State {
            BEFORE_MACHINE
        } else {
            '/'
        };
        Range::below(&format!("{}{}{part}{end}", self.0, family.folder()))
    }

    /// The key's name in the store.
    pub(super) fn name(&self, key: &Key) -> String {
        let prefix = &self.0;
        match key {
            Key::Unit(name) => format!("{prefix}unit/{name}"),
            Key::Desired(name) => format!("{prefix}want/{name}"),
            Key::Placement(name) => format!("{prefix}place/{name}"),
            Key::Run(RunKey { machine, unit }) => format!("{prefix}run/{machine}/{unit}"),
            Key::Global(name) => format!("{prefix}global/{name}"),
            Key::Machine(id) => format!("{prefix}machine/{id}"),
            Key::Label(LabelKey { machine, key }) => format!("{prefix}label/{machine}/{key}"),
            Key::Cordon(id) => format!("{prefix}cordon/{id}"),
            Key::Drain(id) => format!("{prefix}drain/{id}"),
            Key::Move(name) => format!("{prefix}move/{name}"),
            Key::State(key) => format!("{prefix}state/{key}"),
            Key::LastReport(id) => format!("{prefix}report/{id}"),
            Key::Leader => format!("{prefix}engine/leader"),
            Key::EngineVersion => format!("{prefix}engine/version"),
            Key::ReplacesOrder => format!("{prefix}order/replaces"),
            Key::Resume => format!("{prefix}order/resume"),
        }
    }

    /// Parses a name of the store; `None` for unknown keys.
    pub(super) fn read(&self, name: &[u8]) -> Option<Key> {
        let rest = std::str::from_utf8(name).ok()?.strip_prefix(&self.0)?;
        let (folder, rest) = rest.split_once('/')?;
        let one = |part: &str| is_part(part).then(|| part.to_owned());
        let two = |separator| {
            let (first, second) = rest.split_once(separator)?;
            Some((one(first)?, one(second)?))
        };
        Some(match folder {
            "unit" => Key::Unit(one(rest)?),
            "want" => Key::Desired(one(rest)?),
            "place" => Key::Placement(one(rest)?),
            "global" => Key::Global(one(rest)?),
            "machine" => Key::Machine(one(rest)?),
            "report" => Key::LastReport(one(rest)?),
            "move" => Key::Move(one(rest)?),
            "cordon" => Key::Cordon(one(rest)?),
            "drain" => Key::Drain(one(rest)?),
            "run" => {
                let (machine, unit) = two('/')?;
                Key::Run(RunKey { machine, unit })
            }
            "label" => {
                let (machine, key) = two('/')?;
                Key::Label(LabelKey { machine, key })
            }
            "state" => {
                let (unit, machine) = two(BEFORE_MACHINE)?;
                Key::State(StateKey { unit, machine })
            }
            "engine" if rest == "leader" => Key::Leader,
            "engine" if rest == "version" => Key::EngineVersion,
            "order" if rest == "replaces" => Key::ReplacesOrder,
            "order" if rest == "resume" => Key::Resume,
            _ => return None,
        })
    }
}

/// Whether a text can be part of a key. The domain has stricter rules. No character sorts below a dash, the
/// lowest character of names, so names sort the same with what follows them in a key.
pub fn is_part(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_graphic() && byte >= b'-' && byte != b'/';
    !text.is_empty() && text.len() <= PART_BYTES_MAX && text.bytes().all(allowed)
}

/// Refuses a text that would make a different key.
pub(super) fn check_part(what: &'static str, text: &str) -> Result<(), UnusablePart> {
    if is_part(text) {
        Ok(())
    } else {
        let allowed = r"A-Z a-z 0-9 and - . : ; < = > ? @ [ \ ] ^ _ ` { | } ~";
        let rule = format!("expect 1 to {PART_BYTES_MAX} characters of {allowed}");
        Err(UnusablePart { what, rule })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn keys() -> Vec<Key> {
        let (unit, machine) = ("a@1.service".to_owned(), "m1".to_owned());
        vec![
            Key::Unit(unit.clone()),
            Key::Desired(unit.clone()),
            Key::Placement(unit.clone()),
            Key::run(&machine, &unit),
            Key::Global(unit.clone()),
            Key::Machine(machine.clone()),
            Key::Label(LabelKey {
                machine: machine.clone(),
                key: "zone".to_owned(),
            }),
            Key::Cordon(machine.clone()),
            Key::Drain(machine.clone()),
            Key::LastReport(machine.clone()),
            Key::State(StateKey {
                unit: unit.clone(),
                machine,
            }),
            Key::Move(unit),
            Key::Leader,
            Key::EngineVersion,
            Key::ReplacesOrder,
            Key::Resume,
        ]
    }

    #[test]
    fn a_key_that_is_written_is_read_as_the_same() {
        for prefix in [Prefix::default(), Prefix::new("/my/fleet").unwrap()] {
            for key in keys() {
                assert_eq!(prefix.read(prefix.name(&key).as_bytes()), Some(key));
            }
        }
    }

    #[test]
    fn what_is_not_ours_is_no_key() {
        let prefix = Prefix::default();
        for name in [
            "/fleet/v3/",
            "/fleet/v3/unit",
            "/fleet/v3/unit/",
            "/fleet/v3/unit/a/b",
            "/fleet/v4/unit/a",
            "/fleet/v3/run/m1",
            "/fleet/v3/run/m1/",
            "/fleet/v3/state/a.service",
            "/fleet/v3/engine/lead",
            "/fleet/v3/unit/a b",
            "/fleet/v3/unit/a,b",
            "/fleet/v3/zzz/a",
            "",
        ] {
            assert_eq!(prefix.read(name.as_bytes()), None, "{name}");
        }
        assert_eq!(prefix.read(b"/fleet/v3/unit/\xff"), None);
    }

    #[test]
    fn what_is_refused_says_what_may_stand_there() {
        let text = check_part("machine id", "m 1").unwrap_err().to_string();
        let (_, allowed) = text.split_once("characters of A-Z a-z 0-9 and ").unwrap();
        let named: BTreeSet<char> = allowed.chars().filter(|c| *c != ' ').collect();
        let taken = (0..=255).map(char::from);
        let taken = taken.filter(|c| is_part(&c.to_string()) && !c.is_ascii_alphanumeric());
        assert_eq!(named, taken.collect(), "{text}");
        assert!(
            text.starts_with("unusable machine id: expect 1 to 256 "),
            "{text}"
        );
    }

    #[test]
    fn states_sort_by_unit_then_machine() {
        let prefix = Prefix::default();
        let mut names = Vec::new();
        for unit in [
            "a-b.service",
            "a.service",
            "a.service-x.service",
            "a@1.service",
        ] {
            for machine in ["m1", "m2"] {
                names.push(prefix.name(&Key::State(StateKey {
                    unit: unit.to_owned(),
                    machine: machine.to_owned(),
                })));
            }
        }
        assert!(names.is_sorted(), "{names:?}");
    }

    #[test]
    fn a_prefix_is_plain_and_ends_in_one_slash() {
        assert_eq!(Prefix::new("/a//").unwrap(), Prefix::new("/a").unwrap());
        for text in ["", "/", "/a b", "/ä", &"a".repeat(256)] {
            assert!(Prefix::new(text).is_err(), "{text}");
        }
    }
}
