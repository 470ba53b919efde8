//! The executor protocol: generated wire types and codec.
