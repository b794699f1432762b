//! Earlier states of a resource, and what happened between them (`docs/decisions/0087-changes-are-states.md`).
//!
//! Storage has the state after each change. The rules here decide which state answers a question, and what the events between
//! states are.

mod difference;
mod generations;
mod timeline;

use chrono::{DateTime, Utc};

use super::StoredResource;

pub use generations::{Generation, GenerationAuthor, RecordedGeneration, generations};
pub use timeline::{
    REMOVAL_ENTRIES_MAX, RecordedAction, RecordedChange, Timeline, TimelineEvent,
    TimelineEventKind, Transition,
};

/// Which earlier state of a resource a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PastMoment {
    /// The state at this time.
    At(DateTime<Utc>),
    /// The last state with this generation.
    Generation(i32),
}

/// What is stored of a resource about one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastRecord {
    /// The state after the last change up to the moment; unset if no such change is stored.
    pub state: Option<StoredResource>,
    /// Whether that change is the removal of the resource.
    pub is_removal: bool,
    /// Whether its first change is stored, and so all of them.
    pub is_complete: bool,
    /// Its present generation, or its last one.
    pub generation: i32,
    /// The time of its first stored change.
    pub first_at: DateTime<Utc>,
    /// The time from which on all changes are stored; unset if all are.
    pub stored_since: Option<DateTime<Utc>>,
}

/// Why there is no state to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastError {
    /// The resource did not exist at that time.
    Absent,
    /// The time is before the stored changes.
    TimeNotStored { since: DateTime<Utc> },
    /// The resource has never had the generation.
    NoSuchGeneration { latest: i32 },
    /// The changes that would show the generation are not stored.
    GenerationNotStored,
}

impl PastRecord {
    /// The state that answers the question.
    ///
    /// # Errors
    ///
    /// There is none, or it is no longer stored.
    pub fn resolve(self, moment: PastMoment) -> Result<StoredResource, PastError> {
        match moment {
            PastMoment::At(at) => self.at(at),
            PastMoment::Generation(generation) => self.of_generation(generation),
        }
    }

    fn at(self, at: DateTime<Utc>) -> Result<StoredResource, PastError> {
        // If the history is complete, the resource did not exist yet, whatever is stored of other resources.
        if let Some(since) = first_time(at, self.stored_since).filter(|_| !self.is_complete) {
            return Err(PastError::TimeNotStored { since });
        }
        match self.state {
            Some(state) if !self.is_removal => Ok(state),
            // It existed before the first change that is stored.
            None if !self.is_complete => Err(PastError::TimeNotStored {
                since: self.first_at,
            }),
            _ => Err(PastError::Absent),
        }
    }

    fn of_generation(self, generation: i32) -> Result<StoredResource, PastError> {
        if generation > self.generation {
            let latest = self.generation;
            return Err(PastError::NoSuchGeneration { latest });
        }
        self.state.ok_or(PastError::GenerationNotStored)
    }
}

/// The earliest time that can be asked for, if `at` is before it.
pub fn first_time(at: DateTime<Utc>, stored_since: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
    stored_since.filter(|since| at < *since)
}

/// A removed resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// Its last state.
    pub last: StoredResource,
    pub removed_at: DateTime<Utc>,
    /// Unset if it was not the service that removed it.
    pub removed_by: Option<String>,
    pub request_id: Option<String>,
    /// The reason, if the caller had to give one.
    pub reason: Option<String>,
}

/// A page of what is known of one resource, newest first.
#[derive(Debug, Clone, PartialEq)]
pub struct HistoryPage<T> {
    pub listing: super::page::Listing<T>,
    /// Whether the history begins with the creation of the resource: nothing is missing.
    pub is_complete: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JsonText;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn record() -> PastRecord {
        let object = JsonText::of(&serde_json::json!({}));
        PastRecord {
            state: Some(StoredResource {
                id: uuid::Uuid::from_u128(1).into(),
                kind: "Cluster".to_owned(),
                name: "c".to_owned(),
                owner: None,
                generation: 3,
                revision: 4,
                created_at: at(0),
                created_by: "alice".to_owned(),
                updated_at: at(0),
                updated_by: "alice".to_owned(),
                deletion: None,
                references: [].into(),
                spec: object.clone(),
                labels: object,
                tenancy: [].into(),
                conditions: JsonText::of(&serde_json::json!([])),
            }),
            is_removal: false,
            is_complete: false,
            generation: 5,
            first_at: at(105),
            stored_since: Some(at(100)),
        }
    }

    #[test]
    fn a_time_is_answered_from_the_first_stored_change_on() {
        let ask = |second, change: &dyn Fn(&mut PastRecord)| {
            let mut record = record();
            change(&mut record);
            record.resolve(PastMoment::At(at(second))).map(drop)
        };
        let since = at(100);
        assert_eq!(ask(100, &|_| {}), Ok(()));
        assert_eq!(ask(99, &|_| {}), Err(PastError::TimeNotStored { since }));
        assert_eq!(ask(99, &|r| r.stored_since = None), Ok(()));
        assert_eq!(ask(99, &|r| r.is_complete = true), Ok(()));
        let absent = Err(PastError::Absent);
        assert_eq!(ask(101, &|r| r.is_removal = true), absent);
        assert_eq!(
            ask(99, &|r| (r.is_complete, r.state) = (true, None)),
            absent
        );
        let unknown = Err(PastError::TimeNotStored { since: at(105) });
        assert_eq!(ask(101, &|r| r.state = None), unknown);
    }

    #[test]
    fn a_generation_that_never_was_is_not_one_that_is_forgotten() {
        let ask = |generation, change: &dyn Fn(&mut PastRecord)| {
            let mut record = record();
            change(&mut record);
            record.resolve(PastMoment::Generation(generation)).map(drop)
        };
        assert_eq!(ask(3, &|_| {}), Ok(()));
        assert_eq!(ask(3, &|r| r.is_removal = true), Ok(()), "its last state");
        let forgotten = Err(PastError::GenerationNotStored);
        assert_eq!(ask(2, &|r| r.state = None), forgotten);
        let never = Err(PastError::NoSuchGeneration { latest: 5 });
        assert_eq!(ask(6, &|r| r.state = None), never);
    }
}
