//! Protects the process from defects of the interpreter: panics are caught, and deep expressions run on a stack
//! that they cannot exhaust.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The stack of deep expressions: four times the need of the deepest accepted one in a debug build.
const STACK_BYTES: usize = 16 << 20;

thread_local! {
    static IS_EVALUATING: Cell<bool> = const { Cell::new(false) };
    static HAS_DEEP_STACK: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs an expression, whose panics are only failures of the expression: for programs that
/// report panics.
pub fn is_evaluating() -> bool {
    IS_EVALUATING.get()
}

/// `None` after a panic.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Option<T> {
    IS_EVALUATING.set(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    IS_EVALUATING.set(false);
    result.ok()
}

/// Runs `work` on a thread with a stack for deep expressions if `is_needed`, and on this thread otherwise.
/// Every deep expression requests such a stack by itself; a caller that runs several requests one for all.
///
/// # Errors
/// The thread cannot be created, or `work` panicked on it.
pub fn on_deep_stack<T: Send>(
    is_needed: bool,
    work: impl FnOnce() -> T + Send,
) -> Result<T, String> {
    if !is_needed || HAS_DEEP_STACK.get() {
        return Ok(work());
    }
    let done = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let running = thread.spawn_scoped(scope, || {
            HAS_DEEP_STACK.set(true);
            work()
        });
        running.ok()?.join().ok()
    });
    done.ok_or_else(|| "there is no stack for it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_inside_an_expression_is_distinguished_from_others() {
        assert_eq!(caught(is_evaluating), Some(true));
        assert!(!is_evaluating());
        assert_eq!(caught(|| assert!(!is_evaluating(), "within")), None);
        assert!(!is_evaluating());
    }

    #[test]
    fn one_deep_stack_serves_all_that_need_one() {
        let thread = || std::thread::current().id();
        assert_eq!(on_deep_stack(false, thread), Ok(thread()));
        let (outer, inner) =
            on_deep_stack(true, || (thread(), on_deep_stack(true, thread))).unwrap();
        assert_ne!(outer, thread());
        assert_eq!(inner, Ok(outer));
    }
}
