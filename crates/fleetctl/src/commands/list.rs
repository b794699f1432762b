//! What the lists have in common: their columns, their output, and how they are printed again when they change.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::io::IsTerminal as _;
use std::time::Duration;

use futures_util::{Stream, TryStreamExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::{sleep, timeout};

use crate::cli::{Format, ListArgs};
use crate::client::{self, Client, Event, Events, Gone};
use crate::machines::{Detail, Machines};
use crate::output::{self, Column, InvalidFields, Table, chosen};

/// How often machines, which cannot be watched, are asked about.
pub(super) const POLL: Duration = Duration::from_secs(2);
/// How long to wait before a stream that ended is opened again.
const RETRY: Duration = Duration::from_secs(1);
/// The server sends a comment every 15 s: a stream that is silent for longer is broken.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// Changes that come together are shown together.
const TOGETHER: Duration = Duration::from_millis(100);

/// What the cells of a list are made from, beside its items.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) machines: Machines,
    pub(super) detail: Detail,
}

/// How a list is printed.
pub(super) struct Listing<'c, T> {
    columns: Vec<&'c Column<T, Shown>>,
    has_legend: bool,
    format: Format,
    pub(super) shown: Shown,
}

impl<'c, T: Serialize> Listing<'c, T> {
    /// # Errors
    /// Columns that do not exist.
    pub(super) fn new(
        args: &ListArgs,
        columns: &'c [Column<T, Shown>],
        usual: &str,
    ) -> Result<Self, InvalidFields> {
        Ok(Self {
            columns: chosen(columns, args.fields.as_deref(), usual)?,
            has_legend: !args.no_legend,
            format: args.output.format,
            shown: Shown {
                machines: Machines::default(),
                detail: if args.full {
                    Detail::Full
                } else {
                    Detail::Short
                },
            },
        })
    }

    /// The heading alone.
    fn table(&self) -> Table {
        let legend = self.columns.iter().map(|column| column.name.to_uppercase());
        Table::new(if self.has_legend {
            legend.collect()
        } else {
            Vec::new()
        })
    }

    fn row(&self, item: &T) -> Vec<String> {
        let cells = self.columns.iter();
        cells
            .map(|column| (column.text)(item, &self.shown))
            .collect()
    }

    /// The text of a whole list.
    pub(super) fn text<'t>(&self, items: impl Iterator<Item = &'t T>) -> anyhow::Result<String>
    where
        T: 't,
    {
        let items: Vec<&T> = items.collect();
        if let Some(text) = output::structured(self.format, &items)? {
            return Ok(text);
        }
        let mut table = self.table();
        for item in items {
            table.push(self.row(item));
        }
        Ok(table.take_text())
    }

    /// Prints a list; a table page by page, as it comes.
    pub(super) async fn print<U: Into<T>>(
        &self,
        pages: impl Stream<Item = Result<Vec<U>, client::Error>>,
    ) -> anyhow::Result<()> {
        tokio::pin!(pages);
        if self.format != Format::Table {
            let mut items: Vec<T> = Vec::new();
            while let Some(page) = pages.try_next().await? {
                items.extend(page.into_iter().map(Into::into));
            }
            return Ok(output::print(&self.text(items.iter())?)?);
        }
        let mut table = self.table();
        while let Some(page) = pages.try_next().await? {
            for item in page {
                table.push(self.row(&item.into()));
            }
            output::print(&table.take_text())?;
        }
        Ok(output::print(&table.take_text())?)
    }
}

/// The screen of a list that is printed again when it changes.
#[derive(Debug, Default)]
pub(super) struct Screen {
    text: Option<String>,
}

impl Screen {
    /// Prints a text unless it is there already: on a terminal in the place of the former one, elsewhere behind it.
    pub(super) fn show(&mut self, text: String) -> anyhow::Result<()> {
        if self.text.as_ref() == Some(&text) {
            return Ok(());
        }
        let before = match (&self.text, std::io::stdout().is_terminal()) {
            (_, true) => "\x1b[H\x1b[2J",
            (None, false) => "",
            (Some(_), false) => "\n",
        };
        output::print(&format!("{before}{text}"))?;
        self.text = Some(text);
        Ok(())
    }
}

/// Name and machine: what tells one item of a watched list from another.
pub(super) type ItemKey = (String, String);

/// Follows a list for ever. `show` gets all of it whenever it has changed.
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
            // The history since then is gone: start over.
            followed.begin_again();
        }
        events = again.ok();
    }
}

/// Takes in what has changed; none when the stream has ended or is broken.
async fn next_changes<T: DeserializeOwned>(
    events: &mut Events,
    followed: &mut FollowedList<T>,
) -> Option<()> {
    let next = timeout(SILENCE_MAX, events.next()).await;
    followed.apply(next.ok()?.ok()??);
    while let Ok(next) = timeout(TOGETHER, events.next()).await {
        followed.apply(next.ok()??);
    }
    Some(())
}

/// A list that its stream of events describes.
struct FollowedList<T> {
    items: BTreeMap<ItemKey, T>,
    key: fn(&T) -> ItemKey,
    /// Items that the current stream has sent; at its `listed` event the others are removed.
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
