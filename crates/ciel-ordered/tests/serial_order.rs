//! Random programs in random orders print what the serial interpreter prints.

mod world;

use ciel_ordered::{OrderedError, OrderedStream, Sink, StrandKey};
use proptest::prelude::*;
use world::{Random, World};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_program_prints_the_serial_output_and_leaves_nothing(
        seed in any::<u64>(),
        size in 1..40usize,
    ) {
        let mut world = World::new(seed, size, true);
        world.run();
        let gauges = world.stream.gauges();
        prop_assert_eq!(gauges.strands, 0);
        prop_assert_eq!((gauges.held_bytes, gauges.extent_bytes), (0, 0));
        prop_assert_eq!(gauges.released_bytes, world.output.len() as u64);
        for sink in [0, 1, 2].map(Sink) {
            let released = world.output.iter().filter(|(of, _)| *of == sink).count();
            prop_assert_eq!(world.stream.released_bytes_of(sink), released as u64);
        }
        prop_assert!(world.stream.unreleased_bytes().is_empty());
        prop_assert_eq!(world.stream.frontier(), None);
    }

    #[test]
    fn replay_with_a_difference_is_reported_and_releases_nothing_of_it(
        seed in any::<u64>(),
        release in any::<bool>(),
    ) {
        let mut random = Random(seed);
        let first: Vec<Option<Vec<u8>>> = (0..1 + random.below(8))
            .map(|_| (!random.one_in(3)).then(|| [vec![b'x'], random.text(40)].concat()))
            .collect();
        let mut second = first.clone();
        let changed = random.below(first.len());
        match &mut second[changed] {
            Some(bytes) => {
                let at = random.below(bytes.len());
                bytes[at] ^= 1;
            }
            None => second[changed] = Some(vec![b'?']),
        }
        let strand = StrandKey(0);
        let mut stream = OrderedStream::new();
        stream.open_root(strand).unwrap();
        perform(&mut stream, strand, &first).unwrap();
        let mut output = if release { drain(&mut stream) } else { Vec::new() };
        stream.roll_back(strand, u64::MAX).unwrap();
        let outcome = perform(&mut stream, strand, &second).and_then(|()| stream.close(strand));
        let agreeing: usize = first[..changed].iter().flatten().map(Vec::len).sum();
        let changed_until = agreeing + first[changed].as_ref().map_or(0, Vec::len);
        match outcome {
            Err(OrderedError::Mismatch { offset, .. }) => {
                prop_assert!(offset <= changed_until as u64);
            }
            other => prop_assert!(false, "{:?} changed in {:?} gave {:?}", changed, first, other),
        }
        let diverged = OrderedError::Diverged { strand };
        prop_assert_eq!(stream.write(strand, b"more".to_vec()), Err(diverged));
        stream.close(strand).unwrap();
        output.extend(drain(&mut stream));
        prop_assert_eq!(output, first.into_iter().flatten().flatten().collect::<Vec<u8>>());
    }
}

/// Writes the given bytes; where there are none, spawns the next child, which ends at once.
fn perform(
    stream: &mut OrderedStream,
    strand: StrandKey,
    events: &[Option<Vec<u8>>],
) -> Result<(), OrderedError> {
    let mut children = 1;
    for event in events {
        match event {
            Some(bytes) => stream.write(strand, bytes.clone())?,
            None => {
                let child = StrandKey(children);
                children += 1;
                stream.spawn(strand, child)?;
                match stream.close(child) {
                    Ok(()) | Err(OrderedError::Closed { .. } | OrderedError::Unknown { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(())
}

fn drain(stream: &mut OrderedStream) -> Vec<u8> {
    let mut output = Vec::new();
    while let Some(chunk) = stream.take_ready(u64::MAX) {
        match chunk.piece {
            ciel_ordered::Piece::Bytes(bytes) => output.extend(bytes),
            ciel_ordered::Piece::Extent(_) => unreachable!("nothing was spilled"),
        }
    }
    output
}

/// A coordinator that was brought back takes all that is final at once. When a part of a piece had
/// been taken before, the end of the rest was computed past the largest number.
#[test]
fn rest_of_a_piece_is_taken_without_any_limit() {
    let mut stream = OrderedStream::new();
    stream.open_root(StrandKey(1)).unwrap();
    stream.write(StrandKey(1), b"one two".to_vec()).unwrap();
    assert_eq!(stream.take_ready(3).unwrap().piece, b"one".to_vec().into());
    let rest = stream.take_ready(u64::MAX).unwrap();
    assert_eq!(rest.piece, b" two".to_vec().into());
}
