//! The files of one start of a task, and names for the objects that it makes.
//!
//! It does not know what is in them. Read next: `requests`, where tasks ask for files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ciel_model::{Label, Name};

use crate::host::{Failed, Host, Scratch};

/// What a file that a task asked for is to become.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Purpose {
    Output(u32),
    Object,
}

/// The files of one start of a task.
pub(crate) struct Files {
    scratch: Scratch,
    /// Opened and not committed, by request.
    pub(crate) opened: BTreeMap<u32, (Purpose, PathBuf)>,
    made: u32,
    /// Something of it may be on the disk.
    touched: bool,
}

impl Files {
    pub(crate) fn new(name: Name, tag: u32) -> Files {
        Files {
            scratch: Scratch { name, tag },
            opened: BTreeMap::new(),
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

    /// Makes an empty file for a request.
    pub(crate) fn open(
        &mut self,
        host: &mut dyn Host,
        task: &Label,
        request: u32,
        purpose: Purpose,
    ) -> Failed<PathBuf> {
        let what = format!("file.{request}");
        self.touched = true;
        let path = host.make_file(task, self.scratch, &what, b"")?;
        self.opened.insert(request, (purpose, path.clone()));
        Ok(path)
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
