//! The resource that a unit belongs to, stored in the unit's own file in a section that systemd and fleet
//! ignore.
//!
//! ```ini
//! [X-HyperFleet]
//! Adapter=fleet
//! Resource=0199a1b2-…
//! Path=/api/hyperfleet/v1/clusters/…/nodepools/…
//! Workload=1
//! Index=2
//! ```

use hyperfleet_fleet_model::unit::UnitOption;

/// The section that names the owner. Templates cannot contain it.
pub const SECTION: &str = "X-HyperFleet";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    /// The adapter's name in reports.
    pub adapter: String,
    pub resource: String,
    /// Path of the resource in the API.
    pub path: String,
    /// Position of the workload among those of the kind, from 1.
    pub workload: u32,
    /// 1 to the number of replicas.
    pub index: u32,
}

impl Ownership {
    /// Reads the section of a unit file. `None` for units that no adapter has made.
    pub fn of(options: &[UnitOption]) -> Option<Self> {
        let mut found = [None; 5];
        for option in options.iter().filter(|option| option.section == SECTION) {
            if let Some(position) = NAMES.iter().position(|known| *known == option.name) {
                found[position] = Some(option.value.as_str());
            }
        }
        let [adapter, resource, path, workload, index] = found;
        // Requests with the adapter's token use this path.
        let path = path.filter(|path| is_path(path));
        Some(Self {
            adapter: adapter?.to_owned(),
            resource: resource?.to_owned(),
            path: path?.to_owned(),
            workload: workload?.parse().ok()?,
            index: index?.parse().ok()?,
        })
    }

    /// Whether the unit belongs to a resource of an adapter.
    pub fn is_of(&self, adapter: &str, resource: &str) -> bool {
        self.adapter == adapter && self.resource == resource
    }

    /// The section as options of a unit file.
    pub fn options(&self) -> Vec<UnitOption> {
        let values = [
            self.adapter.clone(),
            self.resource.clone(),
            self.path.clone(),
            self.workload.to_string(),
            self.index.to_string(),
        ];
        let pairs = NAMES.iter().zip(values);
        pairs
            .map(|(name, value)| UnitOption::new(SECTION, name, &value))
            .collect()
    }
}

/// Whether a text can be the path of a resource, without other parts of a URL.
fn is_path(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    text.starts_with(PATHS_BASE) && text.chars().all(is_plain) && !text.contains("..")
}

const PATHS_BASE: &str = "/api/hyperfleet/v1/";
const NAMES: [&str; 5] = ["Adapter", "Resource", "Path", "Workload", "Index"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_names_its_owner_and_others_have_none() {
        let owner = Ownership {
            adapter: "fleet".to_owned(),
            resource: "1".to_owned(),
            path: "/api/hyperfleet/v1/clusters/1".to_owned(),
            workload: 1,
            index: 2,
        };
        let mut options = vec![UnitOption::new("Service", "Adapter", "other")];
        options.extend(owner.options());
        assert_eq!(Ownership::of(&options), Some(owner));
        options.pop();
        assert_eq!(Ownership::of(&options), None, "a section that is not whole");
        assert_eq!(Ownership::of(&[]), None);
        for path in [
            ".evil.example/x",
            "@evil.example/",
            "/api/hyperfleet/v1/../x",
            "/api/hyperfleet/v1/x?y",
        ] {
            let owner = Ownership {
                adapter: "fleet".to_owned(),
                resource: "1".to_owned(),
                path: path.to_owned(),
                workload: 1,
                index: 1,
            };
            assert_eq!(Ownership::of(&owner.options()), None, "{path}");
        }
    }
}
