//! Columns of lists, and the user's selection.

/// A column of a list of `T`; `C` is further input of its text.
pub(crate) struct Column<T, C> {
    /// Its name in `--fields`; in capitals it is the heading.
    pub name: &'static str,
    pub text: fn(&T, &C) -> String,
}

/// An invalid selection, in the words of the older fleetctl.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidFields {
    #[error("Must define output format")]
    None,
    #[error("Invalid key in output format: {name:?}; known are {known}")]
    Unknown { name: String, known: String },
}

/// The columns of a comma list, or the default ones.
///
/// # Errors
/// An unknown column, or none.
pub(crate) fn chosen<'c, T, C>(
    columns: &'c [Column<T, C>],
    fields: Option<&str>,
    usual: &str,
) -> Result<Vec<&'c Column<T, C>>, InvalidFields> {
    let fields = fields.unwrap_or(usual);
    if fields.is_empty() {
        return Err(InvalidFields::None);
    }
    let find = |name: &str| {
        let found = columns.iter().find(|column| column.name == name);
        found.ok_or_else(|| InvalidFields::Unknown {
            name: name.to_owned(),
            known: columns
                .iter()
                .map(|c| c.name)
                .collect::<Vec<_>>()
                .join(", "),
        })
    };
    fields.split(',').map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_chosen_in_the_order_that_users_want() {
        let columns: [Column<(), ()>; 2] = ["unit", "hash"].map(|name| Column {
            name,
            text: |(), ()| String::new(),
        });
        let names = |fields| {
            let chosen = chosen(&columns, fields, "unit")?;
            Ok::<_, InvalidFields>(chosen.iter().map(|c| c.name).collect::<Vec<_>>())
        };
        assert_eq!(names(None), Ok(vec!["unit"]));
        assert_eq!(names(Some("hash,unit")), Ok(vec!["hash", "unit"]));
        assert_eq!(
            names(Some("")).unwrap_err().to_string(),
            "Must define output format"
        );
        let unknown = names(Some("unit,x")).unwrap_err().to_string();
        assert_eq!(
            unknown,
            "Invalid key in output format: \"x\"; known are unit, hash"
        );
    }
}
