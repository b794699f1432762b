//! Sizes of a benchmark, from its command line.

/// The arguments of the form `name=count`. Cargo passes others, which are left out.
pub fn named_counts() -> Vec<(String, usize)> {
    let counts = std::env::args().skip(1).filter_map(|argument| {
        let (name, count) = argument.split_once('=')?;
        Some((name.to_owned(), count.parse().expect("a number")))
    });
    counts.collect()
}
