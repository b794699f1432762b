//! Tables whose columns are aligned with tabs of 8 columns, as the older fleetctl printed them.

use super::printable;

const TAB: usize = 8;
/// Free columns after a cell.
const PADDING: usize = 1;

/// A table that is printed in parts. Columns never become narrower, so the parts line up.
#[derive(Debug, Default)]
pub(crate) struct Table {
    widths: Vec<usize>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with a heading, unless that is empty.
    pub(crate) fn new(legend: Vec<String>) -> Self {
        let mut table = Self::default();
        if !legend.is_empty() {
            table.push(legend);
        }
        table
    }

    /// Adds a row; control characters of its cells are escaped.
    pub(crate) fn push(&mut self, mut row: Vec<String>) {
        for cell in &mut row {
            *cell = printable(cell).into_owned();
        }
        self.rows.push(row);
    }

    /// The text of the rows that were added since the last call.
    pub(crate) fn take_text(&mut self) -> String {
        for row in &self.rows {
            // The last cell of a row needs no padding.
            let cells = &row[..row.len().saturating_sub(1)];
            self.widths.resize(self.widths.len().max(cells.len()), 0);
            for (width, cell) in self.widths.iter_mut().zip(cells) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        for row in self.rows.drain(..) {
            for (index, cell) in row.iter().enumerate() {
                text.push_str(cell);
                if index + 1 < row.len() {
                    text.push_str(&"\t".repeat(tabs(cell.chars().count(), self.widths[index])));
                }
            }
            text.push('\n');
        }
        text
    }
}

/// How many tabs end a cell in a column of that width.
fn tabs(cell: usize, width: usize) -> usize {
    let end = (width + PADDING).div_ceil(TAB) * TAB;
    (end - cell).div_ceil(TAB)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn columns_end_at_multiples_of_eight() {
        for (cell, width, expected) in [
            (0, 0, 1),
            (7, 7, 1),
            (8, 8, 1),
            (3, 8, 2),
            (7, 8, 2),
            (9, 16, 2),
            (16, 16, 1),
        ] {
            assert_eq!(tabs(cell, width), expected, "{cell} of {width}");
        }
    }

    #[test]
    fn the_last_cell_of_a_row_is_not_padded() {
        let mut table = Table::new(row(&["UNIT", "MACHINE"]));
        table.push(row(&["hello.service", "0f1e2d3c.../192.0.2.1"]));
        assert_eq!(
            table.take_text(),
            "UNIT\t\tMACHINE\nhello.service\t0f1e2d3c.../192.0.2.1\n"
        );
    }

    #[test]
    fn cells_have_no_control_characters() {
        let mut table = Table::new(row(&["a\tb\n", "\x1b[31mred"]));
        assert_eq!(table.take_text(), "a\\x09b\\x0a\t\\x1b[31mred\n");
    }

    #[test]
    fn later_parts_line_up_with_earlier_ones() {
        let mut table = Table::default();
        table.push(row(&["a-long-name.service", "x"]));
        assert_eq!(table.take_text(), "a-long-name.service\tx\n");
        table.push(row(&["a", "x"]));
        assert_eq!(table.take_text(), "a\t\t\tx\n");
        assert_eq!(table.take_text(), "");
    }
}
