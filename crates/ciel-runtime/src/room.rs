//! The budget of a run on the disk, where it is kept: an object that does not fit is refused, and a
//! task that writes more than fits is ended.
//!
//! The engine says whose turn it is and what the serial program would hold; it holds other tasks
//! long before the budget is used up. Read next: `room_watch`, `ciel_engine`.

use std::fmt;

use ciel_model::{Failure, FailureKind, Label, Name};
use ciel_store::{Object, ObjectName, Written};
use ciel_view::words::size;

use crate::engine::Engine;
use crate::largest::Maker;

/// What the user can do.
pub(crate) const HINT: &str = "allow more with --store-bytes; or pass on less, and drop results \
    that are not needed any more before the next ones are made";

/// Something does not fit, although everything was done before that the serial program does before.
#[derive(Clone, Debug)]
pub(crate) struct NoRoom {
    what: What,
    wanted: u64,
    held: u64,
    budget: u64,
    largest: Vec<(Label, u64)>,
}

/// What does not fit.
#[derive(Clone, Copy, Debug)]
enum What {
    /// An object that has just been made.
    Object,
    /// The files of a task that still writes.
    Unfinished,
}

impl NoRoom {
    /// The failure of the task.
    pub(crate) fn failure(&self, task: &Label) -> Failure {
        Failure::new(FailureKind::DiskFull, task.clone(), self.to_string()).with_hint(HINT)
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [wanted, held, budget] = [self.wanted, self.held, self.budget].map(size);
        match self.what {
            What::Object => write!(f, "its object of {wanted} does not fit")?,
            What::Unfinished => write!(f, "it has written {wanted} so far, which does not fit")?,
        }
        write!(f, " into the {budget} of disk that the run may take")?;
        if self.held > 0 {
            write!(f, ", where {held} are held")?;
        }
        for (place, (maker, length)) in self.largest.iter().enumerate() {
            let before = if place == 0 { ", by " } else { ", " };
            write!(f, "{before}{maker} {}", size(*length))?;
        }
        Ok(())
    }
}

/// Discards an object that has just been made, if the run has used up its budget and the serial
/// program would have done so, too. Called without the machines.
pub(crate) fn check(engine: &Engine, maker: &Maker<'_>, object: &Object) -> Result<(), NoRoom> {
    let (budget, objects) = (engine.store_bytes, engine.folder.objects());
    if !objects.is_on_disk(object.name) || engine.folder.disk_bytes() <= budget {
        return Ok(());
    }
    let Maker::Task(label) = maker else {
        return Ok(());
    };
    let used = engine.lock().serial_use(label.name);
    let Some(used) = used else {
        return Ok(());
    };
    // Those that the engine has not heard of yet.
    let outputs = (0..used.outputs).map(|index| ObjectName(label.name.output(index.into()).0));
    let outputs = outputs.filter(|name| *name != object.name && objects.is_on_disk(*name));
    let given = outputs.filter_map(|name| engine.objects.location(name));
    let held = used.bytes + given.map(|location| location.length).sum::<u64>();
    if held + object.length <= budget {
        return Ok(());
    }
    // What cannot be removed now goes with the run's folder.
    let _ = engine.objects.release(object.name);
    Err(NoRoom {
        what: What::Object,
        wanted: object.length,
        held,
        budget,
        largest: used.largest,
    })
}

/// The attempts that have written more than there is room for, and the serial program would not
/// have had it either: not within the budget without anything else, or not with what that program
/// holds where it runs the task.
pub(crate) fn overdrawn(engine: &Engine, written: &[Written]) -> Vec<(Written, NoRoom)> {
    let budget = engine.store_bytes;
    let unfinished: u64 = written.iter().map(|one| one.bytes).sum();
    if engine.folder.disk_bytes() + unfinished <= budget {
        return Vec::new();
    }
    let mut core = engine.lock();
    let mut found = Vec::new();
    for one in written {
        let used = core.serial_use(Name(one.task));
        let (held, largest) = used.map_or((0, Vec::new()), |used| (used.bytes, used.largest));
        if held + one.bytes > budget {
            let no_room = NoRoom {
                what: What::Unfinished,
                wanted: one.bytes,
                held,
                budget,
                largest,
            };
            found.push((*one, no_room));
        }
    }
    found
}

/// An object has gone: tasks that are held because of the disk may go.
pub(crate) fn note_freed(engine: &Engine) {
    let mut core = engine.lock();
    if core.engine().has_held() {
        core.output_ready = true;
        engine.output.notify_one();
    }
}
