//! Everything that is wrong with how a program is to be started, so that all of it is said at once.

/// The faults found so far, a text each.
#[derive(Debug, Default)]
pub struct Faults(pub Vec<String>);

impl Faults {
    /// One part of the start, unless it has a fault.
    pub fn part<T>(&mut self, made: anyhow::Result<T>) -> Option<T> {
        made.map_err(|fault| self.0.push(format!("{fault:#}"))).ok()
    }

    /// # Errors
    ///
    /// All of them, a line each.
    pub fn refuse(self) -> anyhow::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(anyhow::anyhow!("{}", self.0.join("\n")))
    }

    /// One part, made from settings. Where these have faults of their own, nothing is made of them: its
    /// faults would only follow from those.
    pub fn part_if<T>(
        &mut self,
        is_known: bool,
        make: impl FnOnce() -> anyhow::Result<T>,
    ) -> Option<T> {
        is_known.then(|| self.part(make())).flatten()
    }
}
