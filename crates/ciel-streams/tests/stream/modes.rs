//! The choice of the mode, for all combinations of flags and by name.

use ciel_streams::{ConsumerFlags, Mode, ProducerFlags, Wish};

/// Producer `may_stream`, `single_consumer`; consumer `may_stream`, `must_block`, `no_store`; and
/// the mode.
const TABLE: [(&str, &str, Mode); 32] = {
    use Mode::{Direct, IndirectFile, IndirectPipe, IndirectTcp, NoStream, Overlap};
    [
        ("--", "---", NoStream),
        ("--", "--n", NoStream),
        ("--", "-b-", NoStream),
        ("--", "-bn", NoStream),
        ("--", "s--", Overlap),
        ("--", "s-n", Overlap),
        ("--", "sb-", Overlap),
        ("--", "sbn", Overlap),
        ("-1", "---", NoStream),
        ("-1", "--n", NoStream),
        ("-1", "-b-", NoStream),
        ("-1", "-bn", NoStream),
        ("-1", "s--", Overlap),
        ("-1", "s-n", Overlap),
        ("-1", "sb-", Overlap),
        ("-1", "sbn", Overlap),
        ("s-", "---", NoStream),
        ("s-", "--n", NoStream),
        ("s-", "-b-", NoStream),
        ("s-", "-bn", NoStream),
        ("s-", "s--", IndirectFile),
        ("s-", "s-n", IndirectTcp),
        ("s-", "sb-", IndirectPipe),
        ("s-", "sbn", IndirectTcp),
        ("s1", "---", NoStream),
        ("s1", "--n", NoStream),
        ("s1", "-b-", NoStream),
        ("s1", "-bn", NoStream),
        ("s1", "s--", IndirectFile),
        ("s1", "s-n", Direct),
        ("s1", "sb-", IndirectPipe),
        ("s1", "sbn", Direct),
    ]
};

#[test]
fn each_combination_of_flags_gives_its_mode() {
    let mut seen = std::collections::BTreeSet::new();
    for (producer, consumer, mode) in TABLE {
        assert!(
            seen.insert((producer, consumer)),
            "{producer} {consumer} stands twice"
        );
        let producer_flags = ProducerFlags {
            may_stream: producer.contains('s'),
            single_consumer: producer.contains('1'),
        };
        let wish = Wish::Flags(ConsumerFlags {
            may_stream: consumer.contains('s'),
            must_block: consumer.contains('b'),
            no_store: consumer.contains('n'),
        });
        assert_eq!(wish.mode(producer_flags), mode, "{producer} {consumer}");
        for named in Mode::ALL {
            assert_eq!(Wish::Named(named).mode(producer_flags), named);
        }
    }
}

#[test]
fn name_of_each_mode_is_read_back_and_others_are_refused() {
    for mode in Mode::ALL {
        assert_eq!(mode.to_string().parse(), Ok(mode));
    }
    let refused = "indirect".parse::<Mode>().unwrap_err();
    assert_eq!(
        refused.to_string(),
        "no mode of streams is named \"indirect\"; the modes are no_stream, overlap, \
         indirect_file, indirect_pipe, indirect_tcp, direct"
    );
}

#[test]
fn each_mode_says_what_it_follows_and_what_it_stores() {
    let facts = |mode: Mode| {
        (
            mode.follows_production(),
            mode.follows_transfer(),
            mode.stores_at_producer(),
            mode.stores_at_consumer(),
        )
    };
    assert_eq!(facts(Mode::NoStream), (false, false, true, true));
    assert_eq!(facts(Mode::Overlap), (false, true, true, true));
    assert_eq!(facts(Mode::IndirectFile), (true, true, true, true));
    assert_eq!(facts(Mode::IndirectPipe), (true, true, true, true));
    assert_eq!(facts(Mode::IndirectTcp), (true, true, true, false));
    assert_eq!(facts(Mode::Direct), (true, true, false, false));
}
