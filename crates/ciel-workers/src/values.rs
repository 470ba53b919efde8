//! Objects that a task gives by value, with the references inside.
//!
//! It does not know what they are given for. Read next: `requests`.

use ciel_model::{Handle, Refused, Value};
use ciel_protocol::wire::Data;

use crate::host::{Failed, Host};
use crate::objects::{form_of, inline, stored};
use crate::task::WorkerTask;
use crate::turn::Turn;

/// An object that a task gives by value; `repeated` if an earlier run gave it, too.
pub(crate) fn value(
    turn: &mut Turn<'_>,
    task: &mut WorkerTask,
    given: Option<Data>,
    repeated: bool,
) -> Failed<Value<Handle>> {
    let given = given.unwrap_or_default();
    let references = known_handles(turn.host, task, &given.references)?;
    let content = match inline(&given.data) {
        Some(content) => content,
        None => {
            let name = task.files.fresh_name();
            // What is repeated is stored already, and only compared.
            match repeated {
                true => stored(name, &given.data),
                false => turn.host.put(task.label(), name, &given.data)?,
            }
        }
    };
    Ok(Value {
        form: form_of(&given.form, &given.r#type),
        content,
        references,
    })
}

/// Handles of the task; what is stored with them is stored only if the task has all of them.
pub(crate) fn known_handles(
    host: &mut dyn Host,
    task: &WorkerTask,
    numbers: &[u32],
) -> Failed<Vec<Handle>> {
    let handles: Vec<Handle> = numbers.iter().copied().map(Handle).collect();
    if handles.is_empty() {
        return Ok(handles);
    }
    let settled = host.settled(task.attempt.key(), &handles);
    let unknown = handles
        .iter()
        .zip(settled)
        .find(|(_, known)| known.is_none());
    match unknown {
        None => Ok(handles),
        Some((handle, _)) => {
            let message = format!("it used handle {}, which it does not have", handle.0);
            Err(task.refuse(Refused::new(message)))
        }
    }
}
