//! What can go wrong with a `.cio` file.
//!
//! It knows offsets and not the name of the file: whoever opened it adds that.

use std::io;

use crate::format::{HeaderFault, Segment};

/// Why a file cannot be read, written or flattened.
#[derive(Debug, thiserror::Error)]
pub enum CioError {
    /// It does not begin like a `.cio` file.
    #[error("it is no .cio file")]
    Foreign,
    /// It is of a format that this version does not know.
    #[error("it is a .cio file of format {found}; this version reads format 1")]
    OtherFormat {
        /// The number of its format.
        found: u32,
    },
    /// The header was changed or is not whole.
    #[error("its header, bytes 0 to 15, is damaged")]
    HeaderDamaged,
    /// Data do not have their checksum.
    #[error("bytes {at} to {} of the flat view, at offset {offset}, are damaged", at + bytes - 1)]
    DataDamaged {
        /// Where they begin in the flat view.
        at: u64,
        /// How many bytes share that checksum.
        bytes: u64,
        /// Where they lie in the file.
        offset: u64,
    },
    /// Not every segment has ended.
    #[error("segment {} has not ended", segment.0)]
    Open {
        /// The first of them in serial order.
        segment: Segment,
    },
    /// A segment stands at two places.
    #[error("segment {} stands at two places", segment.0)]
    Repeated {
        /// Which one.
        segment: Segment,
    },
    /// A commit to a segment that has ended.
    #[error("segment {} has ended already", segment.0)]
    Ended {
        /// Which one.
        segment: Segment,
    },
    /// The file to write into is not empty.
    #[error("it has {bytes} bytes already; a .cio file is written from its start")]
    NotEmpty {
        /// Its bytes.
        bytes: u64,
    },
    /// It was closed.
    #[error("it is closed")]
    Closed,
    /// What the system says.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl CioError {
    /// The kind of error that callers see who know only [`io::Error`].
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            CioError::Foreign
            | CioError::OtherFormat { .. }
            | CioError::HeaderDamaged
            | CioError::DataDamaged { .. }
            | CioError::Repeated { .. } => io::ErrorKind::InvalidData,
            CioError::Open { .. } => io::ErrorKind::ResourceBusy,
            CioError::Ended { .. } | CioError::NotEmpty { .. } | CioError::Closed => {
                io::ErrorKind::InvalidInput
            }
            CioError::System(error) => error.kind(),
        }
    }
}

impl From<CioError> for io::Error {
    fn from(error: CioError) -> io::Error {
        match error {
            CioError::System(error) => error,
            error => io::Error::new(error.kind(), error),
        }
    }
}

impl From<HeaderFault> for CioError {
    fn from(fault: HeaderFault) -> CioError {
        match fault {
            HeaderFault::Foreign => CioError::Foreign,
            HeaderFault::OtherFormat(found) => CioError::OtherFormat { found },
            HeaderFault::NotIntact => CioError::HeaderDamaged,
        }
    }
}
