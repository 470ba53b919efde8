//! Messages about a script: what is wrong, where, and what to do about it.
//!
//! It knows neither the grammar nor the machine. Read next: `front` makes them before anything
//! runs, `machine` while it runs.

use crate::hir::Span;

/// One message about one place of a script.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Diagnostic {
    /// Stable, for programs: `syntax`, `unknown-name`, `arguments`, ….
    pub code: String,
    /// What is wrong, one sentence without a full stop.
    pub message: String,
    /// The place.
    pub span: Span,
    /// What stands beside the caret; empty for none.
    pub label: String,
    /// What to do about it.
    pub hint: Option<String>,
}
