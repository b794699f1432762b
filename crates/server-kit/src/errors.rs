//! Collects errors of the start, so that all are reported together.

use anyhow::Error;

/// One text per error, which begins with its setting if it has one.
#[derive(Debug, Default, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ErrorList(pub Vec<String>);

impl ErrorList {
    /// The value of one part, unless it has errors.
    pub fn part<T>(&mut self, made: anyhow::Result<T>) -> Option<T> {
        match made.map_err(Error::downcast) {
            Ok(value) => return Some(value),
            Err(Ok(Self(several))) => self.0.extend(several),
            Err(Err(one)) => self.0.push(format!("{one:#}")),
        }
        None
    }

    /// # Errors
    /// All errors, which [`part`](Self::part) takes one by one.
    pub fn refuse(self) -> anyhow::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(self.into())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn errors_of_a_part_join_those_of_the_list() {
        let part = ErrorList(vec!["a is 1".to_owned(), "b is 2".to_owned()]);
        let mut list = ErrorList::default();
        list.part(part.refuse());
        list.part::<()>(Err(anyhow!("no such file").context("c")));
        assert_eq!(list.part(Ok(3)), Some(3));
        assert_eq!(list.0, ["a is 1", "b is 2", "c: no such file"]);
    }
}
