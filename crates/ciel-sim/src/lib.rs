//! The world for tests: the machines in virtual time under seeds and faults.
