//! Names of the forms that the bytes of an object can have.
//!
//! The list is open: an executor may use names of its own for objects that only it reads. This
//! module does not know how to read any of them. `protocol/PROTOCOL.md` describes each.

/// Bytes with no further meaning; the empty name means the same.
pub const BYTES: &str = "bytes";

/// UTF-8 text: a string in every language.
pub const TEXT: &str = "text";

/// JSON in which `{"$ref": i}` stands for the reference with index i of the object.
pub const JSON: &str = "json";

/// A value of the Skywriting machine.
pub const SKYWRITING: &str = "skywriting";

/// A Python pickle whose persistent ids are indices of the object's references.
pub const PICKLE: &str = "pickle";
