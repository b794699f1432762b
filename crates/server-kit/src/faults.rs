//! Collects faults of the start, so that all are reported at once.

/// One text per fault.
#[derive(Debug, Default)]
pub struct Faults(pub Vec<String>);

impl Faults {
    /// The value of one part, unless it has a fault.
    pub fn part<T>(&mut self, made: anyhow::Result<T>) -> Option<T> {
        made.map_err(|fault| self.0.push(format!("{fault:#}"))).ok()
    }

    /// # Errors
    /// All faults, one per line.
    pub fn refuse(self) -> anyhow::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(anyhow::anyhow!("{}", self.0.join("\n")))
    }

    /// Like [`part`](Self::part), but skipped if the settings it is made from have faults, which would cause
    /// further ones.
    pub fn part_if<T>(
        &mut self,
        is_known: bool,
        make: impl FnOnce() -> anyhow::Result<T>,
    ) -> Option<T> {
        is_known.then(|| self.part(make())).flatten()
    }
}
