//! The files of one start of a task, and names for the objects that it makes.
//!
//! It does not know what is in them. Read next: `requests`, where tasks ask for files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ciel_graph::{Assignment, StreamInput};
use ciel_model::{Form, Handle, Keeping, Label, Name, Value};

use crate::host::{Failed, Found, Host, Scratch};

/// What a file that a task asked for is to become.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Purpose {
    Output(u32),
    Object,
    /// A pipe, from which that output goes to its readers.
    Stream(u32),
}

/// A file that a task writes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Opened {
    pub(crate) purpose: Purpose,
    /// How its bytes are read, unless it is committed with another form.
    pub(crate) form: Form,
    pub(crate) path: PathBuf,
}

/// The files of one start of a task.
pub(crate) struct Files {
    scratch: Scratch,
    /// Opened and not committed, by request.
    pub(crate) opened: BTreeMap<u32, Opened>,
    /// Outputs that are committed and given at the end.
    pub(crate) held: Vec<(u32, Value<Handle>)>,
    made: u32,
    /// Something of it may be on the disk.
    touched: bool,
}

impl Files {
    pub(crate) fn new(name: Name, tag: u32) -> Files {
        Files {
            scratch: Scratch { name, tag },
            opened: BTreeMap::new(),
            held: Vec::new(),
            made: 0,
            touched: false,
        }
    }

    /// A name for a new object, unlike all others of the run.
    pub(crate) fn fresh_name(&mut self) -> Name {
        self.made += 1;
        let index = u64::from(self.scratch.tag) << 32 | u64::from(self.made);
        self.scratch.name.construct(index)
    }

    /// Makes the folder of the start.
    pub(crate) fn folder(&mut self, host: &mut dyn Host, task: &Label) -> Failed<PathBuf> {
        self.touched = true;
        host.make_folder(task, self.scratch)
    }

    /// Makes a file for a request, into which so many bytes will be written; that of an output that
    /// is kept for later runs is on the disk. It is empty unless the worker overwrites all of it.
    pub(crate) fn open(
        &mut self,
        host: &mut dyn Host,
        task: &Assignment,
        request: u32,
        (purpose, form): (Purpose, Form),
        (length, overwrites): (u64, bool),
    ) -> Failed<PathBuf> {
        self.touched = true;
        let path = match purpose {
            Purpose::Stream(output) => {
                host.open_stream(task, self.scratch, output, form.clone())?
            }
            Purpose::Output(_) | Purpose::Object => {
                let what = format!("file.{request}");
                let length = match is_kept(&purpose, task) {
                    true => 0,
                    false => length,
                };
                let length = (length, overwrites);
                host.make_file_of_length(&task.label, self.scratch, &what, length)?
            }
        };
        let opened = Opened {
            purpose,
            form,
            path: path.clone(),
        };
        self.opened.insert(request, opened);
        Ok(path)
    }

    /// Memory that the task shares with the reader of its stream; see [`Host::share_memory`].
    pub(crate) fn share_memory(
        &mut self,
        host: &mut dyn Host,
        task: &Assignment,
        length: u64,
    ) -> Option<PathBuf> {
        self.touched = true;
        host.share_memory(task, self.scratch, length)
    }

    /// What a task that starts finds in place of an input that it takes as a stream.
    pub(crate) fn find_stream(
        &mut self,
        host: &mut dyn Host,
        task: &Assignment,
        input: StreamInput,
    ) -> Failed<Found> {
        self.touched = true;
        host.find_stream(task, self.scratch, input)
    }

    /// The pipe from which the task reads what is written of an object meanwhile.
    pub(crate) fn show_stream(
        &mut self,
        host: &mut dyn Host,
        task: &Assignment,
        handle: Handle,
    ) -> Failed<PathBuf> {
        self.touched = true;
        host.show_stream(task, self.scratch, handle)
    }

    /// As [`show_stream`](Self::show_stream), of what a failed task has written, if that is kept.
    pub(crate) fn show_failed_stream(
        &mut self,
        host: &mut dyn Host,
        task: &Assignment,
        handle: Handle,
    ) -> Failed<Option<PathBuf>> {
        self.touched = true;
        host.show_failed_stream(task, self.scratch, handle)
    }

    /// An object is settled that the task may read in that way.
    pub(crate) fn settle_stream(&self, host: &mut dyn Host, handle: Handle) {
        host.settle_stream(self.scratch, handle);
    }

    /// What has become of an output that was a stream, whose task ends well.
    pub(crate) fn end_stream(
        &self,
        host: &mut dyn Host,
        task: &Label,
        output: u32,
    ) -> Failed<Option<PathBuf>> {
        host.end_stream(task, self.scratch, output)
    }

    /// Makes a file for something that is sent.
    pub(crate) fn write(
        &mut self,
        host: &mut dyn Host,
        task: &Label,
        bytes: &[u8],
    ) -> Failed<PathBuf> {
        self.made += 1;
        let what = format!("sent.{}", self.made);
        self.touched = true;
        host.make_file(task, self.scratch, &what, bytes)
    }

    /// Removes all of them; costs nothing if none was made.
    pub(crate) fn clear(&self, host: &mut dyn Host) {
        if self.touched {
            host.clear(self.scratch);
        }
    }
}

/// Whether later runs may take what a file of that purpose becomes.
fn is_kept(purpose: &Purpose, task: &Assignment) -> bool {
    matches!(purpose, Purpose::Output(_)) && task.descriptor.keeping != Keeping::Never
}
