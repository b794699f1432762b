//! The generations of a resource, with the author of each and with what it changed.

use chrono::{DateTime, Utc};

use super::difference::differences;
use crate::StoredResource;
use crate::audit::Action;

/// The author of a change, and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationAuthor {
    pub at: DateTime<Utc>,
    /// Unset for a writer other than the service.
    pub actor: Option<String>,
    /// Also unset if the change is no longer stored.
    pub request_id: Option<String>,
}

/// A generation, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedGeneration {
    /// The state that it began with.
    pub state: StoredResource,
    /// Unset for the oldest known state, if the change that made it is not stored.
    pub author: Option<GenerationAuthor>,
    /// Whether it is the first one.
    pub is_created: bool,
}

/// A generation, as a response describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// The state that it began with.
    pub state: StoredResource,
    pub author: GenerationAuthor,
    /// [`Action::Create`], [`Action::Patch`] or [`Action::Delete`].
    pub action: Action,
    /// Pointers to what differs from the generation before; unset if that one is not known.
    pub changed: Option<Vec<String>>,
}

/// The `size` newest of these generations, which begin with the newest. Each is compared with the one after it in the list.
pub fn generations(recorded: &[RecordedGeneration], size: usize) -> Vec<Generation> {
    let page = recorded.iter().take(size).enumerate();
    page.map(|(index, generation)| to_generation(generation, recorded.get(index + 1)))
        .collect()
}

fn to_generation(recorded: &RecordedGeneration, before: Option<&RecordedGeneration>) -> Generation {
    let state = &recorded.state;
    let was_deleting = before.is_some_and(|before| before.state.deletion.is_some());
    let deletion = state.deletion.as_ref().filter(|_| !was_deleting);
    let action = match deletion {
        _ if recorded.is_created => Action::Create,
        Some(_) => Action::Delete,
        None if state.generation == 1 => Action::Create,
        None => Action::Patch,
    };
    // The row itself has the author of its last declared change.
    let known = || match (action, deletion) {
        (Action::Delete, Some(deletion)) => (deletion.at, &deletion.by),
        (Action::Create, _) => (state.created_at, &state.created_by),
        _ => (state.updated_at, &state.updated_by),
    };
    let author = recorded.author.clone().unwrap_or_else(|| {
        let (at, actor) = known();
        GenerationAuthor {
            at,
            actor: Some(actor.clone()),
            request_id: None,
        }
    });
    Generation {
        state: state.clone(),
        author,
        action,
        changed: before.map(|before| differences(&before.state, state)),
    }
}
