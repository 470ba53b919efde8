//! What a call asks for, over the defaults of its run.
//!
//! Scripts and workers write it in ways of their own; what it means is said once. It does not know
//! how it is written. Read next: `task`, for what a task gets.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{Options, limits};

/// What a call asks for; what is absent is as the run has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallOptions {
    /// Thousandths of a core.
    pub millicores: Option<u32>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Thousandths of a piece of any other resource.
    pub others: BTreeMap<Arc<str>, u32>,
    /// Further attempts after a failure; more than [`limits::RETRIES_MAX`] are that many.
    pub retries: Option<u32>,
    /// Longest time of one attempt, in microseconds.
    pub timeout_us: Option<u64>,
    /// Run only if somebody asks for an output.
    pub lazy: bool,
    /// Show what a command writes while it runs.
    pub live: bool,
    /// Keep the result for later runs, or do not.
    pub keep: Option<bool>,
}

impl CallOptions {
    /// What the task gets in a run with those defaults.
    pub fn over(self, defaults: Options) -> Options {
        let mut options = defaults;
        let resources = &mut options.resources;
        resources.millicores = self.millicores.unwrap_or(resources.millicores);
        resources.memory_bytes = self.memory_bytes.or(resources.memory_bytes);
        resources.others.extend(self.others);
        let retries = self.retries.map(|retries| retries.min(limits::RETRIES_MAX));
        options.retries = retries.unwrap_or(options.retries);
        options.timeout_us = self.timeout_us.or(options.timeout_us);
        options.lazy |= self.lazy;
        options.live |= self.live;
        options.keep = self.keep.or(options.keep);
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Resources;

    #[test]
    fn absent_options_are_as_the_run_has_them() {
        let defaults = Options {
            retries: 2,
            timeout_us: Some(7),
            keep: Some(true),
            ..Options::default()
        };
        assert_eq!(CallOptions::default().over(defaults.clone()), defaults);
        let asked = CallOptions {
            millicores: Some(250),
            memory_bytes: Some(1 << 20),
            others: BTreeMap::from([("gpu".into(), 1000)]),
            retries: Some(u32::MAX),
            lazy: true,
            keep: Some(false),
            ..CallOptions::default()
        };
        let expected = Options {
            resources: Resources {
                millicores: 250,
                memory_bytes: Some(1 << 20),
                others: BTreeMap::from([("gpu".into(), 1000)]),
            },
            retries: limits::RETRIES_MAX,
            lazy: true,
            keep: Some(false),
            ..defaults.clone()
        };
        assert_eq!(asked.over(defaults), expected);
    }
}
