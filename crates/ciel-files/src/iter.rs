//! Parallel iterators whose items append to a file in their order.
//!
//! Each piece into which rayon cuts the iterator is a strand; pieces follow one another. It does
//! not know how rayon cuts.

use std::cell::RefCell;
use std::io;

use rayon::iter::ParallelIterator;
use rayon::iter::plumbing::{Consumer, Folder, Reducer, UnindexedConsumer};

use crate::file::File;
use crate::fork::{Running, Strand};
use crate::scope::Waiting;

/// Appending the items of a parallel iterator to a file.
pub trait AppendTo: ParallelIterator {
    /// Calls `write` for each item, at the same time for several; the file receives what it writes
    /// in the order of the items. Gives the first error in that order.
    ///
    /// ```
    /// use std::io::Write;
    /// use ciel_files::{AppendTo, File, Mode};
    /// use rayon::prelude::*;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("squares");
    /// let file = File::create(&path, Mode::SerialAppend).unwrap();
    /// (0..1000u32)
    ///     .into_par_iter()
    ///     .append_to(&file, |number, file| writeln!(&*file, "{}", number * number))
    ///     .unwrap();
    /// file.close().unwrap();
    /// # assert!(std::fs::read_to_string(&path).unwrap().ends_with("\n996004\n998001\n"));
    /// ```
    ///
    /// # Errors
    /// The first of `write`.
    ///
    /// # Panics
    /// If `write` does.
    fn append_to<F>(self, file: &File, write: F) -> io::Result<()>
    where
        F: Fn(Self::Item, &File) -> io::Result<()> + Sync + Send,
    {
        let waiting = Waiting::new();
        let consumer = Pieces {
            strand: RefCell::new(Some(waiting.fork_all())),
            file,
            write: &write,
        };
        self.drive_unindexed(consumer)
    }
}

impl<I: ParallelIterator> AppendTo for I {}

/// A piece of an iterator.
struct Pieces<'a, F> {
    /// Until the piece begins.
    strand: RefCell<Option<Strand>>,
    file: &'a File,
    write: &'a F,
}

impl<'a, F> Pieces<'a, F> {
    fn like(&self, strand: Option<Strand>) -> Pieces<'a, F> {
        Pieces {
            strand: RefCell::new(strand),
            file: self.file,
            write: self.write,
        }
    }

    /// Keeps the right half, gives the left one.
    fn cut(&self) -> Pieces<'a, F> {
        let whole = self.strand.borrow_mut().take();
        let (left, right) = whole.map(Strand::split).unzip();
        *self.strand.borrow_mut() = right;
        self.like(left)
    }
}

impl<T, F> Consumer<T> for Pieces<'_, F>
where
    F: Fn(T, &File) -> io::Result<()> + Sync,
{
    type Folder = Piece<Self>;
    type Reducer = First;
    type Result = io::Result<()>;

    fn split_at(self, _index: usize) -> (Self, Self, First) {
        (self.cut(), self, First)
    }

    fn into_folder(self) -> Piece<Self> {
        let strand = self.strand.borrow_mut().take();
        Piece {
            running: strand.map(Running::new),
            pieces: self,
            so_far: Ok(()),
        }
    }

    fn full(&self) -> bool {
        false
    }
}

impl<T, F> UnindexedConsumer<T> for Pieces<'_, F>
where
    F: Fn(T, &File) -> io::Result<()> + Sync,
{
    fn split_off_left(&self) -> Self {
        self.cut()
    }

    fn to_reducer(&self) -> First {
        First
    }
}

/// A piece that runs on this thread.
struct Piece<P> {
    running: Option<Running<Strand>>,
    pieces: P,
    so_far: io::Result<()>,
}

impl<T, F> Folder<T> for Piece<Pieces<'_, F>>
where
    F: Fn(T, &File) -> io::Result<()> + Sync,
{
    type Result = io::Result<()>;

    fn consume(mut self, item: T) -> Self {
        if self.so_far.is_ok() {
            self.so_far = (self.pieces.write)(item, self.pieces.file);
        }
        self
    }

    fn complete(mut self) -> io::Result<()> {
        if let Some(running) = &mut self.running {
            running.is_whole = true;
        }
        self.so_far
    }

    fn full(&self) -> bool {
        self.so_far.is_err()
    }
}

/// The first error in the order of the items.
struct First;

impl Reducer<io::Result<()>> for First {
    fn reduce(self, left: io::Result<()>, right: io::Result<()>) -> io::Result<()> {
        left.and(right)
    }
}
