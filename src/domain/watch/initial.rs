//! The list that a watch begins with: which changes its pages show already.

use chrono::{DateTime, Utc};

use super::WatchedChange;
use crate::domain::ResourceId;

/// Which transactions one statement of the database sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleChanges {
    /// Transactions below this number have ended.
    min: i64,
    /// Transactions from this number on had not begun.
    max: i64,
    /// Those between that were open.
    open: Vec<i64>,
}

/// The pages of a list, newest resources first, each as of its own moment. A page shows the resources between its end
/// and that of the page before. The time of creation and the id never change, so that each resource belongs to one page.
#[derive(Debug, Default)]
pub struct InitialPages(Vec<Page>);

#[derive(Debug)]
struct Page {
    /// The last resource of it; unset for the last page, which has everything else.
    end: Option<(DateTime<Utc>, ResourceId)>,
    visible: VisibleChanges,
}

impl VisibleChanges {
    /// Reads a `pg_snapshot`: `min:max:open,open`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let mut number = || parts.next()?.parse().ok();
        let (min, max) = (number()?, number()?);
        let open = parts.next()?.split(',').filter(|open| !open.is_empty());
        let open = open.map(|open| open.parse().ok()).collect::<Option<_>>()?;
        Some(Self { min, max, open })
    }

    fn has(&self, transaction: i64) -> bool {
        transaction < self.min || (transaction < self.max && !self.open.contains(&transaction))
    }
}

impl InitialPages {
    /// Adds the next page, which ends with this resource; unset for the last one.
    pub fn push(&mut self, end: Option<(DateTime<Utc>, ResourceId)>, visible: VisibleChanges) {
        self.0.push(Page { end, visible });
    }

    /// Whether the list shows the resource as it was after the change, or later.
    pub fn show(&self, change: &WatchedChange) -> bool {
        let Some(image) = change.after.as_ref().or(change.before.as_ref()) else {
            return false;
        };
        let key = (image.stored.created_at, image.stored.id);
        let place = self.0.partition_point(|page| page.end > Some(key));
        let page = self.0.get(place);
        page.is_some_and(|page| page.visible.has(change.transaction))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_has_what_had_ended() {
        let snapshot = VisibleChanges::parse("10:14:11,12").unwrap();
        let seen: Vec<_> = (8..16).filter(|n| snapshot.has(*n)).collect();
        assert_eq!(seen, [8, 9, 10, 13]);
        let idle = VisibleChanges::parse("7:7:").unwrap();
        assert!(idle.has(6) && !idle.has(7));
        for text in ["", "7", "7:8", "a:8:", "7:8:x"] {
            assert_eq!(VisibleChanges::parse(text), None, "{text:?}");
        }
    }
}
