//! Ordered streams: segments and the serial frontier.
