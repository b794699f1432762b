//! Machines, and what is said of them while they run.

use std::collections::BTreeMap;

use super::view::machine_view;
use super::{Error, Fleet, MachineView, MetadataChange, Page, parse_token};
use crate::keys::KeyStore;
use crate::registry::Registry;

impl<S: KeyStore> Fleet<S> {
    /// Machines that are there, by id. All pages of a list are of one moment.
    ///
    /// # Errors
    /// [`Error::Token`]; [`Error::Stale`] if the moment is too long ago.
    pub async fn list_machines(&self, token: Option<&str>) -> Result<Page<MachineView>, Error> {
        let after = parse_token(token)?;
        let (after, limit) = (after.as_ref(), self.page_size);
        let list = self.mirrored(after, |picture| picture.known.list_machines(after, limit));
        let page = match list.await? {
            Some(page) => page,
            None => self.registry.list_machines(after, limit).await?,
        };
        Ok(page.map(machine_view))
    }

    /// Changes metadata of machines. Of two changes of the same, the later one counts.
    ///
    /// # Guarantees
    /// Nothing is changed if one of the changes cannot be made. For each machine all is changed at once, or
    /// nothing; one machine after the other, by id.
    ///
    /// # Errors
    /// [`Error::Invalid`] for names, values or numbers beyond the limits; [`Error::Foreign`].
    pub async fn set_metadata(&self, changes: &[MetadataChange]) -> Result<(), Error> {
        let mut machines: BTreeMap<&str, BTreeMap<String, Option<String>>> = BTreeMap::new();
        for change in changes {
            let labels = machines.entry(&change.machine).or_default();
            labels.insert(change.key.clone(), change.value.clone());
        }
        for (machine, labels) in &machines {
            Registry::<S>::check_labels(machine, labels)?;
        }
        for (machine, labels) in &machines {
            if let Some(revision) = self.registry.set_labels(machine, labels).await? {
                self.mirror.wrote(revision);
            }
        }
        Ok(())
    }

    /// Tells agents to go on with what stands in the registry, although it went back in time.
    ///
    /// # Errors
    /// Those of the registry.
    pub async fn resume(&self) -> Result<(), Error> {
        let revision = self.registry.resume().await?;
        self.mirror.wrote(revision);
        tracing::warn!(revision, "agents that have halted are told to go on");
        Ok(())
    }
}
