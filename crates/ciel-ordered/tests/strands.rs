//! What each act does, one situation at a time.

use ciel_ordered::{After, Extent, OrderedError, OrderedStream, Piece, Sink, StrandKey};

const ROOT: StrandKey = StrandKey(1);
const CHILD: StrandKey = StrandKey(2);
const OTHER: StrandKey = StrandKey(3);

fn stream_with_root() -> OrderedStream {
    let mut stream = OrderedStream::new();
    stream.open_root(ROOT).unwrap();
    stream
}

fn write(stream: &mut OrderedStream, strand: StrandKey, text: &str) {
    stream.write(strand, text.as_bytes().to_vec()).unwrap();
}

fn drain(stream: &mut OrderedStream) -> String {
    let mut output = Vec::new();
    while let Some(chunk) = stream.take_ready(u64::MAX) {
        match chunk.piece {
            Piece::Bytes(bytes) => output.extend(bytes),
            Piece::Extent(extent) => output.extend(format!("[{}]", extent.length).bytes()),
        }
    }
    String::from_utf8(output).unwrap()
}

#[test]
fn advance_moves_over_what_is_silent_and_takes_nothing() {
    let mut stream = stream_with_root();
    stream.spawn(ROOT, CHILD).unwrap();
    stream.spawn(ROOT, OTHER).unwrap();
    write(&mut stream, OTHER, "behind");
    assert!(!stream.advance());
    assert_eq!(stream.frontier(), Some(CHILD));
    stream.close(CHILD).unwrap();
    assert!(stream.advance() && stream.advance());
    assert_eq!(stream.frontier(), Some(OTHER));
    assert_eq!(stream.held_bytes(), 6);
    assert_eq!(drain(&mut stream), "behind");
    assert!(!stream.advance());
}

#[test]
fn child_writing_late_prints_at_its_spawn_point() {
    let mut stream = stream_with_root();
    write(&mut stream, ROOT, "one ");
    stream.spawn(ROOT, CHILD).unwrap();
    write(&mut stream, ROOT, "three");
    stream.close(ROOT).unwrap();
    assert_eq!(drain(&mut stream), "one ");
    assert_eq!(stream.frontier(), Some(CHILD));
    assert_eq!((stream.held_bytes(), stream.held_by(ROOT)), (5, 5));
    write(&mut stream, CHILD, "two ");
    assert_eq!(drain(&mut stream), "two ");
    stream.close(CHILD).unwrap();
    assert_eq!(drain(&mut stream), "three");
    assert_eq!(stream.frontier(), None);
}

#[test]
fn roots_print_in_order_of_opening_and_chunks_name_them() {
    let mut stream = stream_with_root();
    stream.open_root(OTHER).unwrap();
    write(&mut stream, OTHER, "second");
    stream.close(OTHER).unwrap();
    assert!(stream.take_ready(u64::MAX).is_none());
    stream.close(ROOT).unwrap();
    let chunk = stream.take_ready(u64::MAX).unwrap();
    assert_eq!((chunk.root, chunk.strand), (OTHER, OTHER));
}

#[test]
fn stopped_strand_lets_its_own_output_out_and_nothing_after_it() {
    let mut stream = stream_with_root();
    stream.open_root(StrandKey(9)).unwrap();
    stream.spawn(ROOT, CHILD).unwrap();
    write(&mut stream, ROOT, "after");
    write(&mut stream, CHILD, "before");
    stream.discard(CHILD, After::Stop).unwrap();
    assert_eq!(drain(&mut stream), "before");
    assert_eq!(stream.stopped_at(), Some(CHILD));
    assert_eq!(stream.held_bytes(), 0);
    let late = stream.write(ROOT, b"late".to_vec());
    assert_eq!(late, Err(OrderedError::Unknown { strand: ROOT }));
    write(&mut stream, StrandKey(9), "next root");
    assert_eq!(drain(&mut stream), "next root");
}

#[test]
fn cut_strand_keeps_what_the_frontier_can_reach_and_no_more() {
    let mut stream = stream_with_root();
    stream.spawn(ROOT, CHILD).unwrap();
    write(&mut stream, ROOT, "after");
    write(&mut stream, CHILD, "reached ");
    stream.spawn(CHILD, OTHER).unwrap();
    write(&mut stream, CHILD, "behind an open child ");
    stream.cut(CHILD).unwrap();
    stream.check_all();
    // Of the child that is not cut, all goes out: the frontier is in it.
    write(&mut stream, OTHER, "other ");
    assert_eq!(drain(&mut stream), "reached other ");
    stream.cut(OTHER).unwrap();
    stream.close(ROOT).unwrap();
    assert_eq!(drain(&mut stream), "after");
    assert_eq!((stream.frontier(), stream.held_bytes()), (None, 0));
}

#[test]
fn strand_that_the_frontier_has_not_reached_is_cut_to_nothing_with_its_children() {
    let mut stream = stream_with_root();
    stream.spawn(ROOT, OTHER).unwrap();
    stream.spawn(ROOT, CHILD).unwrap();
    write(&mut stream, CHILD, "lost");
    stream.spawn(CHILD, StrandKey(9)).unwrap();
    stream.cut(CHILD).unwrap();
    stream.check_all();
    let late = stream.write(StrandKey(9), b"late".to_vec());
    let strand = StrandKey(9);
    assert_eq!(late, Err(OrderedError::Unknown { strand }));
    stream.close(OTHER).unwrap();
    stream.close(ROOT).unwrap();
    assert_eq!(drain(&mut stream), "");
    assert_eq!(stream.frontier(), None);
}

/// What stays must not depend on how far the thread that writes has come: a fold, which takes all
/// that is final at once, would keep other bytes.
#[test]
fn cut_keeps_the_same_bytes_however_much_was_taken_before() {
    for taken in 0..4 {
        let mut stream = stream_with_root();
        write(&mut stream, ROOT, "one ");
        stream.spawn(ROOT, CHILD).unwrap();
        stream.hold(CHILD).unwrap();
        write(&mut stream, CHILD, "final ");
        stream.commit(CHILD).unwrap();
        write(&mut stream, CHILD, "held ");
        write(&mut stream, ROOT, "two");
        let mut seen = String::new();
        for _ in 0..taken {
            let chunk = stream.take_ready(3).unwrap();
            assert!(chunk.piece.length() <= 3);
            seen.push_str(&"?".repeat(chunk.piece.length() as usize));
        }
        stream.cut(CHILD).unwrap();
        stream.check_all();
        stream.close(ROOT).unwrap();
        seen += &drain(&mut stream);
        assert_eq!(seen.len(), "one final two".len(), "{taken}: {seen}");
        assert!(seen.ends_with("two"), "{taken}: {seen}");
    }
}

#[test]
fn spilled_output_that_the_frontier_could_reach_stays() {
    let mut stream = stream_with_root();
    stream.spawn(ROOT, CHILD).unwrap();
    stream.write(CHILD, vec![b'x'; 1 << 20]).unwrap();
    let spill = stream.spillable(u64::MAX).remove(0);
    stream.cut(CHILD).unwrap();
    stream.check_all();
    let (blob, offset, length) = (7, 0, spill.bytes.len() as u64);
    let extent = Extent {
        blob,
        offset,
        length,
    };
    stream.replace(spill.ticket, extent).unwrap();
    stream.close(ROOT).unwrap();
    assert_eq!(drain(&mut stream), format!("[{length}]"));
}

#[test]
fn skipped_strand_lets_the_frontier_pass() {
    let mut stream = stream_with_root();
    stream.spawn(ROOT, CHILD).unwrap();
    stream.discard(CHILD, After::Skip).unwrap();
    write(&mut stream, ROOT, "after");
    assert_eq!(drain(&mut stream), "after");
}

#[test]
fn held_strand_prints_at_its_commit_only() {
    let mut stream = stream_with_root();
    stream.hold(ROOT).unwrap();
    write(&mut stream, ROOT, "first");
    assert_eq!(drain(&mut stream), "");
    stream.commit(ROOT).unwrap();
    write(&mut stream, ROOT, "second");
    assert_eq!(drain(&mut stream), "first");
    stream.close(ROOT).unwrap();
    assert_eq!(drain(&mut stream), "");
    stream.commit(ROOT).unwrap();
    assert_eq!(drain(&mut stream), "second");
}

#[test]
fn rolled_back_attempt_leaves_nothing_and_its_children_have_no_place() {
    let mut stream = stream_with_root();
    stream.hold(ROOT).unwrap();
    write(&mut stream, ROOT, "failed");
    let extent = Extent {
        blob: 4,
        offset: 0,
        length: 9,
    };
    stream.write(ROOT, Piece::Extent(extent)).unwrap();
    stream.spawn(ROOT, CHILD).unwrap();
    write(&mut stream, CHILD, "child of the failed attempt");
    stream.withdraw(ROOT).unwrap();
    assert_eq!(stream.take_dropped(), [extent]);
    let late = stream.write(CHILD, b"late".to_vec());
    assert_eq!(late, Err(OrderedError::Unknown { strand: CHILD }));
    write(&mut stream, ROOT, "well");
    stream.spawn(ROOT, CHILD).unwrap();
    stream.release(ROOT).unwrap();
    assert_eq!(drain(&mut stream), "well");
    assert_eq!(stream.gauges().strands, 2);
}

#[test]
fn strand_not_held_cannot_be_rolled_back() {
    let mut stream = stream_with_root();
    assert_eq!(
        stream.withdraw(ROOT),
        Err(OrderedError::NotHeld { strand: ROOT })
    );
}

#[test]
fn replay_after_release_prints_only_what_is_new() {
    let mut stream = stream_with_root();
    write(&mut stream, ROOT, "ab");
    stream.spawn(ROOT, CHILD).unwrap();
    stream.close(CHILD).unwrap();
    write(&mut stream, ROOT, "cd");
    assert_eq!(drain(&mut stream), "abcd");
    stream.roll_back(ROOT, u64::MAX).unwrap();
    write(&mut stream, ROOT, "ab");
    stream.spawn(ROOT, CHILD).unwrap();
    write(&mut stream, ROOT, "cdef");
    stream.close(ROOT).unwrap();
    assert_eq!(drain(&mut stream), "ef");
}

#[test]
fn replay_that_ends_short_is_a_mismatch_and_may_then_close_as_it_is() {
    let mut stream = stream_with_root();
    write(&mut stream, ROOT, "abc");
    stream.roll_back(ROOT, u64::MAX).unwrap();
    write(&mut stream, ROOT, "ab");
    let mismatch = OrderedError::Mismatch {
        strand: ROOT,
        offset: 0,
    };
    assert_eq!(stream.close(ROOT), Err(mismatch));
    stream.close(ROOT).unwrap();
    assert_eq!(drain(&mut stream), "abc");
}

#[test]
fn spilled_piece_holds_the_frontier_until_its_extent_comes() {
    let mut stream = stream_with_root();
    stream.spawn(ROOT, CHILD).unwrap();
    write(&mut stream, ROOT, &"x".repeat(1000));
    let spills = stream.spillable(1);
    assert_eq!(
        (spills.len(), spills[0].bytes.len(), stream.held_bytes()),
        (1, 1000, 0)
    );
    stream.close(CHILD).unwrap();
    assert_eq!(drain(&mut stream), "");
    let extent = Extent {
        blob: 1,
        offset: 50,
        length: 1000,
    };
    stream.replace(spills[0].ticket, extent).unwrap();
    assert_eq!(stream.gauges().extent_bytes, 1000);
    let first = stream.take_ready(600).unwrap().piece;
    assert_eq!(
        first,
        Piece::Extent(Extent {
            blob: 1,
            offset: 50,
            length: 600
        })
    );
    let second = stream.take_ready(600).unwrap().piece;
    assert_eq!(
        second,
        Piece::Extent(Extent {
            blob: 1,
            offset: 650,
            length: 400
        })
    );
    assert_eq!(
        stream.replace(spills[0].ticket, extent),
        Err(OrderedError::UnknownTicket)
    );
}

#[test]
fn pieces_furthest_from_the_frontier_are_spilled_first() {
    let mut stream = stream_with_root();
    let text = |byte: &str| byte.repeat(200);
    stream.spawn(ROOT, CHILD).unwrap();
    write(&mut stream, ROOT, &text("m"));
    stream.spawn(ROOT, OTHER).unwrap();
    write(&mut stream, OTHER, &text("z"));
    write(&mut stream, CHILD, &text("a"));
    let order: Vec<u8> = (0..3).map(|_| stream.spillable(1)[0].bytes[0]).collect();
    assert_eq!(order, b"zma");
}

#[test]
fn keys_used_twice_and_acts_after_the_end_are_refused() {
    let mut stream = stream_with_root();
    stream.spawn(ROOT, CHILD).unwrap();
    let known = |strand| Err(OrderedError::AlreadyKnown { strand });
    assert_eq!(stream.open_root(CHILD), known(CHILD));
    assert_eq!(stream.spawn(ROOT, CHILD), known(CHILD));
    assert_eq!(stream.spawn(CHILD, ROOT), known(ROOT));
    stream.close(CHILD).unwrap();
    assert_eq!(
        stream.close(CHILD),
        Err(OrderedError::Closed { strand: CHILD })
    );
}

#[test]
fn rollback_withdraws_what_came_from_the_action_on() {
    let mut stream = stream_with_root();
    write(&mut stream, ROOT, "before ");
    stream.spawn(ROOT, CHILD).unwrap();
    write(&mut stream, ROOT, "between ");
    stream.reach(ROOT, 4).unwrap();
    write(&mut stream, ROOT, "after four ");
    stream.spawn(ROOT, OTHER).unwrap();
    write(&mut stream, OTHER, "gone ");
    stream.roll_back(ROOT, 4).unwrap();
    assert!(!stream.has_place(OTHER));
    for text in ["before ", "", "between ", "anew "] {
        match text {
            "" => stream.spawn(ROOT, CHILD).unwrap(),
            text => write(&mut stream, ROOT, text),
        }
    }
    stream.spawn(ROOT, OTHER).unwrap();
    for strand in [CHILD, OTHER, ROOT] {
        stream.close(strand).unwrap();
    }
    assert_eq!(drain(&mut stream), "before between anew ");
    assert_eq!(stream.gauges().held_bytes, 0);
}

#[test]
fn rollback_leaves_what_is_released_and_compares_it() {
    let mut stream = stream_with_root();
    stream.reach(ROOT, 2).unwrap();
    write(&mut stream, ROOT, "out");
    assert_eq!(drain(&mut stream), "out");
    write(&mut stream, ROOT, " and not");
    assert_eq!(stream.rollback_min(ROOT), 2);
    stream.roll_back(ROOT, 2).unwrap();
    assert_eq!(stream.held_bytes(), 0);
    write(&mut stream, ROOT, "out");
    write(&mut stream, ROOT, " but new");
    stream.close(ROOT).unwrap();
    assert_eq!(drain(&mut stream), " but new");
}

#[test]
fn rollback_does_not_go_behind_a_mark() {
    let mut stream = stream_with_root();
    write(&mut stream, ROOT, "kept ");
    stream.mark(ROOT).unwrap();
    write(&mut stream, ROOT, "gone");
    stream.roll_back(ROOT, 0).unwrap();
    write(&mut stream, ROOT, "new");
    stream.close(ROOT).unwrap();
    assert_eq!(drain(&mut stream), "kept new");
}

#[test]
fn rollback_takes_back_children_that_wrote_nothing() {
    let mut stream = stream_with_root();
    write(&mut stream, ROOT, "kept ");
    stream.reach(ROOT, 3).unwrap();
    stream.spawn(ROOT, CHILD).unwrap();
    stream.close(CHILD).unwrap();
    stream.spawn(ROOT, OTHER).unwrap();
    assert_eq!(drain(&mut stream), "kept ");
    assert_eq!(stream.frontier(), Some(OTHER));
    assert_eq!(stream.rollback_min(ROOT), 0);
    stream.roll_back(ROOT, 3).unwrap();
    stream.check_all();
    assert_eq!(stream.frontier(), Some(ROOT));
    assert!(!stream.has_place(CHILD) && !stream.has_place(OTHER));
    write(&mut stream, ROOT, "kept ");
    stream.reach(ROOT, 3).unwrap();
    stream.spawn(ROOT, CHILD).unwrap();
    write(&mut stream, CHILD, "now it writes");
    for strand in [CHILD, ROOT] {
        stream.close(strand).unwrap();
    }
    assert_eq!(drain(&mut stream), "now it writes");
}

/// Not even one byte.
#[test]
fn what_a_child_has_written_cannot_be_taken_back() {
    for (is_released, is_closed) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut stream = stream_with_root();
        stream.spawn(ROOT, CHILD).unwrap();
        stream.spawn(CHILD, OTHER).unwrap();
        write(&mut stream, OTHER, "x");
        if is_closed {
            stream.close(OTHER).unwrap();
            stream.close(CHILD).unwrap();
        }
        assert_eq!(stream.rollback_min(ROOT), 1);
        if is_released {
            assert_eq!(drain(&mut stream), "x");
        }
        assert_eq!(stream.rollback_min(ROOT), 1, "{is_released} {is_closed}");
        if !is_closed {
            assert_eq!(stream.rollback_min(CHILD), 1);
        }
    }
}

#[test]
fn what_is_written_where_the_frontier_cannot_come_can_be_taken_back() {
    let mut stream = stream_with_root();
    stream.spawn(ROOT, CHILD).unwrap();
    stream.spawn(ROOT, OTHER).unwrap();
    write(&mut stream, OTHER, "behind a child that may still write");
    assert_eq!(stream.rollback_min(ROOT), 0);
    assert_eq!(drain(&mut stream), "");
    stream.roll_back(ROOT, 1).unwrap();
    stream.check_all();
    assert!(stream.has_place(CHILD) && !stream.has_place(OTHER));
    assert_eq!(stream.held_bytes(), 0);
}

/// What is buffered is told for each file, and each file's own bytes come out in order.
#[test]
fn bytes_behind_the_frontier_are_counted_by_sink() {
    let [root, child] = [StrandKey(1), StrandKey(2)];
    let mut stream = OrderedStream::new();
    stream.open_root(root).unwrap();
    stream.spawn(root, child).unwrap();
    for (sink, text) in [(0, "shown"), (1, "log"), (1, "ged"), (2, "table")] {
        let bytes = text.as_bytes().to_vec();
        stream.write_to(root, Sink(sink), bytes).unwrap();
    }
    assert_eq!(stream.take_ready(100), None);
    let held = |stream: &OrderedStream| Vec::from_iter(stream.unreleased_bytes());
    assert_eq!(held(&stream), [(Sink(0), 5), (Sink(1), 6), (Sink(2), 5)]);
    let spill = stream.spillable(1);
    assert!(spill.is_empty(), "pieces that short stay in memory");
    stream.close(child).unwrap();
    let piece = |text: &str| Piece::Bytes(text.as_bytes().to_vec());
    let part = stream.take_ready(3).map(|chunk| chunk.piece);
    assert_eq!(part, Some(piece("sho")));
    assert_eq!(held(&stream), [(Sink(0), 2), (Sink(1), 6), (Sink(2), 5)]);
    let released = std::iter::from_fn(|| stream.take_ready(100));
    let released: Vec<_> = released.map(|chunk| (chunk.sink, chunk.piece)).collect();
    let expected = [(0, "wn"), (1, "logged"), (2, "table")];
    assert_eq!(
        released,
        expected.map(|(sink, text)| (Sink(sink), piece(text)))
    );
}
