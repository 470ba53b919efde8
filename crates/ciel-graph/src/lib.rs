//! The pure machine of the coordinator: the dynamic task graph.
