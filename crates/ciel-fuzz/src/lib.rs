//! Random changes of known inputs, for everything that reads bytes of others.
//!
//! A [`Target`] is a reader with its corpus: the protocol's decoder, the journal's reader, those of
//! structured files and of archives of kept results, saved machines of scripts, the front end of
//! scripts, and whole scripts.
//! [`fuzz`] changes inputs of the corpus and hands them over. Every answer is fine, an error as
//! well; a panic is a [`Finding`]. Inputs with an answer that was not met before join the pool, so
//! that changes pile up. Same seed,
//! same inputs. It does not know what the bytes mean. Read next: `change`, then `targets`.

mod change;
mod targets;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use change::Changes;
pub use targets::TARGETS;

/// Inputs of a pool at most; later ones that are new are counted and not kept.
const POOL_INPUTS_MAX: usize = 4_096;

/// A reader of foreign bytes.
#[derive(Debug)]
pub struct Target {
    /// Name for people.
    pub name: &'static str,
    /// Inputs that it reads well, from files of the repository.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// Reads an input and says in a few words what came of it. It panics if a promise is broken.
    pub read: fn(&[u8]) -> String,
    /// Different answers that ten thousand inputs give at least; fewer prove nothing.
    pub answers_min: usize,
}

/// An input that broke a promise.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// The input.
    pub input: Vec<u8>,
    /// What the panic said.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.input.escape_ascii();
        write!(f, "{}\nwith the input: b\"{shown}\"", self.message)
    }
}

/// Reads the corpus of a target, then `cases` changed inputs.
///
/// Returns how often each answer was given.
///
/// # Errors
/// The first input that breaks a promise.
pub fn fuzz(target: &Target, seed: u64, cases: u64) -> Result<BTreeMap<String, u64>, Finding> {
    let mut pool = (target.corpus)();
    assert!(!pool.is_empty(), "the corpus of {} is empty", target.name);
    let mut answers = BTreeMap::new();
    for input in &pool {
        *answers.entry(read(target, input)?).or_default() += 1;
    }
    let mut changes = Changes::new(seed);
    for _ in 0..cases {
        let input = changes.next(&pool);
        let answer = read(target, &input)?;
        let count: &mut u64 = answers.entry(answer).or_default();
        *count += 1;
        if *count == 1 && pool.len() < POOL_INPUTS_MAX {
            pool.push(input);
        }
    }
    Ok(answers)
}

fn read(target: &Target, input: &[u8]) -> Result<String, Finding> {
    catch_unwind(AssertUnwindSafe(|| (target.read)(input))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Finding {
            input: input.to_vec(),
            message: text.unwrap_or("a panic without a message").to_string(),
        }
    })
}
