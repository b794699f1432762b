//! Converts text to tokens, each with its position in the text.

use super::number::{Number, SUFFIXES};

/// Words with a meaning, in any case. In tokens they are lower case.
const KEYWORDS: [&str; 15] = [
    "and", "or", "not", "in", "between", "like", "ilike", "is", "null", "true", "false", "len",
    "any", "all", "sum",
];

/// Signs, longer ones before their own prefixes; the second column is their spelling in tokens.
const SIGNS: [(&str, &str); 20] = [
    ("==", "="),
    ("!=", "!="),
    ("<>", "!="),
    ("<=", "<="),
    (">=", ">="),
    ("~=", "~="),
    ("~!", "~!"),
    ("=", "="),
    ("<", "<"),
    (">", ">"),
    ("+", "+"),
    ("-", "-"),
    ("*", "*"),
    ("/", "/"),
    ("%", "%"),
    ("(", "("),
    (")", ")"),
    ("[", "["),
    ("]", "]"),
    (",", ","),
];

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'a> {
    /// Of a field.
    Name(&'a str),
    /// A quoted text, or an unquoted date or time.
    Text(String),
    Number(Number),
    /// A keyword or sign.
    Symbol(&'static str),
    End,
}

/// The error, and its byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) what: String,
    pub(super) at: usize,
}

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token and its start, in bytes. After the last token, always the end.
    pub(super) fn next(&mut self) -> Result<(Token<'a>, usize), SyntaxError> {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        let at = self.at;
        let token = match rest.chars().next() {
            None => Token::End,
            Some(quote @ ('\'' | '"' | '`')) => self.quoted(rest, quote)?,
            Some('0'..='9') => match date_length(rest) {
                Some(length) => Token::Text(self.take(length).to_owned()),
                None => self.number(rest)?,
            },
            Some(first) if first == '_' || first.is_alphabetic() => self.word(rest),
            Some(first) => match SIGNS.iter().find(|(sign, _)| rest.starts_with(sign)) {
                Some((sign, symbol)) => {
                    self.at += sign.len();
                    Token::Symbol(symbol)
                }
                None => return Err(unexpected(first, at)),
            },
        };
        Ok((token, at))
    }

    fn take(&mut self, length: usize) -> &'a str {
        let taken = &self.text[self.at..self.at + length];
        self.at += length;
        taken
    }

    fn quoted(&mut self, rest: &str, quote: char) -> Result<Token<'a>, SyntaxError> {
        let mut text = String::new();
        let mut chars = rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, escaped)) => text.push(unescaped(escaped)),
                    None => break,
                },
                c if c == quote => {
                    self.at += at + quote.len_utf8();
                    return Ok(Token::Text(text));
                }
                c => text.push(c),
            }
        }
        Err(SyntaxError {
            what: "Unterminated string".to_owned(),
            at: self.at,
        })
    }

    fn number(&mut self, rest: &str) -> Result<Token<'a>, SyntaxError> {
        let at = self.at;
        let digits = self.take(number_length(rest));
        let suffix_length = suffix_length(&rest[digits.len()..]);
        let suffix = self.take(suffix_length);
        let number = Number::parse(digits, suffix);
        number.map(Token::Number).ok_or_else(|| SyntaxError {
            what: "number out of range".to_owned(),
            at,
        })
    }

    fn word(&mut self, rest: &str) -> Token<'a> {
        let letters = rest.find(|c: char| c != '_' && !c.is_alphanumeric());
        let letters = letters.unwrap_or(rest.len());
        let keyword = KEYWORDS
            .iter()
            .find(|word| rest[..letters].eq_ignore_ascii_case(word));
        if let Some(keyword) = keyword
            && !rest[letters..].starts_with(['.', '/'])
        {
            self.at += letters;
            return Token::Symbol(keyword);
        }
        Token::Name(self.take(name_length(rest)))
    }
}

pub(super) fn unexpected(c: char, at: usize) -> SyntaxError {
    let what = if c.is_control() {
        format!("Unexpected character '{}'", c.escape_default())
    } else {
        format!("Unexpected character '{c}'")
    };
    SyntaxError { what, at }
}

fn unescaped(c: char) -> char {
    match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        other => other,
    }
}

/// Letters, digits, `_`, `.`, `/` and `[…]`; after `labels.` also hyphens, but not at the end, so that every key of a
/// label can be searched.
fn name_length(text: &str) -> usize {
    let takes_hyphens = text.starts_with("labels.");
    let mut length = 0;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let step = match c {
            '[' => match rest.find(']') {
                Some(end) => end + 1,
                None => break,
            },
            '-' if takes_hyphens => 1,
            c if matches!(c, '_' | '.' | '/') || c.is_alphanumeric() => c.len_utf8(),
            _ => break,
        };
        length += step;
        rest = &text[length..];
    }
    text[..length].trim_end_matches('-').len()
}

fn digits_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len())
}

/// Digits with an optional fraction and exponent.
fn number_length(text: &str) -> usize {
    let mut length = digits_length(text);
    if let Some(fraction) = text[length..].strip_prefix('.') {
        match digits_length(fraction) {
            0 => {}
            digits => length += 1 + digits,
        }
    }
    if let Some(exponent) = text[length..].strip_prefix(['e', 'E']) {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        match digits_length(digits) {
            0 => {}
            found => length += 1 + (exponent.len() - digits.len()) + found,
        }
    }
    length
}

fn suffix_length(text: &str) -> usize {
    if !text.starts_with(|c: char| SUFFIXES.contains(c.to_ascii_lowercase())) {
        return 0;
    }
    if text[1..].starts_with('i') { 2 } else { 1 }
}

/// The length of the prefix with the form of a date or a time, whether that day exists or not.
pub(super) fn date_length(text: &str) -> Option<usize> {
    const DATE: &str = "dddd-dd-dd";
    const TIME: &str = "Tdd:dd:dd";
    let is_like = |from: usize, form: &str| {
        let bytes = text.as_bytes().get(from..from + form.len());
        bytes.is_some_and(|bytes| {
            let mut pairs = bytes.iter().zip(form.bytes());
            pairs.all(|(b, f)| (f == b'd' && b.is_ascii_digit()) || *b == f)
        })
    };
    if !is_like(0, DATE) {
        return None;
    }
    if !is_like(DATE.len(), TIME) {
        return Some(DATE.len());
    }
    let mut length = DATE.len() + TIME.len();
    if let Some(fraction) = text[length..].strip_prefix('.') {
        length += 1 + digits_length(fraction);
    }
    if text[length..].starts_with('Z') {
        Some(length + 1)
    } else if is_like(length, "+dd:dd") || is_like(length, "-dd:dd") {
        Some(length + "+dd:dd".len())
    } else {
        Some(DATE.len())
    }
}
