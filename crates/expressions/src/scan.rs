//! Checks the text of an expression before it is parsed: the parser is recursive, and a stack overflow ends the
//! process.

/// Longest expression, in bytes.
pub const SOURCE_BYTES_MAX: usize = 2048;
/// Deepest nesting of brackets of any kind.
pub const BRACKETS_MAX: usize = 16;
/// Most operators in one expression.
pub const OPERATORS_MAX: usize = 100;

/// Checks the text of an expression.
///
/// # Errors
/// What to change.
pub(crate) fn scan(source: &str) -> Result<(), String> {
    if source.trim().is_empty() {
        return Err("is empty: write an expression, for instance: true".to_owned());
    }
    if source.len() > SOURCE_BYTES_MAX {
        return Err(format!(
            "has {} bytes: {SOURCE_BYTES_MAX} at most",
            source.len()
        ));
    }
    let mut rest = source;
    let (mut depth, mut operators) = (0_usize, 0);
    while let Some(c) = rest.chars().next() {
        if let Some(after) = literal(rest) {
            rest = after;
            continue;
        }
        let mut taken = c.len_utf8();
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '+' | '-' | '*' | '/' | '%' | '!' | '<' | '>' | '=' | '&' | '|' | '?' | ':' => {
                operators += 1;
                let pairs = ["&&", "||", "==", "!=", "<=", ">="];
                if pairs.iter().any(|pair| rest.starts_with(pair)) {
                    taken = 2;
                }
            }
            _ if c.is_alphabetic() || c == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
                taken = end.unwrap_or(rest.len());
            }
            _ => {}
        }
        rest = &rest[taken..];
        if depth > BRACKETS_MAX {
            return Err(format!(
                "nests brackets deeper than {BRACKETS_MAX} levels: simplify it"
            ));
        }
        if operators > OPERATORS_MAX {
            return Err(format!(
                "has more than {OPERATORS_MAX} operators: simplify it, or split it"
            ));
        }
    }
    Ok(())
}

/// The text after the literal or comment at the start of `rest`; `None` if there is neither. An unterminated
/// one ends with the source.
fn literal(rest: &str) -> Option<&str> {
    if let Some(comment) = rest.strip_prefix("//") {
        return Some(comment.find('\n').map_or("", |end| &comment[end..]));
    }
    let prefix = rest
        .find(|c: char| !matches!(c, 'r' | 'R' | 'b' | 'B'))
        .filter(|&length| length <= 2)?;
    let is_raw = rest[..prefix].contains(['r', 'R']);
    let quoted = &rest[prefix..];
    let quote = ["\"\"\"", "'''", "\"", "'"]
        .into_iter()
        .find(|quote| quoted.starts_with(quote))?;
    let mut inside = &quoted[quote.len()..];
    while !inside.is_empty() {
        if let Some(after) = inside.strip_prefix(quote) {
            return Some(after);
        }
        let mut characters = inside.chars();
        if characters.next() == Some('\\') && !is_raw {
            characters.next();
        }
        inside = characters.as_str();
    }
    Some("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_comments_are_no_operators() {
        let many = "+(".repeat(200);
        for quoted in [
            format!("'{many}'"),
            format!("\"{many}\""),
            format!("'''{many}'{many}'''"),
            format!("r'{many}\\'"),
            format!("'{many}\\'{many}'"),
            format!("a // {many}\n + b"),
            format!("b\"{many}\""),
        ] {
            assert_eq!(scan(&quoted), Ok(()), "{quoted}");
        }
        // Text after a literal counts again, and a name that ends in r is no prefix.
        for open in [
            format!("r'\\' {many}"),
            format!("'' {many}"),
            format!("bar'\\'' {many}"),
        ] {
            assert!(scan(&open).is_err(), "{open}");
        }
    }

    #[test]
    fn what_reaches_a_limit_is_within_it() {
        let brackets = |count: usize| "(".repeat(count) + "1" + &")".repeat(count);
        let operators = |count: usize| "!".repeat(count) + "a";
        let bytes = |count: usize| "a".repeat(count);
        let pairs = |count: usize| "a&&".repeat(count) + "a";
        assert_eq!(scan(&brackets(BRACKETS_MAX)), Ok(()));
        assert!(scan(&brackets(BRACKETS_MAX + 1)).is_err());
        assert_eq!(scan(&operators(OPERATORS_MAX)), Ok(()));
        assert!(scan(&operators(OPERATORS_MAX + 1)).is_err());
        assert_eq!(scan(&pairs(OPERATORS_MAX)), Ok(()));
        assert_eq!(scan(&bytes(SOURCE_BYTES_MAX)), Ok(()));
        assert!(scan(&bytes(SOURCE_BYTES_MAX + 1)).is_err());
        assert!(scan(" \n").is_err());
        // Brackets side by side are not nested.
        assert_eq!(scan(&"[1] ".repeat(400)), Ok(()));
    }
}
