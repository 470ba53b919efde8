//! The state of a script that waits, as bytes that any later engine can take up.
//!
//! It does not know when a state is kept, nor where. Read next: `scripts`.

use std::sync::Arc;

use ciel_graph::Checkpoint;
use ciel_skywriting::code::Code;
use ciel_skywriting::machine::{Machine, ScriptEnvironment};
use ciel_skywriting::wire::LoadError;

use crate::script::Script;

/// What a script goes on with.
pub(crate) struct Restored {
    pub(crate) machine: Machine,
    /// Whether it had printed.
    pub(crate) printed: bool,
    /// Handles in its table; none for a machine at its start.
    pub(crate) handles: Option<u32>,
}

impl Restored {
    /// A machine at its start.
    pub(crate) fn fresh(machine: Machine) -> Restored {
        Restored {
            machine,
            printed: false,
            handles: None,
        }
    }
}

/// The state of a script that waits. From now on it asks for packages anew, as it will when it is
/// taken up from here.
pub(crate) fn take(script: &mut Script) -> Checkpoint {
    script.packages.clear();
    let saved = script.machine.save();
    let count = u32::try_from(saved.references.len()).expect("handles fit in 32 bits");
    let mut state = Vec::with_capacity(saved.bytes.len() + HEAD_BYTES);
    state.push(u8::from(script.printed));
    state.extend_from_slice(&count.to_be_bytes());
    state.extend_from_slice(&saved.bytes);
    let numbers = &script.numbers;
    let kept = saved.references.into_iter();
    let kept = kept.map(|handle| numbers.of_script(handle));
    Checkpoint {
        state: state.into(),
        kept: kept.collect(),
    }
}

const HEAD_BYTES: usize = 5;

/// What a script goes on with from that state.
///
/// # Errors
/// The state is of another program, or damaged.
pub(crate) fn load(
    state: &[u8],
    code: Arc<Code>,
    surroundings: Arc<ScriptEnvironment>,
) -> Result<Restored, LoadError> {
    let Some((&[printed, ref count @ ..], machine)) = state.split_first_chunk::<HEAD_BYTES>()
    else {
        let what = "they are too short";
        return Err(LoadError::Damaged { what });
    };
    let handles = count
        .iter()
        .fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    Ok(Restored {
        machine: Machine::load(code, machine, surroundings)?,
        printed: printed == 1,
        handles: Some(handles),
    })
}
