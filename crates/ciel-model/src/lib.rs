//! Values that every part of Ciel shares: positions, names, references, task descriptors, failures, limits.
