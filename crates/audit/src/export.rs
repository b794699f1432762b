//! Exports of the entire trail, or of one tenant. Entries of a tenant's export have audit paths.

use std::mem;

use super::tree::Tree;
use super::{AuditEntry, Hash, Line, ProvenEntry, Tenancy};

/// Makes an export of the lines of the entire trail.
pub struct Export {
    /// Empty for the entire trail.
    tenancy: Tenancy,
    /// The entries of the pass in progress,
    leaves: Vec<Hash>,
    /// and which of them are the tenant's.
    own: Vec<(usize, AuditEntry)>,
}

impl Export {
    /// The export of a tenant (without dimensions: of the entire trail), and its first line.
    pub fn begin(tenancy: Tenancy) -> (Self, Option<Line>) {
        let line = Line::Tenant {
            tenancy: tenancy.clone(),
        };
        let line = Some(line).filter(|_| !tenancy.is_empty());
        let export = Self {
            tenancy,
            leaves: Vec::new(),
            own: Vec::new(),
        };
        (export, line)
    }

    /// Takes the next line of the trail; returns the lines of the export that can be written now.
    pub fn take(&mut self, line: Line) -> Vec<Line> {
        match line {
            Line::Entry(entry) if !self.tenancy.is_empty() => {
                let index = self.leaves.len();
                self.leaves.push(entry.hash());
                if entry.tenancy == self.tenancy {
                    self.own.push((index, entry));
                }
                Vec::new()
            }
            line => {
                let tree = Tree::new(mem::take(&mut self.leaves));
                let own = mem::take(&mut self.own).into_iter();
                let proven = own.map(|(index, entry)| {
                    let path = tree.path(index);
                    let index = index as u64;
                    Line::Proven(ProvenEntry { entry, index, path })
                });
                proven.chain([line]).collect()
            }
        }
    }

    /// The tenant's entries after the last link, which nothing proves yet.
    pub fn finish(self) -> impl Iterator<Item = Line> {
        self.own.into_iter().map(|(_, entry)| Line::Entry(entry))
    }
}
