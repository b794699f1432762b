//! The body of `POST …/rebalance`: moves for the engine.

use super::decode::{Part, Undecodable, body};
use super::views::MoveView;

/// Most moves of one request, which is one transaction.
pub const MOVES_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMoves {
    #[error("unable to decode body: {0}")]
    Undecodable(#[from] Undecodable),
    #[error("invalid move: expect name, from and to")]
    Incomplete,
    #[error("unit {0} is to move twice")]
    Twice(String),
    #[error("too many moves: {MOVES_MAX} at most")]
    TooMany,
}

/// Reads the moves of a body, `{"moves": [{"name", "from", "to"}]}`, in their order.
///
/// # Errors
/// The first fault. Nothing of a list with a fault may be done.
pub fn moves(bytes: &[u8]) -> Result<Vec<MoveView>, InvalidMoves> {
    let mut moves = Vec::new();
    for (_, part) in body(bytes)?.members(&["moves"])? {
        let elements = part.elements(MOVES_MAX)?;
        if elements.len() > MOVES_MAX {
            return Err(InvalidMoves::TooMany);
        }
        moves = elements.iter().map(one).collect::<Result<_, _>>()?;
    }
    for (index, one) in moves.iter().enumerate() {
        if moves[..index].iter().any(|other| other.name == one.name) {
            return Err(InvalidMoves::Twice(one.name.clone()));
        }
    }
    Ok(moves)
}

fn one(part: &Part<'_>) -> Result<MoveView, InvalidMoves> {
    let mut texts = [const { String::new() }; 3];
    for (name, part) in part.members(&["from", "name", "to"])? {
        let index = match name {
            "from" => 0,
            "name" => 1,
            _ => 2,
        };
        texts[index] = part.text()?.unwrap_or_default();
    }
    if texts.iter().any(String::is_empty) {
        return Err(InvalidMoves::Incomplete);
    }
    let [from, name, to] = texts;
    Ok(MoveView { from, name, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_read_in_their_order() {
        let text = br#"{"moves":[{"name":"b","from":"m1","to":"m2"},{"NAME":"a","from":"m2","to":"m1","x":1}]}"#;
        let names: Vec<_> = moves(text)
            .unwrap()
            .into_iter()
            .map(|one| one.name)
            .collect();
        assert_eq!(names, ["b", "a"]);
        for text in ["{}", "null", r#"{"moves":[]}"#, r#"{"moves":null}"#] {
            assert_eq!(moves(text.as_bytes()), Ok(Vec::new()), "{text}");
        }
    }

    #[test]
    fn what_is_no_move_is_refused() {
        let one = r#"{"name":"a","from":"m1","to":"m2"}"#;
        let many = format!(r#"{{"moves":[{}]}}"#, vec![one; MOVES_MAX + 1].join(","));
        assert_eq!(moves(many.as_bytes()), Err(InvalidMoves::TooMany));
        let twice = format!(r#"{{"moves":[{one},{one}]}}"#);
        assert_eq!(
            moves(twice.as_bytes()),
            Err(InvalidMoves::Twice("a".into()))
        );
        for text in [
            r#"{"moves":[{"name":"a","from":"m1"}]}"#,
            r#"{"moves":[{"name":"","from":"m1","to":"m2"}]}"#,
            r#"{"moves":[null]}"#,
        ] {
            assert_eq!(
                moves(text.as_bytes()),
                Err(InvalidMoves::Incomplete),
                "{text}"
            );
        }
        for text in ["", "[]", r#"{"moves":7}"#, r#"{"moves":[7]}"#] {
            let fault = moves(text.as_bytes());
            assert!(matches!(fault, Err(InvalidMoves::Undecodable(_))), "{text}");
        }
    }
}
