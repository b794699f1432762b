//! The body of `POST …/rebalance`: moves for the engine.

use serde::Deserialize;
use utoipa::ToSchema;

use super::decode::{Undecodable, body};
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

/// Moves to carry out.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
#[schema(as = MovesRequest)]
pub(super) struct MovesBody {
    /// At most one per unit, as in the plan.
    #[schema(nullable = true, max_items = 100)]
    moves: Option<Vec<MoveView>>,
}

const _: () = assert!(MOVES_MAX == 100, "the schema says so");

/// Reads the moves of a body, `{"moves": [{"name", "from", "to"}]}`, in their order.
///
/// # Errors
/// The first fault. Nothing of a list with a fault may be done.
pub fn moves(bytes: &[u8]) -> Result<Vec<MoveView>, InvalidMoves> {
    let body: MovesBody = body(bytes)?;
    let moves = body.moves.unwrap_or_default();
    if moves.len() > MOVES_MAX {
        return Err(InvalidMoves::TooMany);
    }
    for (index, one) in moves.iter().enumerate() {
        if [&one.from, &one.name, &one.to]
            .into_iter()
            .any(String::is_empty)
        {
            return Err(InvalidMoves::Incomplete);
        }
        if moves[..index].iter().any(|other| other.name == one.name) {
            return Err(InvalidMoves::Twice(one.name.clone()));
        }
    }
    Ok(moves)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_read_in_their_order() {
        let text = br#"{"moves":[{"name":"b","from":"m1","to":"m2"},{"name":"a","from":"m2","to":"m1","x":1}]}"#;
        let names: Vec<_> = moves(text)
            .unwrap()
            .into_iter()
            .map(|one| one.name)
            .collect();
        assert_eq!(names, ["b", "a"]);
        for text in ["{}", r#"{"moves":[]}"#, r#"{"moves":null}"#] {
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
        let empty = br#"{"moves":[{"name":"","from":"m1","to":"m2"}]}"#;
        assert_eq!(moves(empty), Err(InvalidMoves::Incomplete));
        for text in [
            "",
            "null",
            r#"{"moves":7}"#,
            r#"{"moves":[7]}"#,
            r#"{"moves":[{"name":"a","from":"m1"}]}"#,
        ] {
            let fault = moves(text.as_bytes());
            assert!(matches!(fault, Err(InvalidMoves::Undecodable(_))), "{text}");
        }
    }
}
