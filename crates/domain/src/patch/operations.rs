//! JSON Patch (RFC 6902) with limits: of the number of operations, and of what they make of a document.

use json_patch::jsonptr::{Pointer, PointerBuf};
use json_patch::{
    AddOperation, CopyOperation, MoveOperation, PatchErrorKind, PatchOperation, RemoveOperation,
    ReplaceOperation, TestOperation,
};
use serde_json::Value;
use strum::{EnumString, IntoStaticStr};

use super::{PatchError, PatchMember};
use crate::json_limits::{DEPTH_MAX, DOCUMENT_BYTES_MAX, NESTS_MAX, Nesting, bytes_of};
use crate::{Constraint, Violation, Violations, excerpt};

/// Operations that change patchable members only, in their order.
#[derive(Debug, Clone)]
pub struct JsonPatch(Vec<PatchOperation>);

/// An unchecked operation, as a client sends it.
#[derive(Debug, Clone, Default)]
pub struct RequestedOperation {
    pub op: Option<String>,
    pub path: Option<String>,
    pub from: Option<String>,
    pub value: Option<Value>,
}

/// An operation that does not fit the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("operations[{index}] ({operation}): {reason}")]
pub struct PatchConflict {
    /// Position of the operation, from 0.
    pub index: usize,
    /// The operation with its path.
    pub operation: String,
    pub reason: ConflictReason,
}

/// Why an operation does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConflictReason {
    #[error("the resource has another value")]
    TestFailed,
    #[error("the resource has no such path")]
    NoPath,
    #[error("the resource has no value at from")]
    NoFrom,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
enum Op {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
}

impl JsonPatch {
    /// Operations of one patch at most.
    pub const OPERATIONS_MAX: usize = 256;
    /// Elements of arrays that one patch may shift: each insertion at the beginning of a large array shifts all of them.
    const SHIFTS_MAX: usize = 10_000_000;

    /// Checks the operations.
    ///
    /// # Errors
    ///
    /// Every operation that is incomplete, or that names a member that a patch may not change.
    pub fn parse(requested: Vec<RequestedOperation>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        if requested.len() > Self::OPERATIONS_MAX {
            let message = format!(
                "a patch must have at most {} operations",
                Self::OPERATIONS_MAX
            );
            violations.push(Violation::new("operations", Constraint::Max, message));
            return Err(violations);
        }
        let mut operations = Vec::with_capacity(requested.len());
        for (index, requested) in requested.into_iter().enumerate() {
            match operation(requested) {
                Ok(operation) => operations.push(operation),
                Err((member, constraint, message)) => {
                    let field = format!("operations[{index}].{member}");
                    violations.push(Violation::new(field, constraint, message));
                }
            }
        }
        if violations.is_empty() {
            Ok(Self(operations))
        } else {
            Err(violations)
        }
    }

    /// Whether an operation reads or changes the member.
    pub(super) fn names(&self, member: PatchMember) -> bool {
        let is_of_member = |path: &Pointer| member_of(path) == Some(member);
        self.0.iter().any(|operation| {
            is_of_member(operation.path()) || from(operation).is_some_and(is_of_member)
        })
    }

    /// Whether an operation may change the member.
    pub(super) fn touches(&self, member: PatchMember) -> bool {
        let is_of_member = |path: &Pointer| member_of(path) == Some(member);
        self.0.iter().any(|operation| match operation {
            PatchOperation::Test(_) => false,
            PatchOperation::Move(moved) => is_of_member(&moved.from) || is_of_member(&moved.path),
            other => is_of_member(other.path()),
        })
    }

    /// Applies the operations, one by one.
    ///
    /// # Errors
    ///
    /// The first operation that does not fit, or that would exceed a limit.
    pub(super) fn apply(&self, mut document: Value) -> Result<Value, PatchError> {
        let mut effort = Effort::default();
        for (index, operation) in self.0.iter().enumerate() {
            let admitted = effort.admit(operation, &document);
            admitted.map_err(|message| {
                let field = format!("operations[{index}]");
                Violation::new(field, Constraint::Max, message)
            })?;
            let applied = json_patch::patch_unsafe(&mut document, std::slice::from_ref(operation));
            applied.map_err(|error| {
                PatchError::Conflict(PatchConflict {
                    index,
                    operation: described(operation),
                    reason: error.kind.into(),
                })
            })?;
        }
        Ok(document)
    }
}

impl From<PatchErrorKind> for ConflictReason {
    fn from(kind: PatchErrorKind) -> Self {
        match kind {
            PatchErrorKind::TestFailed => Self::TestFailed,
            PatchErrorKind::InvalidFromPointer => Self::NoFrom,
            // A move into itself is refused when the patch is read.
            _ => Self::NoPath,
        }
    }
}

/// What the operations so far have taken beyond what is in the body.
#[derive(Debug, Default)]
struct Effort {
    copied_bytes: usize,
    copied_nests: usize,
    /// Elements of arrays that may have been shifted.
    shifts: usize,
}

impl Effort {
    /// Checks, before an operation is applied, that the document stays within its limits: copies that double a value
    /// again and again exhaust memory, a deep document exhausts the stack, and shifts of a large array take time.
    fn admit(&mut self, operation: &PatchOperation, document: &Value) -> Result<(), String> {
        self.shifts += shifts(operation, document);
        if self.shifts > JsonPatch::SHIFTS_MAX {
            let max = JsonPatch::SHIFTS_MAX;
            return Err(format!(
                "the operations shift more than {max} array elements"
            ));
        }
        let stored = |path: &Pointer| document.pointer(path.as_str());
        let (path, value) = match operation {
            PatchOperation::Add(add) => (&add.path, Some(&add.value)),
            PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value)),
            PatchOperation::Move(moved) => (&moved.path, stored(&moved.from)),
            PatchOperation::Copy(copy) => (&copy.path, stored(&copy.from)),
            PatchOperation::Remove(_) | PatchOperation::Test(_) => return Ok(()),
        };
        let Some(value) = value else {
            return Ok(());
        };
        let Nesting { depth, nests } = Nesting::of(value);
        if path.count() + depth > DEPTH_MAX {
            return Err(format!(
                "the result is nested deeper than {DEPTH_MAX} levels"
            ));
        }
        if matches!(operation, PatchOperation::Copy(_)) {
            self.copied_nests += nests;
            self.copied_bytes += bytes_of(value);
        }
        if self.copied_nests > NESTS_MAX {
            return Err(format!(
                "copies add more than {NESTS_MAX} arrays and objects"
            ));
        }
        if self.copied_bytes > DOCUMENT_BYTES_MAX {
            return Err(format!("copies add more than {DOCUMENT_BYTES_MAX} bytes"));
        }
        Ok(())
    }
}

/// The elements of the arrays that an operation inserts into or removes from.
fn shifts(operation: &PatchOperation, document: &Value) -> usize {
    let elements = |path: &Pointer| {
        let parent = path
            .parent()
            .and_then(|parent| document.pointer(parent.as_str()));
        parent.and_then(Value::as_array).map_or(0, Vec::len)
    };
    match operation {
        PatchOperation::Replace(_) | PatchOperation::Test(_) => 0,
        PatchOperation::Move(moved) => elements(&moved.from) + elements(&moved.path),
        PatchOperation::Add(_) | PatchOperation::Remove(_) | PatchOperation::Copy(_) => {
            elements(operation.path())
        }
    }
}

/// The member with the violation, and the violation.
type OperationError = (&'static str, Constraint, String);

fn operation(requested: RequestedOperation) -> Result<PatchOperation, OperationError> {
    let op = requested.op.ok_or_else(|| missing("op"))?;
    let op = op.parse().map_err(|_| {
        let message = "op must be add, remove, replace, move, copy or test".to_owned();
        ("op", Constraint::Enum, message)
    })?;
    let path = pointer("path", requested.path)?;
    let value = || requested.value.ok_or_else(|| missing("value"));
    Ok(match op {
        Op::Add => PatchOperation::Add(AddOperation {
            value: value()?,
            path,
        }),
        Op::Remove => PatchOperation::Remove(RemoveOperation { path }),
        Op::Replace => PatchOperation::Replace(ReplaceOperation {
            value: value()?,
            path,
        }),
        Op::Test => PatchOperation::Test(TestOperation {
            value: value()?,
            path,
        }),
        Op::Move => {
            let from = pointer("from", requested.from)?;
            if path.starts_with(&from) && path != from {
                let message = "a value cannot be moved into itself".to_owned();
                return Err(("path", Constraint::Format, message));
            }
            PatchOperation::Move(MoveOperation { from, path })
        }
        Op::Copy => PatchOperation::Copy(CopyOperation {
            from: pointer("from", requested.from)?,
            path,
        }),
    })
}

fn missing(name: &'static str) -> OperationError {
    (name, Constraint::Required, format!("{name} is required"))
}

/// A JSON Pointer (RFC 6901) into a patchable member.
fn pointer(name: &'static str, text: Option<String>) -> Result<PointerBuf, OperationError> {
    let text = text.ok_or_else(|| missing(name))?;
    let Ok(pointer) = PointerBuf::parse(text) else {
        let message = format!("{name} must be a JSON Pointer such as /spec/region");
        return Err((name, Constraint::Format, message));
    };
    if member_of(&pointer).is_none() {
        let message = format!(
            "{name} must begin with /labels, /references or /spec: a patch changes nothing else"
        );
        return Err((name, Constraint::Enum, message));
    }
    Ok(pointer)
}

fn member_of(path: &Pointer) -> Option<PatchMember> {
    path.first()?.decoded().parse().ok()
}

fn from(operation: &PatchOperation) -> Option<&Pointer> {
    match operation {
        PatchOperation::Move(moved) => Some(&moved.from),
        PatchOperation::Copy(copy) => Some(&copy.from),
        PatchOperation::Add(_)
        | PatchOperation::Remove(_)
        | PatchOperation::Replace(_)
        | PatchOperation::Test(_) => None,
    }
}

/// The operation without its value, for a message.
fn described(operation: &PatchOperation) -> String {
    let op = match operation {
        PatchOperation::Add(_) => Op::Add,
        PatchOperation::Remove(_) => Op::Remove,
        PatchOperation::Replace(_) => Op::Replace,
        PatchOperation::Move(_) => Op::Move,
        PatchOperation::Copy(_) => Op::Copy,
        PatchOperation::Test(_) => Op::Test,
    };
    let (op, path): (&str, _) = (op.into(), excerpt(operation.path().as_str()));
    match from(operation) {
        Some(from) => format!("{op} {} to {path}", excerpt(from.as_str())),
        None => format!("{op} {path}"),
    }
}
