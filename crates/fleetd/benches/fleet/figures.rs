//! Tables of measured figures, and missed targets.

use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Figures {
    missed: Vec<String>,
}

impl Figures {
    /// Records a target, and whether it is met.
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

pub(crate) fn print_title(title: &str) {
    println!("\n| {title} | |\n| --- | ---: |");
}

pub(crate) fn print_row(what: &str, figure: &str) {
    println!("| {what} | {figure} |");
}

/// Prints and returns the median and a high percentile.
pub(crate) fn print_times_of(what: &str, times: &mut [Duration]) -> (Duration, Duration) {
    times.sort_unstable();
    let (half, most) = (percentile(times, 50), percentile(times, 99));
    let [half_ms, most_ms] = [half, most].map(milliseconds);
    print_row(what, &format!("p50 {half_ms:.1} ms, p99 {most_ms:.1} ms"));
    (half, most)
}

/// Prints both; returns the high percentile.
pub(crate) fn print_times(what: &str, times: &mut [Duration]) -> Duration {
    let (_, most) = print_times_of(what, times);
    most
}

/// Of sorted times; zero without times.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let index = (sorted.len() * percent).div_ceil(100);
    let time = sorted.get(index.saturating_sub(1));
    time.copied().unwrap_or_default()
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
