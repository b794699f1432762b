//! Expand, then contract: what a migration may do while the release before it is still serving.

use std::collections::BTreeSet;

use crate::records::{Release, Series};
use crate::statements::{Statement, statements};

/// What a comment of a statement begins with that takes something away.
const CONTRACT: &str = "contract: unused since ";
/// What a comment of a statement begins with that replaces something, so that the release before notices nothing.
const STAND_IN: &str = "stand-in: ";

/// What in these files, by name, the release before could not live with. `series` is that of the release being built.
pub(crate) fn breaches(
    files: &[(String, String)],
    releases: &[Release],
    series: Series,
) -> Vec<String> {
    let mut found = Vec::new();
    // Tables that no release knows may be changed as one likes.
    let mut new = BTreeSet::new();
    for (file, text) in files {
        let mut locking = 0;
        for statement in statements(text) {
            let expands = expands(&statement.words, &mut new);
            locking += usize::from(locks_a_table(&statement.words, &new));
            let Err(what) = expands else { continue };
            if has_stand_in(&statement) {
                continue;
            }
            if let Err(why) = contracts(&statement, releases, series) {
                found.push(format!("{file}: {what}: {why}"));
            }
        }
        // A file is a transaction, and requests take their locks in an order of their own.
        if locking > 1 {
            found.push(format!(
                "{file}: {locking} statements lock tables that are there, which ends in deadlocks with requests: \
                 one of them in each file"
            ));
        }
    }
    found
}

/// Whether writers of a table that was there before wait until the statement's transaction ends.
fn locks_a_table(words: &[String], new: &BTreeSet<String>) -> bool {
    let all: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_old = |words: &[&str]| !new.contains(name(words));
    let is_on_old = |word: &str| {
        let mut after = all.split(|&other| other == word).skip(1);
        after.any(is_old)
    };
    match all[..] {
        ["ALTER", "TABLE", ref rest @ ..]
        | ["INSERT", "INTO", ref rest @ ..]
        | ["UPDATE", ref rest @ ..] => is_old(rest),
        ["CREATE", "INDEX" | "TRIGGER", ..] | ["CREATE", "UNIQUE", "INDEX", ..] => is_on_old("ON"),
        ["CREATE", "TABLE", ..] => is_on_old("REFERENCES"),
        ["ALTER", "FUNCTION", ..] => false,
        ["ALTER" | "DELETE" | "DROP" | "TRUNCATE" | "DO", ..] => true,
        _ => false,
    }
}

/// Whether a statement takes away what a release has stopped using before.
fn contracts(statement: &Statement, releases: &[Release], series: Series) -> Result<(), String> {
    let Some((_, since)) = statement.comments.split_once(CONTRACT) else {
        return Err(format!(
            "the release before may rely on it; once a release does not, say `-- {CONTRACT}X.Y.Z`"
        ));
    };
    let since = since.split_whitespace().next().unwrap_or_default();
    if !releases.iter().any(|release| release.version == since) {
        return Err(format!("{since} is not released yet"));
    }
    if Series::of(since) >= series {
        return Err(format!("{since} is of the same series: wait for the next"));
    }
    Ok(())
}

/// Whether a statement takes away only what something else can do in its place, and says what does. That it does is for
/// the test of upgrades.
fn has_stand_in(statement: &Statement) -> bool {
    let all: Vec<&str> = statement.words.iter().map(String::as_str).collect();
    let is_named = statement
        .comments
        .split_once(STAND_IN)
        .is_some_and(|(_, stand_in)| !stand_in.trim().is_empty());
    is_named
        && match all[..] {
            ["DROP", "INDEX", ..] => true,
            ["ALTER", "TABLE", _, ref rest @ ..] => actions(rest)
                .into_iter()
                .all(|action| is_expansion(action) || is_replaceable(action)),
            _ => false,
        }
}

/// Whether an action takes away what only the server looks at: no statement names it.
fn is_replaceable(action: &[&str]) -> bool {
    match action {
        ["DROP", "CONSTRAINT", ..] | ["ALTER", "COLUMN", _, "DROP", "EXPRESSION"] => true,
        ["ADD", "CONSTRAINT", _, "CHECK", rest @ ..] => rest.ends_with(&["NOT", "VALID"]),
        _ => false,
    }
}

/// Whether a statement only adds what the release before need not know; else what it does.
fn expands(words: &[String], new: &mut BTreeSet<String>) -> Result<(), String> {
    let all: Vec<&str> = words.iter().map(String::as_str).collect();
    let what = || words.join(" ");
    if let ["CREATE", "TABLE", rest @ ..] = &all[..] {
        new.insert(name(rest).to_owned());
    }
    if !references_let_go(&all, new) {
        return Err(what());
    }
    match all[..] {
        ["CREATE", "UNIQUE", "INDEX", ref rest @ ..] => {
            let on = rest.iter().position(|&word| word == "ON");
            let table = on.map_or("", |on| name(&rest[on + 1..]));
            new.contains(table).then_some(()).ok_or_else(what)
        }
        ["CREATE", "OR", "REPLACE", kind, ..] | ["CREATE", kind, ..] if is_additive(kind) => Ok(()),
        // Its settings, not its name or its owner.
        ["ALTER", "FUNCTION", ref rest @ ..]
            if rest.contains(&"SET") && !rest.contains(&"SCHEMA") =>
        {
            Ok(())
        }
        [
            "ANALYZE" | "COMMENT" | "GRANT" | "INSERT" | "SELECT" | "SET" | "UPDATE",
            ..,
        ]
        | [] => Ok(()),
        ["ALTER", "TABLE", ref rest @ ..] if new.contains(name(rest)) => Ok(()),
        ["ALTER", "TABLE", ref rest @ ..] => {
            let skipped = rest
                .iter()
                .position(|&word| word == name(rest))
                .unwrap_or(0);
            let actions = actions(&rest[skipped + 1..]);
            let refused = actions.into_iter().find(|action| !is_expansion(action));
            refused.map_or(Ok(()), |action| {
                Err(format!("ALTER TABLE {} {}", name(rest), action.join(" ")))
            })
        }
        _ => Err(what()),
    }
}

/// Whether what is made is new. A function that is replaced keeps its types; that it does what it did is for the test of
/// upgrades.
fn is_additive(kind: &str) -> bool {
    let kinds = [
        "FUNCTION",
        "INDEX",
        "SEQUENCE",
        "STATISTICS",
        "TABLE",
        "TRIGGER",
        "TYPE",
        "VIEW",
    ];
    kinds.contains(&kind)
}

/// Whether rows of tables that were there before can be deleted by a release that does not know what refers to them.
fn references_let_go(words: &[&str], new: &BTreeSet<String>) -> bool {
    let references = words.split(|&word| word == "REFERENCES").skip(1);
    references.into_iter().all(|reference| {
        let mut clauses = reference.windows(3);
        new.contains(name(reference))
            || clauses.any(|three| matches!(three, ["ON", "DELETE", "CASCADE" | "SET"]))
    })
}

/// The first word that is a name.
fn name<'a>(words: &[&'a str]) -> &'a str {
    let is_name = |word: &&&str| !["IF", "NOT", "EXISTS", "ONLY"].contains(*word);
    words.iter().find(is_name).copied().unwrap_or_default()
}

/// What stands between the commas that are in no parentheses.
fn actions<'a>(words: &'a [&'a str]) -> Vec<&'a [&'a str]> {
    let mut depth = 0;
    let mut ends_action = |word: &&str| {
        depth += i32::from(*word == "(") - i32::from(*word == ")");
        depth == 0 && *word == ","
    };
    words.split(|word| ends_action(word)).collect()
}

/// Whether a table that was changed so takes every row that it took before, and gives no other ones.
fn is_expansion(action: &[&str]) -> bool {
    let has = |words: &[&str]| action.windows(words.len()).any(|window| window == words);
    match action {
        [
            "ADD",
            "CONSTRAINT" | "CHECK" | "UNIQUE" | "PRIMARY" | "FOREIGN" | "EXCLUDE",
            ..,
        ] => false,
        // Rows of the release before lack the column.
        ["ADD", ..] => {
            let is_filled = has(&["DEFAULT"]) || has(&["GENERATED"]);
            let is_needed = has(&["NOT", "NULL"]) || has(&["PRIMARY", "KEY"]);
            // All of them would have the same value.
            let is_unique = has(&["UNIQUE"]) && is_filled;
            (is_filled || !is_needed) && !is_unique
        }
        ["ALTER", "COLUMN", _, rest @ ..] | ["ALTER", _, rest @ ..] => matches!(
            rest,
            [
                "SET",
                "DEFAULT" | "STATISTICS" | "STORAGE" | "COMPRESSION",
                ..
            ]
        ),
        // Parameters of storage.
        ["SET", "(", ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn check(sql: &str) -> Vec<String> {
        let releases = ["0.1.0", "0.2.0", "0.3.0"].map(|version| Release {
            version: version.to_owned(),
            migrations: BTreeMap::new(),
        });
        let file = ("new.sql".to_owned(), sql.to_owned());
        breaches(&[file], &releases, Series::of("0.3.1-dev"))
    }

    #[test]
    fn what_only_adds_is_allowed() {
        for sql in [
            "ALTER FUNCTION f(uuid, jsonb) SET search_path FROM CURRENT",
            "ALTER TABLE a ADD COLUMN b text",
            "ALTER TABLE a ADD b text, ADD COLUMN IF NOT EXISTS c int NOT NULL DEFAULT 0",
            "ALTER TABLE a ADD b numeric(3, 1) NOT NULL DEFAULT round(1.5, 1)",
            "ALTER TABLE ONLY a ADD b int NOT NULL GENERATED ALWAYS AS (c + 1) STORED",
            "ALTER TABLE a ADD b int REFERENCES c (id) ON DELETE SET NULL UNIQUE",
            "CREATE TABLE a (b int REFERENCES a, c int REFERENCES d (x, y) ON UPDATE CASCADE ON DELETE CASCADE)",
            "ALTER TABLE a ALTER COLUMN b SET DEFAULT 1, ALTER c SET STATISTICS 100, SET (fillfactor = 80)",
            "CREATE TABLE a (b int NOT NULL PRIMARY KEY); CREATE UNIQUE INDEX x ON a (b);
             ALTER TABLE a DROP COLUMN b, ADD CHECK (c > 1)",
            "CREATE INDEX x ON a (b) WHERE c",
            "CREATE VIEW v AS SELECT 1; COMMENT ON TABLE a IS 'DROP TABLE a'",
            "CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN DROP TABLE a; DELETE FROM b; END $$",
            "UPDATE a SET b = 'x' WHERE b IS NULL",
            "INSERT INTO a VALUES (1)",
            "-- DROP TABLE a\n/* DROP TABLE a; */",
        ] {
            assert_eq!(check(sql), Vec::<String>::new(), "{sql}");
        }
    }

    #[test]
    fn what_the_release_before_may_rely_on_is_refused() {
        for sql in [
            "drop table a",
            "ALTER TABLE a DROP COLUMN b",
            "ALTER TABLE a ADD c int, DROP b",
            "ALTER TABLE IF EXISTS a DROP CONSTRAINT a_check",
            "ALTER TABLE a RENAME COLUMN b TO c",
            "ALTER TABLE a RENAME TO b",
            "ALTER TABLE a ALTER COLUMN b TYPE bigint",
            "ALTER TABLE a ALTER b SET DATA TYPE bigint",
            "ALTER TABLE a ALTER COLUMN b SET NOT NULL",
            "ALTER TABLE a ALTER COLUMN b DROP NOT NULL",
            "ALTER TABLE a ALTER COLUMN b DROP DEFAULT",
            "ALTER TABLE a ADD COLUMN b int NOT NULL",
            "ALTER TABLE a ADD COLUMN b int DEFAULT 1 UNIQUE",
            "ALTER TABLE a ADD COLUMN b int PRIMARY KEY",
            "ALTER TABLE a ADD CONSTRAINT c CHECK (b > 0) NOT VALID",
            "ALTER TABLE a ADD UNIQUE (b)",
            "ALTER TABLE a ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE a SET SCHEMA b",
            "CREATE TABLE a (b int REFERENCES c (id), d int REFERENCES e ON DELETE CASCADE)",
            "ALTER TABLE a ADD COLUMN b int REFERENCES c ON DELETE RESTRICT",
            "CREATE UNIQUE INDEX x ON a (b)",
            "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS x ON ONLY a (b)",
            "CREATE RULE r AS ON INSERT TO a DO INSTEAD NOTHING",
            "CREATE TABLE b (c int); ALTER TABLE b ADD d int; ALTER TABLE a DROP COLUMN c",
            "DROP INDEX x",
            "DROP FUNCTION f()",
            "ALTER FUNCTION f() RENAME TO g",
            "ALTER FUNCTION f() SET SCHEMA b",
            "ALTER TYPE t ADD VALUE 'x'",
            "TRUNCATE a",
            "DELETE FROM a",
            "REVOKE SELECT ON a FROM b",
            // Nobody sees what is in it.
            "DO $$ BEGIN PERFORM 1; END $$",
        ] {
            assert_one_error(sql, "may rely on it");
        }
    }

    #[test]
    fn what_something_else_stands_in_for_may_go_if_it_is_named() {
        for sql in [
            "DROP INDEX x",
            "ALTER TABLE a DROP CONSTRAINT b, ADD CONSTRAINT c CHECK (is_whole(a.*)) NOT VALID",
            "ALTER TABLE a ALTER COLUMN b DROP EXPRESSION, ADD COLUMN c int",
        ] {
            let found = check(&format!("-- stand-in: the index y\n{sql}"));
            assert_eq!(found, Vec::<String>::new(), "{sql}");
            assert_one_error(sql, "may rely on it");
            assert_one_error(&format!("-- stand-in: \n{sql}"), "may rely on it");
        }
        for sql in [
            "DROP TABLE a",
            "ALTER TABLE a DROP COLUMN b",
            "ALTER TABLE a DROP CONSTRAINT b, DROP COLUMN c",
            "ALTER TABLE a ADD CONSTRAINT c CHECK (b > 0)",
            "ALTER TABLE a ADD CONSTRAINT c UNIQUE (b)",
        ] {
            assert_one_error(
                &format!("-- stand-in: the index y\n{sql}"),
                "may rely on it",
            );
        }
    }

    /// A file has this error, and no other.
    fn assert_one_error(sql: &str, words: &str) {
        let found = check(sql);
        assert_eq!(found.len(), 1, "{sql}: {found:?}");
        assert!(found[0].contains(words), "{found:?}");
    }

    #[test]
    fn a_file_locks_one_table_that_is_there_by_one_statement() {
        for sql in [
            "ALTER TABLE a ADD b int; ALTER TABLE c ADD b int",
            "CREATE INDEX x ON a (b); ALTER TABLE a ADD b int",
            "CREATE TRIGGER t AFTER INSERT ON a EXECUTE FUNCTION f(); CREATE INDEX x ON a (b)",
            "CREATE TABLE b (c int REFERENCES a ON DELETE CASCADE); UPDATE a SET b = 1",
        ] {
            assert_one_error(sql, "deadlocks");
        }
        let new = "CREATE TABLE a (b int); CREATE INDEX x ON a (b); CREATE INDEX y ON a (b);
            CREATE TRIGGER t AFTER INSERT ON a EXECUTE FUNCTION f(); INSERT INTO a VALUES (1); ALTER TABLE c ADD d int";
        assert_eq!(check(new), Vec::<String>::new());
    }

    #[test]
    fn what_a_release_of_an_older_series_stopped_using_may_go() {
        let drop = |comment: &str| check(&format!("-- {comment}\nALTER TABLE a DROP COLUMN b;"));
        assert_eq!(drop("contract: unused since 0.2.0"), Vec::<String>::new());
        assert_eq!(
            drop("Was replaced.\n-- contract: unused since 0.1.0 in all statements"),
            Vec::<String>::new()
        );
        for (comment, word) in [
            ("unused since 0.2.0", "may rely on it"),
            ("contract: unused since 0.3.0", "of the same series"),
            ("contract: unused since 0.4.0", "not released"),
            ("contract: unused since ", "not released"),
        ] {
            let found = drop(comment);
            assert!(
                found.len() == 1 && found[0].contains(word),
                "{comment}: {found:?}"
            );
        }
        // It speaks of one statement.
        let two = "-- contract: unused since 0.2.0\nDROP TABLE a; DROP TABLE b;";
        let found = check(two);
        assert!(
            found[0].contains("DROP TABLE B: the release before"),
            "{found:?}"
        );
    }
}
