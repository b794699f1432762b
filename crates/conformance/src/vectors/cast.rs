//! Maps the adapters of a vector to those of a server.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::checks::successful;
use crate::verdict::Verdict;

/// Which of the server's adapters stands for which of the vector's.
#[derive(Debug, Clone)]
pub(crate) struct Cast {
    pairs: Vec<(String, String)>,
}

impl Cast {
    /// By position; both lists have the same length.
    pub(crate) fn new(vector: &[String], server: &[String]) -> Self {
        let pairs = vector.iter().cloned().zip(server.iter().cloned());
        Self {
            pairs: pairs.collect(),
        }
    }

    /// The server's name of an adapter of the vector.
    pub(crate) fn adapter(&self, name: &str) -> String {
        let found = self.pairs.iter().find(|(vector, _)| vector == name);
        // An adapter that is not required stays so, whatever the server's names.
        found.map_or_else(|| format!("other-{name}"), |(_, server)| server.clone())
    }

    /// A condition of the vector as the server shows it: type, status, reason, message and generation.
    pub(crate) fn condition(&self, condition: &Value, generation: &str) -> Value {
        let kind = condition["type"].as_str().unwrap_or_default();
        let played = self
            .pairs
            .iter()
            .find(|(vector, _)| successful(vector) == kind);
        let kind = played.map_or(kind.to_owned(), |(_, server)| successful(server));
        let message = condition["message"]
            .as_str()
            .map(|message| self.message(message));
        json!({
            "type": kind,
            "status": condition["status"],
            "reason": condition["reason"],
            "message": message,
            "observed_generation": condition[generation],
        })
    }

    /// A message with the names in its lists replaced and sorted.
    fn message(&self, message: &str) -> String {
        let mut text = String::new();
        let mut rest = message;
        while let Some((before, (list, after))) = rest
            .split_once('[')
            .and_then(|(before, rest)| Some((before, rest.split_once(']')?)))
        {
            let names = list.split(", ").filter(|name| !name.is_empty());
            let mut names: Vec<_> = names.map(|name| self.adapter(name)).collect();
            names.sort();
            text.extend([before, "[", &names.join(", "), "]"]);
            rest = after;
        }
        text + rest
    }
}

/// Whether there are no reports yet, for which the older service has another message.
pub(crate) fn is_unreported(conditions: &[Value]) -> bool {
    let message = "Required adapters have not yet reported status";
    conditions
        .first()
        .is_some_and(|condition| condition["message"] == message)
}

/// Expects these conditions; those that the server derives by its own rules are ignored.
pub(crate) fn conditions_are(found: &Answer, expected: &[Value]) -> Verdict {
    let is_common = |kind: &str| {
        matches!(kind, "Reconciled" | "LastKnownReconciled") || kind.ends_with("Successful")
    };
    let shown = found
        .conditions()?
        .iter()
        .filter(|condition| condition["type"].as_str().is_some_and(is_common));
    let members = |condition: &Value| {
        json!({
            "type": condition["type"],
            "status": condition["status"],
            "reason": condition["reason"],
            "message": condition["message"],
            "observed_generation": condition["observed_generation"],
        })
    };
    let shown: Vec<_> = shown.map(members).collect();
    for (position, expected) in expected.iter().enumerate() {
        let shown = shown.get(position).unwrap_or(&Value::Null);
        if shown != expected {
            return Err(found.differs_in(
                format!("condition {position} is {expected}"),
                shown.to_string(),
            ));
        }
    }
    if shown.len() > expected.len() {
        let further = &shown[expected.len()];
        return Err(found.differs_in(
            format!("{} conditions", expected.len()),
            format!("{further}, too"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_adapters_of_the_server() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let cast = Cast::new(&names(&["a", "b"]), &names(&["z", "dns"]));
        let message =
            "Required adapters not reporting Available=True: [a, b]. Currently reporting: [a]";
        let expected =
            "Required adapters not reporting Available=True: [dns, z]. Currently reporting: [z]";
        assert_eq!(cast.message(message), expected);
        assert_eq!(cast.message("no list"), "no list");
    }
}
