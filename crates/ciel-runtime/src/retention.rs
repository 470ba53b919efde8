//! How much of the disk earlier runs may take: beyond it the oldest ended ones are removed. Their
//! number is bounded, too. Runs that can be resumed count, but are removed on request only. It does
//! not know the content of the folders. Read next: `ciel_view` for the recorded size of a run.

use ciel_store::{RunEntry, RunState, StateFolder, StoreError};
use ciel_view::listing::bytes_of_ended;

use crate::observer::{Observer, Report};

/// Ended runs that are kept, however small: each costs every start a look.
const ENDED_RUNS_MAX: usize = 1_000;

/// Runs named in a warning.
const NAMED_MAX: usize = 3;

/// A former run.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FormerRun {
    id: String,
    bytes: u64,
    ended: bool,
}

/// What to do about former runs that take too much.
#[derive(Debug, Default, PartialEq, Eq)]
struct Excess {
    /// Ids of ended runs to remove.
    remove: Vec<String>,
    /// What the others take, if these alone take too much.
    unended_bytes: Option<u64>,
}

/// Removes the oldest ended runs, as long as all former runs take more than `keep_bytes` or more
/// than [`ENDED_RUNS_MAX`] have ended, and warns if the bytes are still too many. `runs` are oldest
/// first; live ones and the one named `own` do not count.
///
/// # Errors
/// Those of removing runs.
pub(crate) fn make_room(
    state: &StateFolder,
    runs: &[RunEntry],
    own: &str,
    keep_bytes: u64,
    observer: &dyn Observer,
) -> Result<(), StoreError> {
    let former = runs.iter().filter(|run| run.id != own);
    let kept: Vec<FormerRun> = former.filter_map(kept).collect();
    let excess = excess(&kept, keep_bytes);
    if !excess.remove.is_empty() {
        state.remove(&excess.remove)?;
    }
    if let Some(bytes) = excess.unended_bytes {
        let unended: Vec<&str> = kept
            .iter()
            .filter(|run| !run.ended)
            .map(|run| run.id.as_str())
            .collect();
        let message = warning(&unended, bytes, keep_bytes);
        observer.report(Report::Warning {
            task: None,
            message: &message,
        });
    }
    Ok(())
}

fn kept(run: &RunEntry) -> Option<FormerRun> {
    let ended = match run.state {
        RunState::Alive { .. } => return None,
        RunState::Unended => false,
        RunState::Ended => true,
    };
    let bytes = match ended {
        true => bytes_of_ended(run),
        false => run.bytes_on_disk(),
    };
    Some(FormerRun {
        id: run.id.clone(),
        bytes,
        ended,
    })
}

fn excess(kept: &[FormerRun], keep_bytes: u64) -> Excess {
    let sum = |ended| -> u64 {
        let alike = kept.iter().filter(|run| run.ended == ended);
        alike.map(|run| run.bytes).sum()
    };
    let unended = sum(false);
    let mut total = unended.saturating_add(sum(true));
    let mut excess = Excess::default();
    let ended: Vec<&FormerRun> = kept.iter().filter(|run| run.ended).collect();
    for (position, run) in ended.iter().enumerate() {
        if total <= keep_bytes && ended.len() - position <= ENDED_RUNS_MAX {
            break;
        }
        total -= run.bytes;
        excess.remove.push(run.id.clone());
    }
    excess.unended_bytes = (total > keep_bytes).then_some(unended);
    excess
}

fn warning(unended: &[&str], bytes: u64, keep_bytes: u64) -> String {
    let mut named = unended[..unended.len().min(NAMED_MAX)].join(", ");
    if unended.len() > NAMED_MAX {
        named.push_str(&format!(" and {} more", unended.len() - NAMED_MAX));
    }
    let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
    format!(
        "interrupted runs take {} MiB, more than the {} MiB of --keep: {named}; \
         `ciel resume RUN` continues one, `ciel clean --all` removes all",
        mebibytes(bytes),
        mebibytes(keep_bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(id: &str, bytes: u64, ended: bool) -> FormerRun {
        let id = id.to_string();
        FormerRun { id, bytes, ended }
    }

    #[test]
    fn oldest_ended_runs_go_until_the_rest_fits() {
        let runs = [
            kept("a", 40, true),
            kept("b", 30, false),
            kept("c", 40, true),
            kept("d", 20, true),
        ];
        let removed = |keep_bytes| excess(&runs, keep_bytes).remove;
        assert_eq!(removed(130), Vec::<String>::new());
        assert_eq!(removed(129), ["a"]);
        assert_eq!(removed(90), ["a"]);
        assert_eq!(removed(89), ["a", "c"]);
        assert_eq!(excess(&runs, 50).unended_bytes, None);
    }

    #[test]
    fn runs_that_can_be_resumed_are_never_removed_but_told_of() {
        let runs = [
            kept("a", 40, false),
            kept("b", 10, true),
            kept("c", 5, false),
        ];
        let expected = Excess {
            remove: vec!["b".to_string()],
            unended_bytes: Some(45),
        };
        assert_eq!(excess(&runs, 44), expected);
        assert_eq!(excess(&runs, 45).unended_bytes, None);
    }

    #[test]
    fn number_of_ended_runs_is_bounded_too() {
        let id = |number: usize| format!("{number:05}");
        let mut runs: Vec<FormerRun> = (0..ENDED_RUNS_MAX + 2)
            .map(|number| kept(&id(number), 1, true))
            .collect();
        runs.push(kept("99999", 1, false));
        let expected = Excess {
            remove: vec![id(0), id(1)],
            unended_bytes: None,
        };
        assert_eq!(excess(&runs, u64::MAX), expected);
    }

    #[test]
    fn warning_names_a_few_runs() {
        let told = warning(&["a", "b", "c", "d", "e"], 5 << 20, 1 << 20);
        assert!(told.contains("take 5 MiB, more than the 1 MiB"), "{told}");
        assert!(told.contains("a, b, c and 2 more"), "{told}");
    }
}
