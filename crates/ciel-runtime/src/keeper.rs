//! The thread that looks up and keeps results.
//!
//! Lookups are answered at once; results are kept in batches, a little after they came, in one
//! transaction. Without a usable store every lookup finds nothing. It does not know how a task
//! ran. Read next: `ciel_kept::KeptResults`.

mod actions;
mod batch;
mod beneath;
mod digests;
mod noted;
mod parts;
mod scripts;
mod sharing;
mod subtrees;
mod told;

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use ciel_engine::ResultQuery;
use ciel_graph::Event;
use ciel_kept::{Entry, Found, IdentityWriter, KeptContent, KeptError, KeptResults, Notes, Parts};
use ciel_model::{
    Content, Descriptor, Digest, FileRead, Form, FunctionCode, Handle, Label, Name, Reached,
    RerunReason, TaskKey, Value,
};
use ciel_ordered::Sink;
use ciel_store::ObjectName;
use rustc_hash::FxHashMap;

use self::batch::Batch;
use self::digests::FileDigests;
pub(crate) use self::parts::{anywhere, in_surroundings};
use self::parts::{files_named, parts_of, stamp_of, surroundings, surroundings_anywhere};
pub(crate) use self::scripts::{EndedScript, Stepped, keep_script};
use self::sharing::Sharing;
pub(crate) use self::sharing::{for_others, writes_files};
use self::subtrees::Subtrees;
pub(crate) use self::told::{
    keep_command, keep_watched, leave_watched, printed_digest, segments, tell_begun,
};
use crate::choice::seconds_now;
use crate::engine::Engine;
use crate::executors::call::Call;
use crate::kept::{EndedTask, Request};
use crate::kept_queue;
use crate::largest::Maker;
use crate::layout::{IDENTITIES, KEPT};
use crate::objects;
use crate::{ordered_files, output, second_runs, tools};

/// Answers requests until the job has ended.
pub(crate) fn run_thread(engine: &Engine, requests: kept_queue::Receiver) {
    let mut keeper = Keeper::new(engine);
    let mut taken = VecDeque::new();
    loop {
        let is_due = requests.receive(&mut taken, keeper.batch.due());
        for request in taken.drain(..) {
            if matches!(request, Request::Close) {
                drop(requests);
                return keeper.close();
            }
            keeper.perform(request);
        }
        keeper.let_go();
        if is_due && keeper.batch.is_ready(Instant::now()) {
            keeper.keep_batch();
        }
    }
}

enum Store {
    Unopened,
    Open(Box<KeptResults>),
    /// It cannot be used; that was reported.
    Unusable,
}

struct Keeper<'a> {
    engine: &'a Engine,
    store: Store,
    /// None if nothing is shared.
    sharing: Option<Sharing>,
    surroundings: Digest,
    /// The surroundings of results that were unpacked; none if there are no such results.
    unpacked: Option<Digest>,
    digests: FileDigests,
    /// What tasks that run were given.
    begun: FxHashMap<TaskKey, Begun>,
    batch: Batch,
    /// What the tasks of this run are given and give.
    identities: IdentityWriter,
    /// Pieces of codes that an earlier process of the run has noted.
    pieces_before: OnceCell<FxHashMap<Digest, Arc<[FunctionCode]>>>,
    /// Tasks with children.
    subtrees: Subtrees,
    /// Of these, those that have ended well while others beneath them have not.
    unresolved: FxHashMap<Name, (Begun, EndedTask)>,
    /// When the run has begun.
    begun_at: SystemTime,
}

/// What a task is given.
struct Given {
    parts: Parts,
    /// Files that count among its inputs.
    files: Vec<FileRead>,
    /// Of the code in its parts, what is no value.
    functions: Reached,
}

struct Begun {
    given: Given,
    label: Label,
    is_marked: bool,
}

impl<'a> Keeper<'a> {
    fn new(engine: &'a Engine) -> Keeper<'a> {
        Keeper {
            engine,
            store: Store::Unopened,
            sharing: Sharing::open(engine).filter(|_| engine.keep_rule.keeps),
            surroundings: surroundings(&engine.settings),
            unpacked: None,
            digests: FileDigests::default(),
            begun: FxHashMap::default(),
            batch: Batch::default(),
            identities: IdentityWriter::new(engine.folder.history_path().join(IDENTITIES)),
            pieces_before: OnceCell::new(),
            subtrees: Subtrees::default(),
            unresolved: FxHashMap::default(),
            begun_at: SystemTime::now(),
        }
    }
}

impl Keeper<'_> {
    fn perform(&mut self, request: Request) {
        match request {
            Request::Find(query) => self.answer(*query),
            Request::Begun(query) => self.begin(&query),
            Request::Ended(ended) => self.add(*ended),
            Request::Left(attempt) => drop(self.begun.remove(&attempt.task)),
            Request::Unkept(attempt, task) => {
                self.begun.remove(&attempt.task);
                self.leave(Digest(task.0), true);
            }
            Request::EndedBelow(tasks) => {
                for (key, task) in tasks {
                    self.begun.remove(&key);
                    self.note_unkept(Digest(task.0), true);
                }
            }
            Request::Read(path, digest) => self.note_read(&path, digest),
            Request::Spawned {
                parent,
                action,
                child,
            } => {
                let resolved = self.subtrees.on_spawned(parent, action, child);
                self.keep_resolved(resolved);
            }
            Request::Deep(task) => {
                let resolved = self.subtrees.give_up(task);
                self.keep_resolved(resolved);
            }
            Request::Over { task, has_failed } => self.resolve(task, has_failed),
            Request::Compare(runs) => second_runs::compare(self.engine, &runs),
            Request::Close => unreachable!("the loop has ended with it"),
        }
        if self.batch.is_full() {
            self.keep_batch();
        }
    }

    /// What the result of a task depends on; none if that is not known, or not any more.
    fn given_to(&mut self, query: &ResultQuery) -> Option<Given> {
        let call = self.call_of(&query.descriptor)?;
        let mut parts = parts_of(
            self.engine,
            self.surroundings,
            &mut self.digests,
            (query, &call),
        )?;
        if let Some(code) = parts.code.filter(|_| parts.pieces.is_empty()) {
            parts.pieces = self.pieces_before(code);
        }
        let trusts_times = self.engine.settings.trusts_times;
        let files = self.with_store(|store| {
            let digest_of = |path: &Path| match trusts_times {
                true => stamp_of(path),
                false => store.digest_of_file(path).ok().flatten(),
            };
            let named = files_named(&query.descriptor, digest_of);
            Ok((named, tools::of_task(&query.descriptor, digest_of)))
        });
        let (named, tools) = files?;
        let (inputs, mut files): (Vec<_>, Vec<_>) = named.into_iter().unzip();
        let (programs, found): (Vec<_>, Vec<_>) = tools.into_iter().unzip();
        parts.inputs.extend(inputs.into_iter().chain(programs));
        files.extend(found.into_iter().flatten());
        let functions = call.functions;
        Some(Given {
            parts,
            files,
            functions,
        })
    }

    /// What a task depends on beside the contents of its inputs, if that is known.
    fn call_of(&self, descriptor: &Descriptor) -> Option<Call> {
        let engine = self.engine;
        let executor = engine.registry.find(&descriptor.executor);
        executor.call(&engine.programs, &engine.settings, descriptor)
    }

    /// Looks a result up and tells the graph.
    fn answer(&mut self, query: ResultQuery) {
        let given = self.given_to(&query);
        if let Some(given) = &given {
            self.note_given(&given.parts, &query);
        }
        let found = match &given {
            Some(given) => self.find_anywhere(given, &query),
            None => Err(RerunReason::New),
        };
        let task = query.attempt.task;
        let attempt = query.attempt.number;
        match found {
            Ok(Taken {
                outputs,
                printed,
                is_whole,
            }) => {
                self.engine.with(|core, now| {
                    let is_awaited = core.graph().awaits_result(task, attempt);
                    let has_printed = !printed.is_empty();
                    for (sink, bytes) in printed.into_iter().filter(|_| is_awaited) {
                        // A result is used once, so nothing that was written differs.
                        let piece = (sink, Vec::from(bytes).into());
                        let _ = core.write_file(query.strand, &query.label, query.after, piece);
                    }
                    let printed = has_printed;
                    core.tell(
                        now,
                        match is_whole {
                            true => Event::ResultFound {
                                task,
                                attempt,
                                outputs,
                                printed,
                            },
                            false => Event::ResultKnown {
                                task,
                                attempt,
                                outputs,
                                printed,
                            },
                        },
                    );
                });
                output::spill_excess(self.engine);
            }
            Err(reason) => {
                if let Some(given) = given {
                    self.note_begun(self.as_begun(given, &query), &query);
                }
                let reason = Box::new(reason);
                self.engine.with(|core, now| {
                    core.tell(
                        now,
                        Event::ResultMissing {
                            task,
                            attempt,
                            reason,
                        },
                    );
                });
            }
        }
    }

    /// A result of this state folder, else a shared one; the reason is that of this folder.
    fn find_anywhere(&mut self, given: &Given, query: &ResultQuery) -> Result<Taken, RerunReason> {
        let own = self.find(given, query);
        if own.as_ref().is_ok_and(|taken| taken.is_whole) {
            return own;
        }
        let shared = self.find_shared(given, query);
        self.clear(place_of(&query.label));
        shared.map_or(own, Ok)
    }

    fn find(&mut self, given: &Given, query: &ResultQuery) -> Result<Taken, RerunReason> {
        let parts = &given.parts;
        let place = place_of(&query.label);
        // The store is opened with the first look, which tells whether any were unpacked.
        let mut found = self.with_store(|store| {
            store.hold()?;
            store.find(std::slice::from_ref(parts), place, seconds_now())
        });
        if let (Some(Found::Nothing(_)), Some(surroundings)) = (&found, self.unpacked) {
            let both = [parts.clone(), in_surroundings(parts, surroundings)];
            found = self.with_store(|store| store.find(&both, place, seconds_now()));
        }
        let entry = match found {
            Some(Found::Entry(entry)) => entry,
            Some(Found::Nothing(reason)) => return Err(reason),
            None => return Err(RerunReason::New),
        };
        if let Some(reason) = self.change_beneath(&entry) {
            return Err(reason);
        }
        if entry.objects().next().is_some() {
            // They are there as the index says now.
            self.let_go();
        }
        let whole = self.take(&entry, query, None);
        if whole.is_some() {
            self.share_taken(&entry);
        }
        let taken = whole.or_else(|| self.known(&entry, query));
        if taken.is_some() {
            self.note_gave(place, &entry.outputs, entry.read.clone(), true);
        }
        self.clear(place);
        match taken {
            None => {
                self.with_store(|store| store.discard(&entry.parts));
            }
            Some(_)
                if self.with_store(|store| store.is_news(place, &entry.parts)) == Some(true) =>
            {
                self.batch.taken.push((place, entry.parts.key()));
                self.expect_batch();
            }
            Some(_) => {}
        }
        if taken.is_some() && self.subtrees.follows(query.label.name) {
            self.note_taken(&entry, given, query);
        }
        taken.ok_or(RerunReason::Damaged)
    }

    /// What an entry gives to a task; none if a part of it is missing or damaged. Its objects are
    /// those of the state folder, or of a user of the shared one.
    fn take(&mut self, entry: &Entry, query: &ResultQuery, user: Option<&Path>) -> Option<Taken> {
        let mut outputs = Vec::with_capacity(entry.outputs.len());
        for (index, output) in entry.outputs.iter().enumerate() {
            let content = match &output.content {
                KeptContent::Inline(bytes) => Content::Inline(bytes.clone()),
                KeptContent::Object { digest, length } => {
                    self.take_object(query, (index, user), (*digest, *length))?
                }
            };
            outputs.push(value_of(&output.form, content));
        }
        let printed = self.printed(entry)?;
        Some(Taken {
            outputs,
            printed,
            is_whole: true,
        })
    }

    /// What an entry says of a task that gave what it has dropped since. Nothing of a task that
    /// writes streams: their bytes are perhaps not stored, and could not be compared.
    fn known(&mut self, entry: &Entry, query: &ResultQuery) -> Option<Taken> {
        let is_dropped = self.with_store(|store| store.has_dropped_bytes(entry))?;
        if !is_dropped || !query.descriptor.streams.outputs.is_empty() {
            return None;
        }
        let outputs = entry.outputs.iter().enumerate();
        let outputs = outputs.map(|(index, output)| {
            let content = match &output.content {
                KeptContent::Inline(bytes) => Content::Inline(bytes.clone()),
                KeptContent::Object { digest, length } => Content::File {
                    name: query.label.name.output(index as u64),
                    length: *length,
                    digest: Some(*digest),
                },
            };
            value_of(&output.form, content)
        });
        let outputs = outputs.collect();
        // From before anything can be compared with it.
        self.engine.compares.store(true, Ordering::Relaxed);
        Some(Taken {
            outputs,
            printed: self.printed(entry)?,
            is_whole: false,
        })
    }

    /// What an entry's task prints, by where it goes.
    fn printed(&self, entry: &Entry) -> Option<Vec<(Sink, Bytes)>> {
        let mut printed = Vec::with_capacity(entry.printed.len());
        for one in &entry.printed {
            let sink = match &one.file {
                None => Sink::OUTPUT,
                // A file that cannot be used fails the task, which runs then.
                Some(file) => ordered_files::sink_of(self.engine, file).ok()?,
            };
            if !one.bytes.is_empty() {
                printed.push((sink, one.bytes.clone()));
            }
        }
        Some(printed)
    }

    fn take_object(
        &mut self,
        query: &ResultQuery,
        (index, user): (usize, Option<&Path>),
        (digest, length): (Digest, u64),
    ) -> Option<Content> {
        let name = query.label.name.output(index as u64);
        let scratch = self.engine.folder.scratch();
        let path = scratch
            .path(query.label.name.0, SPARE, &spare(index))
            .ok()?;
        let is_whole = match user {
            None => self.with_store(|store| store.take(digest, length, &path)),
            Some(user) => {
                let shared = &self.sharing.as_ref()?.results;
                shared.take(user, (digest, length), &path).ok()
            }
        };
        if is_whole != Some(true) {
            return None;
        }
        let objects = &self.engine.objects;
        let adopted = objects.adopt_known(ObjectName(name.0), &path, digest);
        let object = adopted.ok()?;
        objects::made(self.engine, &Maker::Task(&query.label), object).ok()
    }

    fn begin(&mut self, query: &ResultQuery) {
        if self.begun.contains_key(&query.attempt.task) {
            return;
        }
        if let Some(begun) = self.begun_with(query) {
            self.note_begun(begun, query);
        }
    }

    /// What a task was given, which is written down.
    fn begun_with(&mut self, query: &ResultQuery) -> Option<Begun> {
        let given = self.given_to(query)?;
        self.note_given(&given.parts, query);
        Some(self.as_begun(given, query))
    }

    fn as_begun(&self, given: Given, query: &ResultQuery) -> Begun {
        Begun {
            given,
            label: query.label.clone(),
            is_marked: self.is_marked(query),
        }
    }

    fn note_begun(&mut self, begun: Begun, query: &ResultQuery) {
        self.batch.places.push(place_of(&query.label));
        self.expect_batch();
        self.begun.insert(query.attempt.task, begun);
    }

    fn expect_batch(&mut self) {
        // The clock is read for the first only.
        if self.batch.due().is_none() {
            self.batch.expect(Instant::now());
        }
    }

    fn keep_batch(&mut self) {
        self.batch.forget_lost_files();
        self.share_batch();
        // Without them later runs only know less of this one.
        let _ = self.identities.flush();
        let mut batch = self.batch.take();
        let notes = Notes {
            begun: batch.take_unended(),
            unkept: batch.unkept,
            kept: batch.entries,
            taken: batch.taken,
        };
        if !notes.is_empty() {
            self.with_store(|store| store.note(&notes, seconds_now()));
        }
        let kept = notes.kept.iter().map(|(entry, _)| entry);
        // Only files of objects have spare names.
        for entry in kept.filter(|entry| entry.objects().next().is_some()) {
            self.clear(entry.place);
        }
        self.batch.reuse(notes.kept);
        if let Store::Open(_) = self.store {
            self.with_store(KeptResults::note_uses);
        }
    }

    /// Lets other processes' changes of the index be seen.
    fn let_go(&mut self) {
        if let Store::Open(_) = self.store {
            self.with_store(|store| store.let_go());
        }
    }

    /// Removes the spare names of files of a task.
    fn clear(&self, place: Digest) {
        // What cannot be removed now goes with the run's folder.
        let _ = self.engine.folder.scratch().clear(place.0, SPARE);
    }

    fn close(&mut self) {
        self.keep_batch();
        let bytes_max = self.engine.settings.keep_bytes;
        if let Store::Open(_) = self.store {
            self.with_store(|store| store.evict(bytes_max));
        }
    }

    /// Does something with the store; none if it cannot be used.
    fn with_store<T>(
        &mut self,
        act: impl FnOnce(&mut KeptResults) -> Result<T, KeptError>,
    ) -> Option<T> {
        if let Store::Unopened = self.store {
            let folder = self.engine.settings.state.join(KEPT);
            let opened = KeptResults::open(&folder);
            let opened = opened.and_then(|store| Ok((store.has_unpacked()?, store)));
            self.store = match opened {
                Ok((has_unpacked, store)) => {
                    let anywhere = || surroundings_anywhere(&self.engine.settings);
                    self.unpacked = has_unpacked.then(anywhere);
                    Store::Open(Box::new(store))
                }
                Err(error) => self.give_up(&error),
            };
        }
        let Store::Open(store) = &mut self.store else {
            return None;
        };
        match act(store) {
            Ok(result) => Some(result),
            Err(error) => {
                self.store = self.give_up(&error);
                None
            }
        }
    }

    fn give_up(&self, error: &KeptError) -> Store {
        let message = format!("no results are kept or taken from now on: {error}");
        self.engine.warn(None, &message);
        Store::Unusable
    }
}

/// As the number of an attempt: its files are those of results on their way.
const SPARE: u32 = u32::MAX;

/// What such a file is for.
fn spare(output: usize) -> String {
    format!("kept.{output}")
}

/// A kept result.
struct Taken {
    outputs: Vec<Value<Handle>>,
    printed: Vec<(Sink, Bytes)>,
    /// The bytes of all outputs are there; otherwise they are only described.
    is_whole: bool,
}

fn value_of(form: &Form, content: Content) -> Value<Handle> {
    Value {
        form: form.clone(),
        content,
        references: Vec::new(),
    }
}

fn place_of(label: &Label) -> Digest {
    Digest(label.name.0)
}
