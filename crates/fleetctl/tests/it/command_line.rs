//! The command line itself: what needs no server.

use crate::program::run;

#[tokio::test]
async fn wrong_command_lines_end_with_status_two() {
    for arguments in [&["no-such-command"][..], &["list-units", "--no-such-flag"]] {
        let ran = run(&[], arguments).await;
        assert_eq!((ran.status, ran.output.as_str()), (2, ""), "{arguments:?}");
        assert!(ran.errors.starts_with("error: "), "{ran:?}");
    }
}
