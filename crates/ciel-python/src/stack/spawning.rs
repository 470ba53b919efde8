//! The native path of a spawn: of a plain call, which is kept, or sent as a task where none is
//! kept; and of one whose arguments are futures, which is sent.
//!
//! Whatever else a call is, its spawn is Python's. It does not know who runs a child. Read next:
//! `levels.rs`; `sdk/python/ciel/_payload.py` writes the same bytes.

use std::ptr::null_mut;
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use super::{Here, Running, Stack, early, here};
use crate::arguments;
use crate::counted::Counted;
use crate::definitions::Definition;
use crate::function::Function;
use crate::future_state::{Call, FutureState, Owner, State, is_returned};
use crate::inside::Inside;
use crate::kept_payload::{Head, Payload};
use crate::levels::Child;

/// In the head of a payload: some arguments are futures.
const HAS_PLACES: u8 = 32;

/// Where the head of a payload has the number of its references.
const COUNT_AT: std::ops::Range<usize> = 3..7;

/// A file, and a line in it.
type Place<'a, 'py> = (&'a Bound<'py, PyString>, u32);

/// What a spawn needs of the strand that spawns.
pub(super) struct Spawner {
    pub(super) tag: u32,
    pub(super) action: u64,
    pub(super) handle: u32,
}

/// A strand that spawns. As long as this is there, no future of the strand may be dropped, which it
/// would not hear of: nothing may run that the garbage collector may begin in.
pub(super) enum Keeper<'py> {
    Strand(PyRefMut<'py, Counted>),
    /// One that has begun in place, and counts itself.
    Inside(PyRefMut<'py, Inside>),
}

/// What a spawn needs of its function.
struct Known {
    definition: Py<Definition>,
    /// Gone with a call that is kept.
    head: Option<Arc<Head>>,
    takes_futures: bool,
    line: u32,
    /// The id of the definition, if it was asked for before.
    id: Option<u32>,
    /// Whether a root keeps its calls.
    suits_root: bool,
}

/// The arguments of a call: those by place, and those that have names.
#[derive(Clone, Copy)]
struct Arguments<'a, 'py> {
    args: &'a Bound<'py, PyTuple>,
    named: Option<&'a Bound<'py, PyDict>>,
}

/// What became of a call that was to be kept.
enum Keeping {
    /// It is kept; the future of its result.
    Kept(Py<PyAny>),
    /// Its arguments are not to be written here.
    Unfit,
    /// It has futures among its arguments, or the innermost strand keeps none.
    NotHere,
}

/// Spawns a call, and gives the future of its result, if nothing else is to be done for it. It is
/// spawned at `place`, or where the Python function is that runs.
///
/// # Errors
/// Those of Python, and of the connection.
pub(crate) fn spawn(
    task: &Bound<'_, Function>,
    args: &Bound<'_, PyTuple>,
    named: Option<&Bound<'_, PyDict>>,
    place: Option<Place<'_, '_>>,
) -> PyResult<Option<Py<PyAny>>> {
    let Some(stack) = here(task.py()) else {
        return Ok(None);
    };
    let ((is_full, has_sent_many), places) = {
        let stack = stack.borrow();
        (stack.signs(task.py()), stack.places_of(args))
    };
    let given = Arguments { args, named };
    if is_full {
        early::make_room(&stack)?;
    }
    if !has_sent_many || place.is_some() || !early::begins_trial(&stack, task)? {
        return spawn_at(&stack, task, given, &places, place);
    }
    let future = spawn_at(&stack, task, given, &places, place);
    early::end_trial(&stack, task)?;
    future
}

#[inline]
fn spawn_at(
    stack: &Here<'_>,
    task: &Bound<'_, Function>,
    given: Arguments<'_, '_>,
    places: &[usize],
    place: Option<Place<'_, '_>>,
) -> PyResult<Option<Py<PyAny>>> {
    if !places.is_empty() && task.borrow().keeps_waiting && stack.borrow().is_root(task.py()) {
        return Ok(None);
    }
    let Some(mut known) = known(stack, task, given.named.is_some(), place)? else {
        return Ok(None);
    };
    match keep(stack, task, &mut known, given, places)? {
        Keeping::Kept(future) => Ok(Some(future)),
        Keeping::Unfit => Ok(None),
        Keeping::NotHere => send(stack, task, &known, given, places),
    }
}

fn known(
    stack: &Here<'_>,
    task: &Bound<'_, Function>,
    has_names: bool,
    place: Option<Place<'_, '_>>,
) -> PyResult<Option<Known>> {
    let py = task.py();
    let mut function = task.borrow_mut();
    let suits_root = function.suits_root == Some(true);
    let Some(known) = &mut function.known else {
        return Ok(None);
    };
    if !known.is_unchanged(py) || (has_names && !known.takes_names) {
        return Ok(None);
    }
    let line = match place {
        Some((file, line)) => known.is_in(file)?.then_some(line),
        None => known.line_now(py)?,
    };
    Ok(line.map(|line| Known {
        definition: known.definition.clone_ref(py),
        head: Some(known.head.clone()),
        takes_futures: known.takes_names,
        line,
        id: known.id_at(stack.borrow().promoter.get().connection()),
        suits_root,
    }))
}

/// Asks for the id of the definition of a function. Nothing is borrowed meanwhile: other threads
/// may run.
fn id_of(
    stack: &Here<'_>,
    task: &Bound<'_, Function>,
    definition: &Py<Definition>,
) -> PyResult<u32> {
    let py = task.py();
    let connection = stack.borrow().promoter.get().connection().clone_ref(py);
    let renewals = connection.get().sent.renewals();
    let id = connection.get().id_of(py, definition.bind(py))?;
    if let Some(known) = &mut task.borrow_mut().known {
        known.note_id(connection, renewals, id);
    }
    Ok(id)
}

/// Keeps a plain call, if the innermost strand keeps any.
fn keep(
    stack: &Here<'_>,
    task: &Bound<'_, Function>,
    known: &mut Known,
    Arguments { args, named }: Arguments<'_, '_>,
    places: &[usize],
) -> PyResult<Keeping> {
    let py = task.py();
    if !places.is_empty() {
        return Ok(Keeping::NotHere);
    }
    let definition = match known.id {
        Some(id) => id,
        None => id_of(stack, task, &known.definition)?,
    };
    let mut stack = stack.borrow_mut();
    let spawner = stack.spawner(py, known.suits_root);
    let Some(spawner) = spawner.map(|keeper| keeper.next()) else {
        return Ok(Keeping::NotHere);
    };
    stack.arguments.clear();
    if !arguments::append(&mut stack.arguments, args, named) {
        return Ok(Keeping::Unfit);
    }
    let child = Child {
        definition,
        payload: Payload::new(known.head.take(), &stack.arguments),
        action: spawner.action,
        handle: spawner.handle,
        line: known.line,
        beats: 0,
    };
    let (count, oldest) = stack.promoter.get().keep_child(spawner.tag, child);
    if let Some(spawner) = stack.counter(py) {
        spawner.count();
    }
    stack.note_kept(count);
    let call = Call {
        function: task.clone().unbind(),
        args: args.clone().unbind(),
        named: named
            .map(|named| named.copy())
            .transpose()?
            .map(Bound::unbind),
        action: spawner.action,
    };
    let of = (stack.owner(py), spawner.handle);
    let future = stack.future_of(py, of, State::Plain(call))?;
    let stale = stack.list(&future, oldest);
    drop(stack);
    drop(stale);
    Ok(Keeping::Kept(future.into_any().unbind()))
}

/// Sends a call as a task, behind all that the innermost strand keeps.
fn send(
    stack: &Here<'_>,
    task: &Bound<'_, Function>,
    known: &Known,
    given: Arguments<'_, '_>,
    places: &[usize],
) -> PyResult<Option<Py<PyAny>>> {
    let py = stack.py();
    let (found, promoter) = {
        let stack = stack.borrow();
        (stack.sender(py), stack.promoter.clone_ref(py))
    };
    let Some((strand, owner)) = found else {
        return Ok(None);
    };
    let Some((payload, inputs)) = packed(&stack.borrow(), known, given, places)? else {
        return Ok(None);
    };
    // Nothing is borrowed: what is dropped may run code, and other threads may when this one sends.
    early::unlist(py);
    let (spawner, keeps, released) = {
        let mut strand = strand.bind(py).borrow_mut();
        let spawner = Spawner::of(&strand);
        let keeps = std::mem::replace(&mut strand.keeps, false);
        strand.count_sent();
        strand.spawns_left -= 1;
        let sent = task.clone().into_any().unbind();
        strand.note_sent(spawner.handle, sent, !places.is_empty());
        (spawner, keeps, strand.released())
    };
    if keeps {
        promoter.get().settle(py, spawner.tag);
    }
    promoter.get().connection().get().spawn(
        py,
        spawner.tag,
        known.definition.bind(py),
        &payload,
        inputs,
        spawner.action,
        spawner.handle,
        known.line,
        None,
        None,
        released,
    )?;
    promoter.get().hasten_spawn(py);
    let of = (owner, spawner.handle);
    let future = stack.borrow().future_of(py, of, State::Known(None));
    future.map(|future| Some(future.into_any().unbind()))
}

/// The payload of a call that is sent, with futures at `places`, and the handles of these; `None`
/// if they are not all of the innermost strand, or an argument is neither plain nor a future.
fn packed(
    stack: &Stack,
    known: &Known,
    Arguments { args, named }: Arguments<'_, '_>,
    places: &[usize],
) -> PyResult<Option<(Vec<u8>, Vec<u32>)>> {
    let head = known.head.as_deref().map_or(&[][..], Head::as_bytes);
    let mut payload = head.to_vec();
    if places.is_empty() {
        let is_plain = arguments::append(&mut payload, args, named);
        return Ok(is_plain.then_some((payload, Vec::new())));
    }
    let mut handles = Vec::with_capacity(places.len());
    for place in places {
        let Some(handle) = stack.handle_of(&args.get_item(*place)?)? else {
            return Ok(None);
        };
        handles.push(handle);
    }
    payload[0] |= HAS_PLACES;
    payload[COUNT_AT].copy_from_slice(&(places.len() as u32).to_be_bytes());
    let is_fit = named.is_none()
        && known.takes_futures
        && arguments::append_with_places(&mut payload, args, places);
    Ok(is_fit.then_some((payload, handles)))
}

impl Stack {
    /// Where futures are among the arguments of a call, from 0.
    fn places_of(&self, args: &Bound<'_, PyTuple>) -> Vec<usize> {
        let values = args.iter_borrowed().enumerate();
        let futures = values.filter(|(_, value)| value.get_type().is(&self.future));
        futures.map(|(place, _)| place).collect()
    }

    /// Whether the innermost strand is that of a root.
    fn is_root(&self, py: Python<'_>) -> bool {
        match self.levels.last().map(|level| &level.strand) {
            Some(Running::Strand(strand)) => strand.bind(py).borrow().is_root,
            Some(Running::Inside(_) | Running::Task(_)) | None => false,
        }
    }

    /// The innermost strand, if a plain spawn of it needs nothing but to be kept: a root keeps
    /// calls of functions that suit it.
    fn spawner<'py>(&self, py: Python<'py>, suits_root: bool) -> Option<Keeper<'py>> {
        match self.is_full() {
            true => None,
            false => self.keeper(py, suits_root),
        }
    }

    /// As `spawner`, of a strand that may keep as many children as it may.
    pub(super) fn keeper<'py>(&self, py: Python<'py>, suits_root: bool) -> Option<Keeper<'py>> {
        if !self.is_here {
            return None;
        }
        let keeper = self.counter(py)?;
        // The look at output may be a system call: it comes last.
        let keeps = keeper.keeps(py, suits_root) && !self.outside.has_output(py);
        keeps.then_some(keeper)
    }

    /// The innermost strand, which counts its spawns.
    fn counter<'py>(&self, py: Python<'py>) -> Option<Keeper<'py>> {
        match &self.levels.last()?.strand {
            Running::Strand(strand) => Some(Keeper::Strand(strand.bind(py).borrow_mut())),
            Running::Inside(inside) => {
                let inside = inside.bind(py).borrow_mut();
                Some(match &inside.counted {
                    Some(strand) => Keeper::Strand(strand.bind(py).borrow_mut()),
                    None => Keeper::Inside(inside),
                })
            }
            Running::Task(_) => None,
        }
    }

    /// Whether the innermost strand keeps as many children as it may, since they were counted.
    pub(super) fn is_full(&self) -> bool {
        let level = self.levels.last();
        let has_room = level.is_some_and(|level| level.kept < self.kept_max);
        !has_room || self.promoter.get().is_laid_down()
    }

    /// The innermost strand, as the owner of futures.
    pub(super) fn owner(&self, py: Python<'_>) -> Owner {
        match self.levels.last().map(|level| &level.strand) {
            Some(Running::Strand(strand)) => Owner::Strand(strand.clone_ref(py).into_any()),
            Some(Running::Inside(inside)) => Owner::Inside(inside.clone_ref(py)),
            Some(Running::Task(_)) | None => Owner::Gone,
        }
    }

    /// The innermost strand, if it is a task and a spawn of it needs nothing but to be sent.
    fn sender(&self, py: Python<'_>) -> Option<(Py<Counted>, Owner)> {
        if !self.is_here || self.promoter.get().is_laid_down() {
            return None;
        }
        let strand = match &self.levels.last()?.strand {
            Running::Strand(strand) => strand.clone_ref(py),
            Running::Inside(inside) => {
                let inside = inside.bind(py).borrow();
                inside.counted.as_ref()?.clone_ref(py)
            }
            // Its first spawn is Python's, which makes its strand.
            Running::Task(_) => return None,
        };
        let sends = strand.bind(py).borrow().sends_plainly(py) && !self.outside.has_output(py);
        sends.then(|| (strand, self.owner(py)))
    }

    /// The handle of a future of the innermost strand that the engine knows, or is to know.
    fn handle_of(&self, future: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        let py = future.py();
        let future = future.cast::<FutureState>()?.borrow();
        let is_known = match &future.state {
            State::Plain(_) | State::Kept(_) => true,
            State::Known(known) => match known {
                Some(known) => !is_returned(known.bind(py))?,
                None => true,
            },
            State::Ended(_) => false,
        };
        Ok((is_known && self.owns(py, &future.owner)).then_some(future.handle))
    }

    /// The innermost strand keeps so many children now.
    pub(super) fn note_kept(&mut self, kept: usize) {
        if let Some(level) = self.levels.last_mut() {
            level.kept = kept;
        }
    }

    /// The future of the result of a strand's call with that handle.
    pub(super) fn future_of<'py>(
        &self,
        py: Python<'py>,
        (owner, handle): (Owner, u32),
        state: State,
    ) -> PyResult<Bound<'py, FutureState>> {
        // SAFETY: this thread is attached to the interpreter. The class inherits the constructor of
        // `FutureState`, which takes no arguments and gives a new reference, or raises.
        let made = unsafe {
            let made = (self.make)(
                self.future.as_ptr().cast(),
                self.nothing.as_ptr(),
                null_mut(),
            );
            Bound::from_owned_ptr_or_err(py, made)?
        };
        let made = made.cast_into::<FutureState>()?;
        let mut future = made.borrow_mut();
        future.owner = owner;
        future.handle = handle;
        future.state = state;
        drop(future);
        Ok(made)
    }
}

impl Keeper<'_> {
    /// Whether a plain call needs nothing but to be kept.
    fn keeps(&self, py: Python<'_>, suits_root: bool) -> bool {
        match self {
            Keeper::Strand(strand) => strand.keeps_plainly(py) && (suits_root || !strand.is_root),
            Keeper::Inside(_) => true,
        }
    }

    /// Its next spawn.
    pub(super) fn next(&self) -> Spawner {
        match self {
            Keeper::Strand(strand) => Spawner::of(strand),
            Keeper::Inside(inside) => Spawner {
                tag: 0,
                action: inside.next_action,
                handle: inside.next_handle,
            },
        }
    }

    /// It has spawned what it keeps.
    pub(super) fn count(mut self) {
        match &mut self {
            Keeper::Strand(strand) => strand.count_spawn(),
            Keeper::Inside(inside) => {
                inside.next_action += 1;
                inside.next_handle += 1;
            }
        }
    }
}

impl Spawner {
    /// The next spawn of a strand.
    fn of(strand: &Counted) -> Spawner {
        Spawner {
            tag: strand.tag,
            action: strand.next_action,
            handle: strand.next_handle,
        }
    }
}

/// The constructor of a class of futures.
pub(super) fn constructor_of(class: &Bound<'_, PyType>) -> PyResult<ffi::newfunc> {
    if !class.is_subclass_of::<FutureState>()? {
        return Err(PyTypeError::new_err("that is no class of futures"));
    }
    // SAFETY: it is a class that was made at run time, so it has slots, and the one of this number
    // has this type; it inherits one.
    unsafe {
        let slot = ffi::PyType_GetSlot(class.as_type_ptr(), ffi::Py_tp_new);
        Ok(std::mem::transmute::<*mut std::ffi::c_void, ffi::newfunc>(
            slot,
        ))
    }
}
