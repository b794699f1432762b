//! Parts of statements that lists and searches choose: a closed set, never a client's text.

use hyperfleet_domain::page::OrderField;

/// The column that a list is sorted by.
pub(super) fn column(field: OrderField) -> &'static str {
    match field {
        OrderField::Id => "id",
        OrderField::Name => "name",
        OrderField::Kind => "kind",
        OrderField::Generation => "generation",
        OrderField::CreatedTime => "created_at",
        OrderField::CreatedBy => "created_by",
        OrderField::UpdatedTime => "updated_at",
        OrderField::UpdatedBy => "updated_by",
        OrderField::DeletedTime => "deleted_at",
        OrderField::DeletedBy => "deleted_by",
        OrderField::OwnerId => "owner_id",
    }
}

/// A configured text as SQL. Kinds are identifiers, and paths plain; quotes are doubled all the same.
pub(super) fn literal(kind: &str) -> String {
    format!("'{}'", kind.replace('\'', "''"))
}
