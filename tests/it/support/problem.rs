use serde_json::Value;

use super::{Answer, RawAnswer};

/// The members of every problem.
pub(crate) trait Problem {
    fn status(&self) -> u16;
    fn named_header(&self, name: &str) -> Option<&str>;
    fn body(&self) -> &Value;

    /// Checks that it is a complete problem, and returns its code without the common prefix.
    fn code(&self) -> &str {
        let body = self.body();
        let status = self.status();
        assert!(status >= 400, "{status} is no problem: {body}");
        let kind = self.named_header("content-type");
        assert_eq!(kind, Some("application/problem+json"), "{status} {body}");
        assert_eq!(body["status"], status, "{body}");
        let text = |name: &str| body[name].as_str().unwrap_or_else(|| panic!("{body}"));
        assert_eq!(self.named_header("x-request-id"), Some(text("trace_id")));
        assert!(!text("trace_id").is_empty(), "{body}");
        assert!(text("instance").starts_with('/'), "{body}");
        assert!(!text("detail").is_empty() && !text("title").is_empty());
        assert!(
            text("type").starts_with("https://api.hyperfleet.io/errors/"),
            "{body}"
        );
        assert!(text("timestamp").ends_with('Z'), "{body}");
        if let Some(errors) = body["errors"].as_array() {
            assert!(!errors.is_empty(), "{body}");
            for error in errors {
                assert!(error["field"].is_string(), "{body}");
                assert!(error["message"].is_string(), "{body}");
                assert!(error["constraint"].is_string(), "{body}");
            }
        }
        let code = text("code");
        code.strip_prefix("HYPERFLEET-")
            .unwrap_or_else(|| panic!("{code}"))
    }

    /// The fields with violations, in their order.
    fn fields(&self) -> Vec<&str> {
        let errors = self.body()["errors"].as_array();
        let errors = errors.map_or(&[][..], Vec::as_slice);
        errors
            .iter()
            .map(|error| error["field"].as_str().unwrap())
            .collect()
    }
}

impl Problem for Answer {
    fn status(&self) -> u16 {
        self.status
    }

    fn named_header(&self, name: &str) -> Option<&str> {
        self.header(name)
    }

    fn body(&self) -> &Value {
        &self.body
    }
}

impl Problem for RawAnswer {
    fn status(&self) -> u16 {
        self.status
    }

    fn named_header(&self, name: &str) -> Option<&str> {
        self.header(name)
    }

    fn body(&self) -> &Value {
        &self.body
    }
}
