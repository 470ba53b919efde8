//! What forks and writes may cost, proven by counters: allocations, nodes, pieces, bytes spilled.

use std::fs;
use std::io::Write;
use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering};

use allocation_counter::measure;
use ciel_files::{File, Gauges, Mode, fork, here, join, scope};

/// Bytes of a line of these trees.
const LINE_BYTES: u64 = 16;

fn pool(threads: usize) -> rayon::ThreadPool {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap()
}

fn tree(depth: u32, place: u64, leaf: &(impl Fn(u64) + Sync)) {
    match depth {
        0 => leaf(place),
        _ => drop(join(
            || tree(depth - 1, 2 * place, leaf),
            || tree(depth - 1, 2 * place + 1, leaf),
        )),
    }
}

fn line(file: &File, place: u64) {
    writeln!(&*file, "{place:0>15}").unwrap();
}

fn lines(depth: u32) -> String {
    let first = 1u64 << depth;
    (first..2 * first)
        .map(|place| format!("{place:0>15}\n"))
        .collect()
}

/// What all threads of a pool have counted.
fn gauges_of(pool: &rayon::ThreadPool) -> Gauges {
    let all = pool.broadcast(|_| Gauges::of_this_thread());
    all.into_iter().fold(Gauges::default(), Add::add)
}

#[test]
fn joins_that_nobody_takes_allocate_nothing_and_make_no_nodes() {
    pool(1).install(|| {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("a"), Mode::SerialAppend).unwrap();
        // The first lines give buffer and text their size.
        tree(12, 1, &|place| line(&file, place));
        // rayon's own queue of the thread grows now and then; its tree of joins is measured first.
        let rayon = allocations_of(|| plain(18));
        let before = Gauges::of_this_thread();
        let ours = allocations_of(|| tree(18, 1, &|_| ()));
        assert_eq!(ours, rayon);
        let writing = allocations_of(|| tree(18, 1, &|place| line(&file, place)));
        assert_eq!(writing, rayon);
        assert_eq!(Gauges::of_this_thread(), before);
        file.close().unwrap();
    });
}

fn plain(depth: u32) {
    if depth > 0 {
        rayon::join(|| plain(depth - 1), || plain(depth - 1));
    }
}

fn allocations_of(act: impl FnOnce()) -> u64 {
    measure(act).count_total
}

#[test]
fn one_thread_spills_nothing_whatever_it_writes() {
    let pool = pool(1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    pool.install(|| {
        let file = File::create(&path, Mode::SerialAppend).unwrap();
        tree(15, 1, &|place| line(&file, place));
        file.close().unwrap();
    });
    assert_eq!(gauges_of(&pool).spilled_bytes, 0);
    assert_eq!(gauges_of(&pool).nodes, 0);
    assert_eq!(fs::read_to_string(&path).unwrap(), lines(15));
}

#[test]
fn nodes_are_one_for_each_second_closure_that_migrated() {
    for threads in [2, 3, 4] {
        let pool = pool(threads);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let moved = AtomicU64::new(0);
        pool.install(|| {
            let file = File::create(&path, Mode::SerialAppend).unwrap();
            moving_tree(14, 1, &file, &moved);
            file.close().unwrap();
        });
        let gauges = gauges_of(&pool);
        let moved = moved.load(Ordering::Relaxed);
        // Of a closure that the own thread takes back while it waits, rayon says that it migrated,
        // so the threads that are seen to differ are at most as many.
        assert!(moved <= gauges.nodes, "{moved} and {gauges:?}");
        assert!(gauges.nodes < 1 << 14, "{gauges:?}");
        let bytes = LINE_BYTES << 14;
        assert!(gauges.spilled_bytes <= bytes, "{gauges:?}");
        let pieces_max = bytes.div_ceil(64 << 10) + 2 * gauges.nodes + 1;
        assert!(gauges.spilled_pieces <= pieces_max, "{gauges:?}");
        // Each piece is listed once and appended once at most, however many joins it passes.
        assert!(gauges.extents_kept <= gauges.spilled_pieces, "{gauges:?}");
        assert!(gauges.extents_appended <= gauges.extents_kept, "{gauges:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), lines(14));
    }
}

#[test]
fn closures_that_migrate_and_write_nothing_make_no_nodes() {
    for threads in [2, 4] {
        let pool = pool(threads);
        let folder = tempfile::tempdir().unwrap();
        pool.install(|| {
            let file = File::create(folder.path().join("a"), Mode::SerialAppend).unwrap();
            tree(14, 1, &|_| std::thread::yield_now());
            line(&file, 1);
            file.close().unwrap();
        });
        assert_eq!(gauges_of(&pool).nodes, 0);
    }
}

/// A tree that counts second closures which run on another thread than their join.
fn moving_tree(depth: u32, place: u64, file: &File, moved: &AtomicU64) {
    if depth == 0 {
        return line(file, place);
    }
    let here = std::thread::current().id();
    join(
        || moving_tree(depth - 1, 2 * place, file, moved),
        || {
            let differs = std::thread::current().id() != here;
            moved.fetch_add(u64::from(differs), Ordering::Relaxed);
            moving_tree(depth - 1, 2 * place + 1, file, moved);
        },
    );
}

#[test]
fn strands_that_all_run_backwards_spill_what_does_not_fit_their_buffers_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let file = File::create(&path, Mode::SerialAppend).unwrap();
    let before = Gauges::of_this_thread();
    let strands: Vec<_> = (0..50u8).map(|number| (number, fork())).collect();
    let bytes = 100 << 10;
    for (number, strand) in strands.into_iter().rev() {
        strand.run(|| (&file).write_all(&vec![number; bytes]).unwrap());
    }
    file.close().unwrap();
    let after = Gauges::of_this_thread();
    // Nothing is written between two forks, so each has one node, and the first another one.
    assert_eq!(after.nodes - before.nodes, 50 + 1);
    // The first strand of all has its turn when it comes.
    assert_eq!(
        after.spilled_bytes - before.spilled_bytes,
        49 * bytes as u64
    );
    assert_eq!(after.spilled_pieces - before.spilled_pieces, 49);
    let wanted: Vec<u8> = (0..50u8).flat_map(|number| vec![number; bytes]).collect();
    assert!(fs::read(&path).unwrap() == wanted);
}

/// Joining used to note each piece of the second part again, so that a long chain of parts cost the
/// square of its pieces.
#[test]
fn pieces_are_listed_once_however_many_joins_they_pass() {
    const STRANDS: u64 = 100;
    let folder = tempfile::tempdir().unwrap();
    let file = File::create(folder.path().join("a"), Mode::SerialAppend).unwrap();
    let other = File::create(folder.path().join("b"), Mode::SerialAppend).unwrap();
    let before = Gauges::of_this_thread();
    let place = here().unwrap();
    let piece = vec![b'p'; 70 << 10];
    let all = (0..STRANDS).fold(None, |behind, _| {
        let mut strand = place.detached();
        // Its pieces lie backwards in the spill file, so that no two are neighbours.
        strand.within(|| {
            (&file).write_all(&piece).unwrap();
            (&other).write_all(&piece).unwrap();
        });
        if let Some(behind) = behind {
            strand.reduce(behind).unwrap();
        }
        Some(strand)
    });
    all.unwrap().append().unwrap();
    file.close().unwrap();
    other.close().unwrap();
    let after = Gauges::of_this_thread();
    let kept = after.extents_kept - before.extents_kept;
    assert_eq!(kept, 2 * STRANDS);
    assert_eq!(after.extents_appended - before.extents_appended, kept);
}

#[test]
fn closures_of_a_scope_have_one_node_each_and_what_is_written_between_them_another() {
    pool(1).install(|| {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join("a"), Mode::SerialAppend).unwrap();
        let before = Gauges::of_this_thread().nodes;
        let to = &file;
        scope(|scope| (0..100).for_each(|place| scope.spawn(move |_| line(to, place))));
        let spawned = Gauges::of_this_thread().nodes;
        assert_eq!(spawned - before, 100 + 1);
        scope(|scope| {
            for place in 0..100 {
                scope.spawn(move |_| line(to, place));
                line(to, place);
            }
        });
        assert!(Gauges::of_this_thread().nodes - spawned <= 2 * 100 + 1);
        file.close().unwrap();
    });
}
