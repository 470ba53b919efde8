//! The native path of a task: the beginning and the end of a plain call that the engine starts.
//!
//! Such a task has no strand in Python until somebody asks for it: when it spawns, waits, prints or
//! asks its environment. If it ends before, with a plain value, its exit is sent here. Any other
//! start is left for `Connection.receive`, and any other end is that of its strand. Python calls
//! the function, in a greenlet: see `sdk/python/ciel/_native_tasks.py`. It does not know what
//! follows. Read next: `unpacked.rs`, `prefetch.rs`.

use std::time::Instant;

use ciel_model::Name;
use ciel_protocol::wire;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use super::{CALLED_BYTES_MIN, Here, Level, Running, Stack, here};
use crate::arguments;
use crate::connection::Connection;
use crate::counted::Counted;
use crate::environment::{Digits, has_entry};
use crate::names::seed_of_name;
use crate::unpacked::plain_call;
use crate::{engine_messages, reference};

/// A task that has begun here.
pub struct Started {
    /// The name of its strand.
    pub name: Name,
    tag: u32,
    start: wire::Start,
    function: Py<PyAny>,
    args: Py<PyTuple>,
    named: Py<PyDict>,
    at: Instant,
}

/// What tasks need of Python to begin and end here.
pub struct Tasks {
    /// Makes the strand of a task that has begun, see [`Stack::take_tasks`].
    stand: Py<PyAny>,
    /// Functions by the headers of payloads.
    functions: Py<PyDict>,
    /// What functions ask their environment, as far as that is known.
    asked: Py<PyDict>,
    /// Dictionaries in which something is only if Python has to look at each task.
    concerns: Vec<Py<PyDict>>,
}

/// The call of a task.
struct Call {
    function: Py<PyAny>,
    args: Py<PyTuple>,
    named: Py<PyDict>,
}

impl Tasks {
    /// What Python gives for them.
    pub fn new(
        stand: Py<PyAny>,
        functions: Py<PyDict>,
        asked: Py<PyDict>,
        concerns: Vec<Py<PyDict>>,
    ) -> Tasks {
        Tasks {
            stand,
            functions,
            asked,
            concerns,
        }
    }

    fn is_concerned(&self, py: Python<'_>) -> bool {
        self.concerns.iter().any(|one| !one.bind(py).is_empty())
    }

    /// Whether a function is known to ask nothing.
    fn asks_nothing(&self, py: Python<'_>, function: &Py<PyAny>) -> PyResult<bool> {
        let asked = self.asked.bind(py).get_item(function)?;
        asked.map_or(Ok(false), |asked| Ok(!asked.is_truthy()?))
    }

    /// The call of a start, if it is plain, and its function was imported.
    fn call_of(
        &self,
        py: Python<'_>,
        connection: &Connection,
        start: &wire::Start,
    ) -> PyResult<Option<Call>> {
        if !connection.is_usual(py, start.definition)? {
            return Ok(None);
        }
        let payload = PyBytes::new(py, &start.payload);
        let inputs = reference::list(py, &start.inputs)?;
        let Some((header, args, named)) = plain_call(&payload, inputs.bind(py))? else {
            return Ok(None);
        };
        let function = self.functions.bind(py).get_item(header)?;
        Ok(function.map(|function| Call {
            function: function.unbind(),
            args: args.unbind(),
            named: named.unbind(),
        }))
    }
}

impl Stack {
    /// Whether a task may begin here: none has its turn, and nothing concerns Python.
    fn awaits_task(&self, py: Python<'_>) -> bool {
        // A seed that the task before has removed from the environment is Python's to put there.
        let is_free = self.levels.is_empty() && has_entry() && !self.promoter.get().is_laid_down();
        let tasks = self.tasks.as_ref().filter(|_| is_free);
        tasks.is_some_and(|tasks| !tasks.is_concerned(py)) && !self.outside.is_touched(py)
    }
}

/// Whether the start of a task has come that may begin here.
pub fn may_begin(stack: &Stack, py: Python<'_>) -> bool {
    stack.awaits_task(py) && stack.promoter.get().connection().get().has_start()
}

/// Begins the task whose start comes next, in the greenlet to which `switch` switches, which runs
/// that code at that place of Python's stack: gives its function, arguments, and those that have
/// names. `None` if that is Python's to do; then nothing was done.
///
/// # Errors
/// Those of Python.
pub(crate) fn begin_task<'py>(
    switch: &Bound<'py, PyAny>,
    place: usize,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = switch.py();
    let Some(stack) = here(py).filter(|stack| stack.borrow().awaits_task(py)) else {
        return Ok(None);
    };
    let connection = stack.borrow().promoter.get().connection().clone_ref(py);
    let connection = connection.get();
    let Some((tag, start)) = connection.take_start() else {
        return Ok(None);
    };
    let call = {
        let stack = stack.borrow();
        let tasks = stack.tasks.as_ref().expect("it awaits a task");
        // What cannot be read fails in Python, as the task's failure.
        let call = tasks.call_of(py, connection, &start).ok().flatten();
        call.zip(engine_messages::names_of(&start).ok())
    };
    let Some((call, (position, name))) = call else {
        connection.return_start(tag, start);
        return Ok(None);
    };
    connection.begin_turn(py);
    Digits::of(seed_of_name(name)).tell();
    let begun = (&call.function, &call.args, &call.named).into_pyobject(py)?;
    let started = Started::new(position, (tag, start), call);
    stack.borrow_mut().begin_started(started, switch, place);
    Ok(Some(begun))
}

impl Started {
    fn new(name: Name, (tag, start): (u32, wire::Start), call: Call) -> Started {
        Started {
            name,
            tag,
            start,
            function: call.function,
            args: call.args,
            named: call.named,
            at: Instant::now(),
        }
    }
}

impl Stack {
    fn begin_started(&mut self, started: Started, switch: &Bound<'_, PyAny>, place: usize) {
        let more = started.name.0 as usize % CALLED_BYTES_MIN;
        self.levels.push(Level {
            strand: Running::Task(Box::new(started)),
            switch: switch.clone().unbind(),
            is_called: false,
            room: Some(place..place + CALLED_BYTES_MIN + more),
            kept: 0,
            row: None,
            below: None,
            is_aside: false,
        });
        self.is_here = true;
    }
}

/// The task that has begun here has returned `value`: sends its exit. False if its end is that of
/// its strand; then nothing was done.
///
/// # Errors
/// Those of Python, and of the connection.
pub(crate) fn end_task(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = value.py();
    let Some(stack) = here(py) else {
        return Ok(false);
    };
    let Some((tag, output)) = stack.borrow().exit_of(value)? else {
        return Ok(false);
    };
    let (connection, ended) = {
        let mut stack = stack.borrow_mut();
        stack.is_here = false;
        let connection = stack.promoter.get().connection().clone_ref(py);
        (connection, stack.levels.pop())
    };
    connection.get().end(py, tag, vec![output])?;
    drop(ended);
    Ok(true)
}

impl Stack {
    /// The tag and the output of the task that ends with that value, if nothing else is to be said.
    fn exit_of(&self, value: &Bound<'_, PyAny>) -> PyResult<Option<(u32, wire::Output)>> {
        let py = value.py();
        let (Some(level), Some(tasks)) = (self.levels.last(), &self.tasks) else {
            return Ok(None);
        };
        let Running::Task(started) = &level.strand else {
            return Ok(None);
        };
        let Some((form, data)) = arguments::object(value) else {
            return Ok(None);
        };
        let is_plain = !tasks.is_concerned(py)
            && tasks.asks_nothing(py, &started.function)?
            && !self.contexts.has_any(py, &level.switch)?
            && self.is_quiet(py);
        let value = wire::Data {
            data: data.into(),
            form: form.to_owned(),
            references: Vec::new(),
            r#type: String::new(),
        };
        let output = wire::Output {
            output: 0,
            value: Some(value),
        };
        Ok(is_plain.then_some((started.tag, output)))
    }
}

/// Makes the strand of the task that has begun here, which is the outermost.
///
/// # Errors
/// Those of Python.
pub(super) fn stand(stack: &Here<'_>) -> PyResult<Py<PyAny>> {
    let py = stack.py();
    let (stand, connection) = {
        let stack = stack.borrow();
        let tasks = stack.tasks.as_ref().expect("a task has begun here");
        let connection = stack.promoter.get().connection().clone_ref(py);
        (tasks.stand.clone_ref(py), connection)
    };
    let (message, function, args, named, at) = match &stack.borrow().levels[0].strand {
        Running::Task(started) => (
            engine_messages::started(started.tag, started.start.clone()),
            started.function.clone_ref(py),
            started.args.clone_ref(py),
            started.named.clone_ref(py),
            started.at,
        ),
        Running::Strand(_) | Running::Inside(_) => unreachable!("it has a strand already"),
    };
    let start = connection.get().to_python(py, message)?;
    let elapsed_s = at.elapsed().as_secs_f64();
    let made = stand
        .bind(py)
        .call1((start, (function, args, named), elapsed_s))?;
    let strand = Running::Strand(made.cast::<Counted>()?.clone().unbind());
    let before = std::mem::replace(&mut stack.borrow_mut().levels[0].strand, strand);
    drop(before);
    Ok(made.unbind())
}
