//! What reading a search costs, from short texts to the longest: the cost must grow as the text does.
//!
//! `make bench-search` prints a table; it ends with 1 if a shape grows faster than its text.
#![expect(
    clippy::cast_precision_loss,
    reason = "lengths and times are far below 2^52"
)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use hyperfleet_domain::tsl::{TEXT_BYTES_MAX, parse};

/// Lengths that are measured, in bytes.
const LENGTHS: [usize; 5] = [256, 512, 1024, 2048, TEXT_BYTES_MAX];
/// Twice as long a text may take 2^1.2 = 2.3 times as long: 1 is linear, the rest is noise.
const EXPONENT_MAX: f64 = 1.2;
/// How long each length is measured: the quickest of so many turns counts, others met noise.
const TURNS: usize = 7;
const TURN: Duration = Duration::from_millis(20);

/// A way in which searches grow: a beginning, a part that is repeated, an end.
struct Shape {
    name: &'static str,
    begin: &'static str,
    part: String,
    end: &'static str,
    is_read: bool,
}

impl Shape {
    /// As long as it can be without being longer than that.
    fn text(&self, length: usize) -> String {
        let room = length - self.begin.len() - self.end.len();
        let parts = self.part.repeat(room / self.part.len());
        format!("{}{parts}{}", self.begin, self.end)
    }
}

fn shapes() -> Vec<Shape> {
    let shape = |name, begin, part: &str, end, is_read| Shape {
        name,
        begin,
        part: part.to_owned(),
        end,
        is_read,
    };
    let nested = format!("{}name='a'{} or ", "(".repeat(30), ")".repeat(30));
    let negated = format!("{}name='a' and ", "not ".repeat(30));
    vec![
        shape(
            "many tests",
            "",
            "labels.example.com/key-1 = 'value-1' and ",
            "id='a'",
            true,
        ),
        shape("parentheses, 30 deep", "", &nested, "id='a'", true),
        shape("`not`, 30 deep", "", &negated, "id='a'", true),
        shape("a long list", "name in [", "'ab',", "]", true),
        shape("a list of numbers", "spec.a in [", "1.5e3,", "]", true),
        shape("a long text", "name = '", "ä", "'", true),
        shape("escapes", "name = '", "\\n", "'", true),
        shape("a long name", "labels.", "a-b", " = 'a'", true),
        shape("blanks", "name", " ", "= 'a'", true),
        shape("a sum, refused", "generation = 1", " + 1", "", false),
        shape("lists in a list, refused", "name in [", "[a],", "]", false),
        shape("a text without end", "name = '", "a", "", false),
        shape("a fault at the end", "name in [", "'ab',", "] )", false),
    ]
}

/// Nanoseconds to read a text, or to refuse it.
fn nanoseconds(text: &str) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..TURNS {
        let start = Instant::now();
        let mut count = 0_u32;
        while start.elapsed() < TURN {
            for _ in 0..10 {
                let _ = black_box(parse(black_box(text)));
            }
            count += 10;
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(count));
    }
    best
}

/// The power of the length that the time grows with: the slope of the line through the logarithms.
fn exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<_> = points.iter().map(|(x, y)| (x.ln(), y.ln())).collect();
    let count = logs.len() as f64;
    let (sum_x, sum_y) = logs.iter().fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let slopes = logs.iter().fold((0.0, 0.0), |s, (x, y)| {
        (
            s.0 + (x - mean_x) * (y - mean_y),
            s.1 + (x - mean_x) * (x - mean_x),
        )
    });
    slopes.0 / slopes.1
}

fn main() -> ExitCode {
    let columns = LENGTHS.map(|length| format!("ns/byte at {length}"));
    println!(
        "| shape | {} | µs at most | exponent |",
        columns.join(" | ")
    );
    println!("| --- |{}", " ---: |".repeat(LENGTHS.len() + 2));
    let mut steepest: f64 = 0.0;
    for shape in shapes() {
        let points = LENGTHS.map(|length| {
            let text = shape.text(length);
            assert_eq!(parse(&text).is_ok(), shape.is_read, "{text}");
            (text.len() as f64, nanoseconds(&text))
        });
        let each = points.map(|(length, time)| format!("{:.1}", time / length));
        let most = points
            .iter()
            .fold(0.0_f64, |most, (_, time)| most.max(*time));
        let exponent = exponent(&points);
        let row = format!("{:.0} | {exponent:.2}", most / 1000.0);
        println!("| {} | {} | {row} |", shape.name, each.join(" | "));
        steepest = steepest.max(exponent);
    }
    println!("\nsteepest: length to the power of {steepest:.2}; the aim is {EXPONENT_MAX} at most");
    if steepest > EXPONENT_MAX {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
