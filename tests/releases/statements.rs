//! Parses a migration to find what it does to existing tables.

use std::iter::Peekable;
use std::str::Chars;

/// One statement of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// Words in upper case, parentheses and commas. Literals and the bodies of functions are `'`, quoted names begin
    /// with `"`.
    pub(crate) words: Vec<String>,
    /// The comments before and in it.
    pub(crate) comments: String,
}

pub(crate) fn statements(sql: &str) -> Vec<Statement> {
    let (mut all, mut words, mut comments) = (Vec::new(), Vec::new(), String::new());
    let mut rest = sql.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '-' if rest.next_if_eq(&'-').is_some() => {
                comments.extend(std::iter::from_fn(|| rest.next_if(|&c| c != '\n')));
                comments.push('\n');
            }
            '/' if rest.next_if_eq(&'*').is_some() => comments += &block_comment(&mut rest),
            '\'' => {
                // Only `E'…'` knows backslashes.
                let escapes = words.last().is_some_and(|word| word == "E");
                quoted(&mut rest, '\'', escapes);
                words.push("'".to_owned());
            }
            '"' => words.push(format!("\"{}", quoted(&mut rest, '"', false))),
            '$' => {
                dollar_quoted(&mut rest);
                words.push("'".to_owned());
            }
            ';' => all.push(Statement {
                words: std::mem::take(&mut words),
                comments: std::mem::take(&mut comments),
            }),
            '(' | ')' | ',' => words.push(c.to_string()),
            c if is_part_of_word(c) => {
                let more = std::iter::from_fn(|| rest.next_if(|&c| is_part_of_word(c)));
                let word: String = std::iter::once(c).chain(more).collect();
                words.push(word.to_uppercase());
            }
            _ => {}
        }
    }
    if !words.is_empty() {
        all.push(Statement { words, comments });
    }
    all
}

fn is_part_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

/// The rest of a comment that may hold comments.
fn block_comment(rest: &mut Peekable<Chars<'_>>) -> String {
    let (mut depth, mut text) = (1, String::new());
    while let Some(c) = rest.next() {
        match c {
            '*' if rest.next_if_eq(&'/').is_some() => depth -= 1,
            '/' if rest.next_if_eq(&'*').is_some() => depth += 1,
            c => text.push(c),
        }
        if depth == 0 {
            break;
        }
    }
    text + "\n"
}

/// The rest of a literal or of a name; its quote is doubled inside.
fn quoted(rest: &mut Peekable<Chars<'_>>, quote: char, escapes: bool) -> String {
    let mut text = String::new();
    while let Some(c) = rest.next() {
        if c == '\\' && escapes {
            text.extend(rest.next());
        } else if c != quote {
            text.push(c);
        } else if rest.next_if_eq(&quote).is_some() {
            text.push(quote);
        } else {
            break;
        }
    }
    text
}

/// The rest of `$tag$ … $tag$`.
fn dollar_quoted(rest: &mut Peekable<Chars<'_>>) {
    let tag: String = std::iter::from_fn(|| rest.next_if(|&c| c != '$')).collect();
    rest.next();
    let end = format!("${tag}$");
    let mut body = String::new();
    while !body.ends_with(&end) {
        let Some(c) = rest.next() else { break };
        body.push(c);
    }
}

#[test]
fn statements_are_split_whatever_they_contain() {
    let sql = r#"
        -- First; with 'a' quote
        CREATE TABLE a (b text DEFAULT 'x;''y' -- why
        , "Drop;""me" int);
        /* not /* a */ DROP TABLE b; */
        SELECT E'\';', $$ DROP TABLE c; $$, $a$ $b$ ; $$ $a$ ;
        drop table schema.d"#;
    let found = statements(sql);
    let words: Vec<_> = found.iter().map(|one| one.words.join(" ")).collect();
    assert_eq!(
        words,
        [
            "CREATE TABLE A ( B TEXT DEFAULT ' , \"Drop;\"me INT )",
            "SELECT E ' , ' , '",
            "DROP TABLE SCHEMA.D"
        ]
    );
    assert_eq!(found[0].comments, " First; with 'a' quote\n why\n");
    assert!(found[1].comments.contains("DROP TABLE b"));
    assert_eq!(found[2].comments, "");
}
