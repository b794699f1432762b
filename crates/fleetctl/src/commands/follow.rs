//! Followed lists: builds the current list from its stream of server-sent events.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout_at};

use crate::client::{Client, Event, Events, Gone};

/// Pause before an ended stream is opened again.
const RETRY: Duration = Duration::from_secs(1);
/// Changes within this time are shown together.
const TOGETHER: Duration = Duration::from_millis(100);

/// Name and machine, which identify an item of a followed list.
pub(super) type ItemKey = (String, String);

/// Follows a list for ever. `show` gets the whole list after each change.
pub(super) async fn follow<T: DeserializeOwned>(
    client: &Client,
    list: &str,
    key: fn(&T) -> ItemKey,
    mut show: impl AsyncFnMut(&BTreeMap<ItemKey, T>) -> anyhow::Result<()>,
) -> anyhow::Result<Infallible> {
    let mut followed = FollowedList::new(key);
    let mut events = Some(client.watch(list, None).await?);
    loop {
        if let Some(events) = &mut events {
            while let Some(()) = next_changes(events, &mut followed).await {
                if followed.is_whole {
                    show(&followed.items).await?;
                }
            }
        }
        sleep(RETRY).await;
        let again = client.watch(list, followed.id.as_deref()).await;
        if again
            .as_ref()
            .is_err_and(|error| error.status() == Some(400))
        {
            // The history is lost: start over.
            followed.begin_again();
        }
        events = again.ok();
    }
}

/// Applies changes; `None` when the stream has ended or broken.
async fn next_changes<T: DeserializeOwned>(
    events: &mut Events,
    followed: &mut FollowedList<T>,
) -> Option<()> {
    followed.apply(events.next().await.ok()??);
    // Steady changes are shown, too.
    let end = Instant::now() + TOGETHER;
    while Instant::now() < end
        // An ended stream reports that again at the next call.
        && let Ok(Ok(Some(event))) = timeout_at(end, events.next()).await
    {
        followed.apply(event);
    }
    Some(())
}

/// A list built from its stream of events.
struct FollowedList<T> {
    items: BTreeMap<ItemKey, T>,
    key: fn(&T) -> ItemKey,
    /// Items that the current stream has sent. Its `listed` event removes the others.
    repeated: BTreeSet<ItemKey>,
    is_whole: bool,
    id: Option<String>,
}

impl<T: DeserializeOwned> FollowedList<T> {
    fn new(key: fn(&T) -> ItemKey) -> Self {
        Self {
            items: BTreeMap::new(),
            key,
            repeated: BTreeSet::new(),
            is_whole: false,
            id: None,
        }
    }

    fn begin_again(&mut self) {
        self.repeated.clear();
        self.is_whole = false;
        self.id = None;
    }

    fn apply(&mut self, event: Event) {
        match event.name.as_str() {
            "put" => {
                if let Ok(item) = serde_json::from_value::<T>(event.data) {
                    let key = (self.key)(&item);
                    self.repeated.insert(key.clone());
                    self.items.insert(key, item);
                }
            }
            "delete" => {
                if let Ok(gone) = serde_json::from_value::<Gone>(event.data) {
                    self.items
                        .remove(&(gone.name, gone.machine.unwrap_or_default()));
                }
            }
            "listed" => {
                let repeated = std::mem::take(&mut self.repeated);
                self.items.retain(|key, _| repeated.contains(key));
                self.is_whole = true;
            }
            _ => {}
        }
        self.id = event.id.or(self.id.take());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(name: &str, data: Value, id: Option<&str>) -> Event {
        Event {
            name: name.to_owned(),
            data,
            id: id.map(str::to_owned),
        }
    }

    #[test]
    fn a_list_is_what_its_events_say() {
        let mut list = FollowedList::<Gone>::new(|unit| (unit.name.clone(), String::new()));
        let names = |list: &FollowedList<Gone>| {
            list.items
                .keys()
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        list.apply(event("put", json!({"name": "a"}), None));
        list.apply(event("put", json!({"name": "b"}), None));
        assert!(!list.is_whole);
        list.apply(event("listed", json!({"revision": 7}), Some("7")));
        assert!(list.is_whole);
        list.apply(event("put", json!({"name": "c"}), Some("8")));
        list.apply(event("delete", json!({"name": "a"}), Some("9")));
        assert_eq!(names(&list), ["b", "c"]);
        assert_eq!(list.id.as_deref(), Some("9"));
        // The stream starts over: items that it does not repeat are removed.
        list.begin_again();
        list.apply(event("put", json!({"name": "c"}), None));
        list.apply(event("listed", json!({"revision": 9}), Some("9")));
        assert_eq!(names(&list), ["c"]);
    }
}
