//! Common parts of the lists: columns, output, and reprinting after changes.

use std::io::IsTerminal as _;
use std::time::Duration;

use futures_util::{Stream, TryStreamExt as _};
use serde::Serialize;

use crate::cli::{Format, ListArgs};
use crate::client;
use crate::machines::{Detail, Machines};
use crate::output::{self, Column, InvalidFields, Table, chosen};

/// Polling interval of machines, which cannot be watched.
pub(super) const POLL: Duration = Duration::from_secs(2);

/// Data for the cells of a list, beside its items.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    pub(super) machines: Machines,
    pub(super) detail: Detail,
}

pub(super) struct Listing<'c, T> {
    columns: Vec<&'c Column<T, Shown>>,
    has_legend: bool,
    format: Format,
    pub(super) shown: Shown,
}

impl<'c, T: Serialize> Listing<'c, T> {
    /// # Errors
    /// Unknown columns.
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

    /// Prints a list; a table page by page as it arrives.
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

/// The output of a list that is printed again after changes.
#[derive(Debug, Default)]
pub(super) struct Screen {
    text: Option<String>,
}

impl Screen {
    /// Prints a text unless it is shown already: on a terminal in place of the previous one, elsewhere after
    /// it.
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
