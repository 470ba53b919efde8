//! Regions of shared memory: any order of values and releases, and what is told of them.

use std::time::Duration;

use ciel_streams::limits::{
    FRESH_MIB_US, SHARED_AT_ONCE_PARTS, SHARED_BYTES, SHARED_BYTES_MIN, SHARED_HELD_PARTS,
    SHARED_UNIT_BYTES, SHARED_UNITS, SHARED_UNTAKEN_PARTS, SHARED_VALUE_BYTES_MIN,
    SHARED_VALUE_PARTS,
};
use ciel_streams::regions::{
    HeldRegions, Place, REGION_BYTES, Region, Regions, granted, is_shared,
};
use proptest::collection::vec;
use proptest::prelude::*;

const UNIT: u64 = SHARED_UNIT_BYTES;
const MIN: u64 = SHARED_VALUE_BYTES_MIN;
const MAX: u64 = SHARED_BYTES / SHARED_VALUE_PARTS;

/// Where a producer that does not wait has a value.
fn placed(
    regions: &mut Regions,
    length: u64,
    is_released: impl FnMut(Region) -> bool,
) -> Option<Region> {
    match regions.place(length, false, is_released) {
        Place::Warm(region) | Place::Fresh(region) => Some(region),
        Place::Pipe => None,
        Place::NextReleased(_) => panic!("it does not wait"),
    }
}

/// A process that keeps what it was told of, unit by unit.
struct Oracle {
    /// The number of the region that has the unit; zero if none has.
    units: [u64; SHARED_UNITS],
    held: Vec<Region>,
    /// What is tested, which is to say the same.
    reader: HeldRegions,
}

impl Oracle {
    fn new() -> Oracle {
        Oracle {
            units: [0; SHARED_UNITS],
            held: Vec::new(),
            reader: HeldRegions::new(SHARED_BYTES),
        }
    }

    fn units_of(&mut self, region: Region) -> &mut [u64] {
        let count = (region.length() as u64).div_ceil(UNIT) as usize;
        &mut self.units[region.unit()..region.unit() + count]
    }

    fn take(&mut self, region: Region) {
        let units = self.units_of(region);
        assert!(units.iter().all(|number| *number == 0), "{region:?}");
        units.fill(region.number());
        self.held.push(region);
        self.reader.take(region).unwrap();
        self.check_reader();
    }

    fn release(&mut self, index: usize) {
        let region = self.held.swap_remove(index);
        let units = self.units_of(region);
        assert!(units.iter().all(|number| *number == region.number()));
        units.fill(0);
        self.reader.give_back(region);
        self.check_reader();
    }

    fn check_reader(&self) {
        let held: usize = self.held.iter().map(|region| region.length()).sum();
        assert_eq!(
            self.reader.is_full(),
            held as u64 > SHARED_BYTES / SHARED_HELD_PARTS
        );
        let mut is_gap = [false; SHARED_UNITS];
        for gap in self.reader.gaps() {
            is_gap[gap.start / UNIT as usize..gap.end / UNIT as usize].fill(true);
        }
        assert_eq!(is_gap, self.units.map(|number| number == 0));
        assert_eq!(self.reader.is_empty(), self.held.is_empty());
        for region in &self.held {
            let again = self.reader.clone().take(*region);
            assert!(again.is_err(), "{region:?} is held twice");
        }
    }

    /// Where the first run of so many free units begins.
    fn gap(&self, count: usize) -> Option<usize> {
        let mut runs = self.units.windows(count);
        runs.position(|run| run.iter().all(|number| *number == 0))
    }
}

#[derive(Clone, Debug)]
enum Act {
    Place(u64),
    Release(prop::sample::Index),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let edges = prop::sample::select(vec![MIN, MIN + 1, UNIT * 3 - 1, UNIT * 3, 16 << 20, MAX]);
    let lengths = prop_oneof![edges, MIN..=MAX, MIN..=4 * MIN];
    let release = any::<prop::sample::Index>().prop_map(Act::Release);
    vec(
        prop_oneof![3 => lengths.prop_map(Act::Place), 2 => release],
        1..200,
    )
}

proptest! {
    #[test]
    fn values_have_the_lowest_free_memory_whatever_is_released_when(acts in acts()) {
        let mut regions = Regions::new(SHARED_BYTES, 0);
        let mut oracle = Oracle::new();
        for act in acts {
            match act {
                Act::Release(_) if oracle.held.is_empty() => {}
                Act::Release(index) => oracle.release(index.index(oracle.held.len())),
                Act::Place(length) => {
                    let gap = oracle.gap(length.div_ceil(UNIT) as usize);
                    let held = &oracle.held;
                    let placed = placed(&mut regions, length, |region| !held.contains(&region));
                    prop_assert_eq!(placed.map(|region| region.unit()), gap);
                    if let Some(region) = placed {
                        prop_assert_eq!(region.length() as u64, length);
                        oracle.take(region);
                    }
                }
            }
        }
    }

    #[test]
    fn producer_is_far_ahead_when_its_reader_has_a_quarter_of_the_memory_to_take(
        acts in vec((MIN..=MAX, any::<prop::sample::Index>()), 1..60),
    ) {
        let mut regions = Regions::new(SHARED_BYTES, 0);
        let (mut lengths, mut taken) = (Vec::new(), 0);
        for (length, take) in acts {
            let region = placed(&mut regions, length, |_| true).unwrap();
            lengths.push(length);
            prop_assert_eq!(region.number(), lengths.len() as u64);
            taken = taken.max(take.index(lengths.len() + 1));
            let untaken: u64 = lengths[taken..].iter().sum();
            let is_far_ahead = regions.is_far_ahead(taken as u64);
            prop_assert_eq!(is_far_ahead, untaken > SHARED_BYTES / SHARED_UNTAKEN_PARTS);
        }
    }

    #[test]
    fn producer_waits_for_fresh_pages_only_and_no_longer_than_all_of_them_take(
        acts in acts(),
        is_released_in_time in any::<bool>(),
    ) {
        let mut regions = Regions::new(SHARED_BYTES, 0);
        let (mut held, mut waited) = (Vec::new(), Duration::ZERO);
        let mut warm_end = 0;
        for act in acts {
            let length = match act {
                Act::Release(index) => {
                    if !held.is_empty() {
                        held.swap_remove(index.index(held.len()));
                    }
                    continue;
                }
                Act::Place(length) => length,
            };
            let mut place = regions.place(length, true, |region| !held.contains(&region));
            if let Place::NextReleased(time) = place {
                prop_assert!(held.len() > 1);
                if is_released_in_time {
                    held.clear();
                } else {
                    waited += time;
                }
                place = regions.place(length, false, |region| !held.contains(&region));
                prop_assert!(!is_released_in_time || matches!(place, Place::Warm(_)));
            }
            match place {
                Place::Warm(region) => {
                    prop_assert!(region.units().end <= warm_end);
                    held.push(region);
                }
                Place::Fresh(region) => {
                    prop_assert!(region.units().end > warm_end);
                    warm_end = region.units().end;
                    held.push(region);
                }
                _ => prop_assert_eq!(place, Place::Pipe),
            }
        }
        prop_assert!(waited <= Duration::from_micros((SHARED_BYTES * FRESH_MIB_US) >> 20));
    }

    #[test]
    fn few_pages_pass_between_a_producer_and_a_reader_that_lets_go(
        length in MIN..=MAX,
    ) {
        let mut regions = Regions::new(SHARED_BYTES, 0);
        let mut held = Vec::new();
        let mut end = 0;
        for _ in 0..2 * SHARED_BYTES / length {
            let is_released = |held: &[Region], region| !held.contains(&region);
            let mut place = regions.place(length, true, |region| is_released(&held, region));
            while let Place::NextReleased(_) = place {
                held.remove(0);
                place = regions.place(length, true, |region| is_released(&held, region));
            }
            let (Place::Warm(region) | Place::Fresh(region)) = place else {
                panic!("{place:?}");
            };
            end = end.max(region.units().end as u64);
            held.push(region);
        }
        let two = 2 * length.next_multiple_of(UNIT);
        prop_assert!(end <= two.max(SHARED_BYTES / SHARED_AT_ONCE_PARTS), "{end} of {length}");
    }

    #[test]
    fn whatever_is_told_is_a_region_in_the_memory_or_none(
        words in any::<[u64; 3]>(),
        near in 0..3u64,
        memory in SHARED_BYTES_MIN / UNIT..=SHARED_UNITS as u64,
    ) {
        let [offset, length, number] = words;
        let memory = memory * UNIT;
        for offset in [offset, offset % memory, memory - near * UNIT, 0] {
            for length in [length, length % (2 * MAX), memory / SHARED_VALUE_PARTS + near, MIN] {
                let unnumbered = [offset, length, 0].map(u64::to_le_bytes);
                let unnumbered = unnumbered.as_flattened().try_into().unwrap();
                prop_assert!(Region::from_bytes(unnumbered, memory).is_err());
                let told = [offset, length, number].map(u64::to_le_bytes);
                let told: [u8; REGION_BYTES] = told.as_flattened().try_into().unwrap();
                if let Ok(region) = Region::from_bytes(told, memory) {
                    prop_assert!(region.offset() as u64 + length <= memory);
                    prop_assert!(is_shared(length, memory) && number > 0);
                    prop_assert_eq!(region.to_bytes(), told);
                } else {
                    let end = offset.checked_add(length);
                    let in_memory = end.is_some_and(|end| end <= memory);
                    let is_fit = is_shared(length, memory);
                    let is_placed = in_memory && is_fit && offset.is_multiple_of(UNIT);
                    prop_assert!(!is_placed || number == 0);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn streams_get_memory_in_which_their_values_are_shared_and_leave_some_for_the_next(
        lengths in vec(MIN..=MAX, 1..60),
        budget in 0..=4 * SHARED_BYTES,
    ) {
        let mut free = budget;
        for length in lengths {
            let least = SHARED_VALUE_PARTS * length.next_multiple_of(UNIT);
            let least = least.max(SHARED_BYTES_MIN);
            let Some(bytes) = granted(length, free) else {
                prop_assert!(free < least);
                continue;
            };
            prop_assert!(bytes <= free && bytes.is_multiple_of(UNIT));
            prop_assert!((SHARED_BYTES_MIN..=SHARED_BYTES).contains(&bytes));
            prop_assert!(is_shared(length, bytes));
            prop_assert!(bytes <= (free / 2).max(least));
            free -= bytes;
        }
    }
}

#[test]
fn stream_of_values_that_no_memory_takes_gets_none() {
    for length in [0, MIN - 1, MAX + 1, u64::MAX] {
        assert_eq!(granted(length, u64::MAX), None, "{length}");
    }
    assert_eq!(granted(MAX, u64::MAX), Some(SHARED_BYTES));
}

#[test]
fn four_values_of_16_mib_have_room_and_a_fifth_waits_for_a_release() {
    let length = (16 << 20) + 500;
    let mut regions = Regions::new(SHARED_BYTES, 0);
    let all: Vec<Region> = (0..4)
        .map(|_| placed(&mut regions, length, |_| false).unwrap())
        .collect();
    assert_eq!(placed(&mut regions, length, |_| false), None);
    let second = all[1];
    let again = placed(&mut regions, length, |region| region == second).unwrap();
    assert_eq!(again.offset(), second.offset());
    assert_ne!(again.number(), second.number());
}

#[test]
fn region_over_the_end_or_the_beginning_of_a_held_one_is_refused() {
    let at = |unit: u64, units: u64, number: u64| {
        let told = [unit * UNIT, units * UNIT, number].map(u64::to_le_bytes);
        Region::from_bytes(told.as_flattened().try_into().unwrap(), SHARED_BYTES).unwrap()
    };
    let mut held = HeldRegions::new(SHARED_BYTES);
    held.take(at(10, 5, 1)).unwrap();
    for (unit, units) in [(10, 5), (8, 3), (14, 1), (12, 1), (1, 100)] {
        let refused = held.take(at(unit, units, 2)).unwrap_err();
        assert!(
            refused
                .to_string()
                .starts_with("no region of shared memory")
        );
    }
    held.take(at(15, 1, 3)).unwrap();
    held.take(at(0, 10, 4)).unwrap();
    held.give_back(at(10, 5, 1));
    held.take(at(11, 4, 5)).unwrap();
    let unit = UNIT as usize;
    assert_eq!(
        held.gaps(),
        [10 * unit..11 * unit, 16 * unit..SHARED_BYTES as usize]
    );
}

#[test]
fn short_and_very_long_values_have_no_region() {
    let mut regions = Regions::new(SHARED_BYTES, 0);
    for length in [0, 1, MIN - 1, MAX + 1, u64::MAX] {
        assert_eq!(placed(&mut regions, length, |_| true), None, "{length}");
    }
}
