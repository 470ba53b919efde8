//! The shell around the machines: threads, sockets, processes, files.
