//! Numbers that the protocol states and the engine has under names of its own.

use ciel_model::limits as engine;
use ciel_protocol::limits as protocol;

#[test]
fn numbers_that_the_protocol_states_are_those_of_the_engine() {
    assert_eq!(protocol::VALUE_BYTES_BELOW, engine::INLINE_BYTES_MAX);
    assert_eq!(protocol::CACHES_MAX, engine::CACHES_MAX);
    assert_eq!(protocol::CHILDREN_MAX, engine::CHILDREN_MAX);
    assert_eq!(protocol::EXCEPTION_BYTES_MAX, engine::EXCEPTION_BYTES_MAX);
    assert_eq!(protocol::TRACEBACK_CALLS_MAX, engine::TRACEBACK_CALLS_MAX);
}
