//! Figures, their table, and the aims that they miss.

use std::time::Duration;

/// What was measured, row by row.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    missed: Vec<String>,
}

impl Figures {
    pub(crate) fn section(&self, title: &str) {
        println!("\n| {title} | |\n| --- | ---: |");
    }

    pub(crate) fn row(&self, what: &str, figure: &str) {
        println!("| {what} | {figure} |");
    }

    /// Half of the times and nearly all of them. Gives the second.
    pub(crate) fn times(&self, what: &str, times: &mut [Duration]) -> Duration {
        times.sort_unstable();
        let (half, most) = (percentile(times, 50), percentile(times, 99));
        let figure = format!(
            "p50 {:.1} ms, p99 {:.1} ms",
            milliseconds(half),
            milliseconds(most)
        );
        self.row(what, &figure);
        most
    }

    /// Notes an aim, and whether it is met.
    pub(crate) fn aim(&mut self, what: &str, is_met: bool) {
        println!(
            "| aim: {what} | {} |",
            if is_met { "met" } else { "MISSED" }
        );
        if !is_met {
            self.missed.push(what.to_owned());
        }
    }

    pub(crate) fn missed(&self) -> &[String] {
        &self.missed
    }
}

/// Of sorted times; zero of none.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let index = (sorted.len() * percent).div_ceil(100);
    let time = sorted.get(index.saturating_sub(1));
    time.copied().unwrap_or_default()
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
