//! The strands that run in place of one another in the thread of a worker, and the native path of a
//! plain call: its spawn (`spawning.rs`), its beginning, its end.
//!
//! A child that begins here has no strand in Python until somebody asks for it; if it ends before,
//! nobody has. Whatever is not plain is Python's: a function here answers `None` then, and has done
//! nothing. Native code never calls the child, nor switches: Python does, with what `begin` and
//! `end` give it. The promoter has the calls, as bytes. Read next: `promoter.rs`, `inside.rs`,
//! `sdk/python/ciel/_scheduler.py`.

mod ahead;
mod calls;
mod contexts;
mod early;
mod given;
mod given_early;
mod here;
mod row;
mod spawning;
mod standing;
mod tasks;
mod values;

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use ciel_model::Name;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

use self::contexts::ContextsOf;
use self::here::{Here, here};
use self::row::Row;
use self::spawning::constructor_of;
use self::standing::{strand_at, top};
use self::tasks::{Started, Tasks};
use crate::attached::Attached;
use crate::counted::Counted;
use crate::environment::Digits;
use crate::future_state::{FutureState, Owner};
use crate::inside::Inside;
use crate::names::seed_of_name;
use crate::outside::Outside;
use crate::plain::is_small;
use crate::promoter::Promoter;

/// Strands in place above one another; the innermost spawns tasks. Each keeps some ten kilobytes.
pub const DEPTH_MAX: u32 = 100_000;

/// Bytes of Python's stack between the beginning of a greenlet and the code that calls a child in
/// it; at most twice as many: those of some tens of functions, which the child lacks of the
/// recursion limit. Greenlets differ: else all children at one level of a tree would need one.
const CALLED_BYTES_MIN: usize = 4 << 10;

/// Children whose objects are kept for others.
const RESTED_MAX: usize = 16;

pub(crate) use self::ahead::{advance, begin_ahead, end_ahead};
pub(crate) use self::calls::Ahead;
pub(crate) use self::early::{advance_early, begin_early, early_task, end_early, oldest_aside};
pub use self::early::{list_kept, unlist};
pub(crate) use self::spawning::spawn;
pub(crate) use self::standing::stand_all;
pub(crate) use self::tasks::{begin_task, end_task};
pub(crate) use self::values::Values;

/// Pickles that are being made, in any thread: their values must not wait.
static FREEZING: AtomicU32 = AtomicU32::new(0);

/// The stack as an object of Python.
#[pyclass(frozen, name = "Stack", module = "ciel._native")]
pub struct StackObject(Attached<Stack>);

/// The strands that run in place of one another, the outermost first.
pub struct Stack {
    pub(crate) promoter: Py<Promoter>,
    /// Makes the strand of a child that has begun here.
    stand: Py<PyAny>,
    /// Says which calls run before they are asked for.
    early: Py<PyAny>,
    /// Children that a strand keeps, at most.
    kept_max: usize,
    /// The class of futures, its constructor, and arguments for that.
    future: Py<PyType>,
    make: ffi::newfunc,
    nothing: Py<PyTuple>,
    outside: Outside,
    /// Switches to greenlets without work.
    idle: Py<PyList>,
    levels: Vec<Level>,
    /// Whether children may be called by the code that asks for them.
    calls: bool,
    /// Whether the code that runs in the thread belongs to the innermost strand.
    is_here: bool,
    /// The arguments of a call, while it is spawned.
    arguments: Vec<u8>,
    /// Children that have ended, to which nobody else refers.
    rested: Vec<Py<Inside>>,
    contexts: ContextsOf,
    /// What tasks need that begin here, if any may.
    tasks: Option<Tasks>,
}

/// One strand, and where it runs.
struct Level {
    strand: Running,
    /// Switches to its greenlet.
    switch: Py<PyAny>,
    /// Whether that is the greenlet of the strand below it, whose code has called it.
    is_called: bool,
    /// Where on Python's stack code of the greenlet may call children, if that is known.
    room: Option<Range<usize>>,
    /// Children that it keeps, at most: it kept so many when they were counted.
    kept: usize,
    /// Those that may run before they are asked for.
    row: Option<Box<Row>>,
    /// The seed of the strand below it, and the future of its result.
    below: Option<(Digits, Py<FutureState>)>,
    /// Whether the strand below it has not asked for that.
    is_aside: bool,
}

/// A strand that runs.
enum Running {
    /// One of Python.
    Strand(Py<Counted>),
    /// One that has begun here.
    Inside(Py<Inside>),
    /// That of a task that has begun here: the outermost.
    Task(Box<Started>),
}

#[pymethods]
impl StackObject {
    /// The stack of this thread, without a strand. `stand` makes a strand of a child that has begun
    /// here, and receives: its parent, the parent's switch, whether the child was called there, the
    /// task, its arguments, its action and handle, its counts of actions and handles, handles of
    /// futures that are gone, seconds since it began. `early` is the module `_early`, `future` the
    /// class of futures, `idle` has switches to greenlets without work; `calls` is whether children
    /// may be called by the code that asks for them, where that lies little above the beginning of
    /// its greenlet.
    #[expect(clippy::too_many_arguments)]
    #[new]
    fn new(
        py: Python<'_>,
        promoter: Py<Promoter>,
        stand: Py<PyAny>,
        early: Py<PyAny>,
        future: Py<PyType>,
        idle: Py<PyList>,
        captured: Bound<'_, PyAny>,
        state: Bound<'_, PyAny>,
        calls: bool,
    ) -> PyResult<Py<StackObject>> {
        let outside = Outside::new(captured, state)?;
        let make = constructor_of(future.bind(py))?;
        let stack = Stack {
            kept_max: promoter.get().kept_max(),
            promoter,
            stand,
            early,
            future,
            make,
            nothing: PyTuple::empty(py).unbind(),
            outside,
            idle,
            levels: Vec::new(),
            calls,
            is_here: false,
            arguments: Vec::new(),
            rested: Vec::new(),
            contexts: ContextsOf::new(py)?,
            tasks: None,
        };
        let stack = Py::new(py, StackObject(Attached::new(stack)))?;
        here::set(stack.clone_ref(py));
        Ok(stack)
    }

    /// A strand has its turn, in the greenlet that `switch` switches to; `None` at its end.
    #[pyo3(signature = (strand = None, switch = None))]
    fn begin_turn(
        slf: &Bound<'_, StackObject>,
        strand: Option<Py<Counted>>,
        switch: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let levels = strand.zip(switch).map(|(strand, switch)| Level {
            room: strand.bind(py).borrow().room.clone(),
            strand: Running::Strand(strand),
            switch,
            is_called: false,
            kept: 0,
            row: None,
            below: None,
            is_aside: false,
        });
        let before = {
            let mut stack = slf.get().0.borrow_mut(py);
            stack.outside.renew(py)?;
            for level in &mut stack.levels {
                level.leave_room(py);
            }
            std::mem::replace(&mut stack.levels, levels.into_iter().collect())
        };
        drop(before);
        Ok(())
    }

    /// Tasks may begin natively. `stand` makes the strand of one that has begun, and receives: its
    /// `Start`; its function, its arguments and those that have names; seconds since it began.
    /// `functions` has the functions that were imported, by the headers of payloads, `asked` what
    /// functions ask; no task begins or ends natively while there is anything in `concerns`.
    fn take_tasks(
        &self,
        py: Python<'_>,
        stand: Py<PyAny>,
        functions: Py<PyDict>,
        asked: Py<PyDict>,
        concerns: Vec<Py<PyDict>>,
    ) {
        let tasks = Tasks::new(stand, functions, asked, concerns);
        self.0.borrow_mut(py).tasks = Some(tasks);
    }

    /// Whether the start of a task has come that may begin natively.
    fn may_begin(&self, py: Python<'_>) -> bool {
        tasks::may_begin(&self.0.borrow(py), py)
    }

    /// A strand begins in place of the innermost one.
    fn push(&self, py: Python<'_>, strand: Py<Counted>, switch: Py<PyAny>) {
        let strand = Running::Strand(strand);
        self.0.borrow_mut(py).levels.push(Level {
            strand,
            switch,
            is_called: false,
            room: None,
            kept: 0,
            row: None,
            below: None,
            is_aside: false,
        });
    }

    /// The innermost strand has ended.
    fn pop(&self, py: Python<'_>) {
        let last = self.0.borrow_mut(py).levels.pop();
        drop(last);
    }

    /// The innermost strand; `None` if none has its turn.
    #[getter]
    fn top(slf: &Bound<'_, StackObject>) -> PyResult<Option<Py<PyAny>>> {
        top(&Here::of(slf))
    }

    /// Whether a strand is there whose greenlet `switch` switches to; those above it are gone then.
    fn unwind(&self, switch: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (py, stack) = (switch.py(), &self.0);
        let count = stack.borrow(py).levels.len();
        for place in (0..count).rev() {
            let found = stack.borrow(py).levels[place].switch.clone_ref(py);
            let is_called = stack.borrow(py).levels[place].is_called;
            if !is_called && found.bind(py).eq(switch)? {
                let above = stack.borrow_mut(py).levels.split_off(place + 1);
                drop(above);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Switches to the greenlet of the innermost strand.
    #[getter]
    fn switch(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let stack = self.0.borrow(py);
        let level = stack.levels.last();
        level.map(|level| level.switch.clone_ref(py))
    }
}

impl Level {
    /// The name of its strand.
    fn name(&self, py: Python<'_>) -> Name {
        match &self.strand {
            Running::Strand(strand) => strand.bind(py).borrow().name,
            Running::Inside(inside) => inside.bind(py).borrow().name,
            Running::Task(started) => started.name,
        }
    }
}

impl Running {
    /// Its strand in Python, if somebody has asked for that.
    fn known(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match self {
            Running::Strand(strand) => Some(strand.clone_ref(py).into_any()),
            Running::Inside(inside) => {
                let inside = inside.bind(py).borrow();
                inside.strand.as_ref().map(|strand| strand.clone_ref(py))
            }
            Running::Task(_) => None,
        }
    }
}

/// The strand that runs in this thread: `own`, or one that has begun natively.
#[pyfunction]
pub fn strand_here(py: Python<'_>, own: Option<Py<PyAny>>) -> PyResult<Option<Py<PyAny>>> {
    let Some(stack) = here(py) else {
        return Ok(own);
    };
    let count = match &*stack.borrow() {
        stack if stack.is_here => stack.levels.len(),
        _ => 0,
    };
    match count {
        0 => Ok(own),
        count => strand_at(&stack, count - 1).map(Some),
    }
}

/// Whether the code that runs in this thread from now on belongs to a strand.
#[pyfunction]
pub fn note_here(py: Python<'_>, is_here: bool) {
    if let Some(stack) = here(py) {
        stack.borrow_mut().is_here = is_here;
    }
}

/// One more pickle is being made, or one less.
#[pyfunction]
pub fn note_freezing(one_more: bool) {
    match one_more {
        true => FREEZING.fetch_add(1, Ordering::Relaxed),
        false => FREEZING.fetch_sub(1, Ordering::Relaxed),
    };
}

impl Stack {
    /// Whether the innermost strand is the owner of a future.
    fn owns(&self, py: Python<'_>, owner: &Owner) -> bool {
        let Some(level) = self.levels.last() else {
            return false;
        };
        match (&level.strand, owner) {
            (Running::Inside(one), Owner::Inside(other)) => one.is(other),
            (Running::Strand(one), Owner::Strand(other)) => one.is(other),
            (Running::Inside(one), Owner::Strand(other)) => {
                let one = one.bind(py).borrow();
                one.strand.as_ref().is_some_and(|one| one.is(other))
            }
            (Running::Strand(one), Owner::Inside(other)) => {
                let other = other.bind(py).borrow();
                other.strand.as_ref().is_some_and(|other| other.is(one))
            }
            (Running::Task(_), _) | (_, Owner::Gone) => false,
        }
    }

    /// Name, tag, depth and count of actions of the innermost strand, if its output is sent.
    fn innermost(&self, py: Python<'_>) -> Option<(Name, u32, u32, u64)> {
        let of = |strand: &Counted| {
            let told = (strand.name, strand.tag, strand.depth, strand.next_action);
            (!strand.has_unsent(py)).then_some(told)
        };
        match &self.levels.last()?.strand {
            Running::Strand(strand) => of(&strand.bind(py).borrow()),
            Running::Inside(inside) => {
                let inside = inside.bind(py).borrow();
                match &inside.counted {
                    Some(strand) => of(&strand.bind(py).borrow()),
                    None => Some((inside.name, 0, inside.depth, inside.next_action)),
                }
            }
            // Futures that it can ask for have made its strand.
            Running::Task(_) => None,
        }
    }

    /// Whether a child may begin or end here without a word to Python.
    fn is_quiet(&self, py: Python<'_>) -> bool {
        self.is_here
            && !self.promoter.get().is_laid_down()
            && !self.outside.is_touched(py)
            && !self.outside.has_output(py)
    }
}

/// Begins the child whose result a future is, in place of the strand that runs, which asks for it
/// at that place of Python's stack. Gives the function that is to be called by the code that asks,
/// and its arguments. If they have names, or it is not to be called there, there are none; in place
/// of the function are the switch to a greenlet, if there is one, the function, its arguments, and
/// those that have names. If the value is known, it alone is there. `None` if all that is
/// Python's to do.
///
/// Without a place nobody asks: the child is never called there, and the strand continues beside it
/// if it becomes a task.
///
/// # Errors
/// Those of Python.
pub(crate) fn begin<'py>(
    future: &Bound<'py, FutureState>,
    place: Option<usize>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let py = future.py();
    let Some(stack) = here(py) else {
        return Ok(None);
    };
    let state = future.borrow();
    let Some(call) = state.plain() else {
        drop(state);
        return match place {
            Some(_) => early::known_value(&stack, future),
            None => Ok(None),
        };
    };
    let mut stack = stack.borrow_mut();
    let may_wait = FREEZING.load(Ordering::Relaxed) == 0 && !stack.outside.has_event_loop(py);
    if !may_wait || !stack.is_quiet(py) || !stack.owns(py, &state.owner) {
        return Ok(None);
    }
    let function = call.function.bind(py).borrow();
    let (Some(known), Some((name, tag, depth, after))) = (&function.known, stack.innermost(py))
    else {
        return Ok(None);
    };
    let is_aside = place.is_none();
    let is_called = place.map_or(Ok(false), |place| stack.may_call(py, place))?;
    if depth >= DEPTH_MAX || !(is_called || stack.has_idle(py)) {
        return Ok(None);
    }
    let child = name.spawn(call.action);
    let promoter = stack.promoter.get();
    if !promoter.enter_child(tag, state.handle, after, (child, is_aside)) {
        return Ok(None);
    }
    let begun_beats = promoter.beats();
    let inside = Inside::new(child, depth + 1, call, py, state.handle, begun_beats);
    let switch = stack.enter(py, inside, future, (is_called, is_aside))?;
    let (function, args) = (known.function.bind(py), call.args.bind(py));
    let begun = match (switch, &call.named) {
        (None, None) => (function, args).into_pyobject(py)?,
        (switch, named) => {
            let named = named.as_ref().map(|named| named.bind(py));
            ((switch, function, args, named), py.None()).into_pyobject(py)?
        }
    };
    Ok(Some(begun))
}

/// The code of the innermost strand begins at that place of Python's stack.
pub(crate) fn note_base(py: Python<'_>, place: usize) {
    if let Some(stack) = here(py)
        && let Some(level) = stack.borrow_mut().levels.last_mut()
    {
        let more = level.name(py).0 as usize % CALLED_BYTES_MIN;
        level
            .room
            .get_or_insert(place..place + CALLED_BYTES_MIN + more);
    }
}

impl Stack {
    fn has_idle(&self, py: Python<'_>) -> bool {
        !self.idle.bind(py).is_empty()
    }

    /// Whether code at that place of Python's stack may call a child itself, which then finds what
    /// it would find in a greenlet of its own: (nearly) all of the recursion limit, no exception
    /// that is being handled, and no context variables.
    fn may_call(&self, py: Python<'_>, place: usize) -> PyResult<bool> {
        let Some(level) = self.levels.last().filter(|_| self.calls) else {
            return Ok(false);
        };
        let is_near = level
            .room
            .as_ref()
            .is_some_and(|room| room.contains(&place));
        Ok(is_near && !is_handling(py) && !self.contexts.has_any(py, &level.switch)?)
    }

    /// The strand of a child is the innermost one from now on. Gives the switch to its greenlet;
    /// none if it is called in the one that runs.
    fn enter<'py>(
        &mut self,
        py: Python<'py>,
        inside: Inside,
        future: &Bound<'py, FutureState>,
        (is_called, is_aside): (bool, bool),
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let name = inside.name;
        let inside = match self.rested.pop() {
            Some(rested) => {
                *rested.bind(py).borrow_mut() = inside;
                rested
            }
            None => Py::new(py, inside)?,
        };
        let idle = self.idle.bind(py);
        let (switch, room) = match self.levels.last() {
            Some(level) if is_called => (level.switch.clone_ref(py), level.room.clone()),
            _ => {
                let last = idle.len() - 1;
                let switch = idle.get_item(last)?;
                idle.del_item(last)?;
                (switch.unbind(), None)
            }
        };
        let given = (!is_called).then(|| switch.bind(py).clone());
        self.levels.push(Level {
            strand: Running::Inside(inside),
            switch,
            is_called,
            room,
            kept: 0,
            row: None,
            below: Some((Digits::told(), future.clone().unbind())),
            is_aside,
        });
        Digits::of(seed_of_name(name)).tell();
        Ok(given)
    }
}

/// Whether an exception is being handled, by any code of the greenlet.
fn is_handling(py: Python<'_>) -> bool {
    // SAFETY: this thread is attached. The result is a new reference, or null for none.
    unsafe { Bound::from_owned_ptr_or_opt(py, ffi::PyErr_GetHandledException()).is_some() }
}

/// The innermost strand has returned `value`. Ends it in place; the switch to the strand that it
/// has run in place of, and that is to continue. `None` if that is Python's to do.
///
/// # Errors
/// Those of Python.
pub(crate) fn end<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = value.py();
    let Some(stack) = here(py).filter(|_| is_small(value)) else {
        return Ok(None);
    };
    let mut stack = stack.borrow_mut();
    let Some(level) = stack.levels.last() else {
        return Ok(None);
    };
    let Running::Inside(inside) = &level.strand else {
        return Ok(None);
    };
    let name = match &*inside.bind(py).borrow() {
        inside if inside.strand.is_some() => return Ok(None),
        inside => inside.name,
    };
    // Variables that a called child has set are removed while it runs: they may run code then.
    let has_variables = level.is_called && stack.contexts.has_any(py, &level.switch)?;
    if has_variables || !stack.is_quiet(py) {
        return Ok(None);
    }
    if !stack.promoter.get().leave_child(name) {
        return Ok(None);
    }
    let ended = stack.levels.pop().expect("it was the innermost");
    match ended.is_called {
        true => ended.switch.drop_ref(py),
        false => stack.idle.bind(py).append(ended.switch)?,
    }
    stack.rest(py, ended.strand);
    let (seed, future) = ended.below.expect("it has begun in place of another");
    seed.tell();
    let next = stack
        .levels
        .last()
        .map(|level| level.switch.bind(py).clone());
    drop(stack);
    FutureState::end(&future.into_bound(py), value, !ended.is_aside);
    Ok(next)
}

impl Stack {
    /// Keeps the object of a child that has ended, if nobody else refers to it.
    fn rest(&mut self, py: Python<'_>, ended: Running) {
        let Running::Inside(inside) = ended else {
            return;
        };
        let inside = inside.into_bound(py);
        // SAFETY: the object is alive, and this thread is attached.
        let is_own = unsafe { ffi::Py_REFCNT(inside.as_ptr()) } == 1;
        if is_own && self.rested.len() < RESTED_MAX {
            inside.borrow_mut().rest(py);
            self.rested.push(inside.unbind());
        }
    }
}
