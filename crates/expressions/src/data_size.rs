//! Measures the data that expressions may read. The limit of their run-time cost ([`Meter`](crate::Meter)) covers
//! neither the memory of that data nor the time to convert it to values.

use serde_json::{Map, Value};

/// Most values in the data of an expression.
pub const VALUES_MAX: usize = 20_000;
/// Most bytes of texts in the data of an expression.
pub const TEXTS_BYTES_MAX: usize = 1 << 20;

/// Counts the data for expressions.
#[derive(Debug, Clone, Default)]
pub struct DataSize {
    values: usize,
    bytes: usize,
}

impl DataSize {
    /// Adds a value and everything in it.
    pub fn add(&mut self, value: &Value) {
        self.values += 1;
        match value {
            Value::String(text) => self.bytes += text.len(),
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            Value::Object(members) => self.add_members(members),
            _ => {}
        }
    }

    /// Adds the members of an object.
    pub fn add_members(&mut self, members: &Map<String, Value>) {
        for (name, value) in members {
            self.bytes += name.len();
            self.add(value);
        }
    }

    /// Adds `values` whose texts have `bytes`.
    pub fn add_texts(&mut self, values: usize, bytes: usize) {
        self.values += values;
        self.bytes += bytes;
    }

    /// `more than …`, if that is too much for expressions.
    pub fn excess(&self) -> Option<String> {
        let fits = self.values <= VALUES_MAX && self.bytes <= TEXTS_BYTES_MAX;
        (!fits).then(|| format!("more than {VALUES_MAX} values or {TEXTS_BYTES_MAX} bytes of text"))
    }
}
