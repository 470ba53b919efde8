//! The files that every program can include: written in Skywriting, carried inside the crate.
//!
//! It does not know how files are included. Read next: `front`.

/// One file of the standard library.
pub struct Library {
    /// What `include` calls it.
    pub name: &'static str,
    /// The name in messages.
    pub shown: &'static str,
    /// Its text.
    pub text: &'static str,
    /// What it defines.
    pub functions: &'static [&'static str],
}

macro_rules! libraries {
    ($($name:literal $functions:expr;)*) => {
        /// All of them.
        pub const LIBRARIES: &[Library] = &[$(Library {
            name: $name,
            shown: concat!("<stdlib>/", $name, ".sw"),
            text: include_str!(concat!("stdlib/", $name, ".sw")),
            functions: &$functions,
        },)*];
    };
}

libraries! {
    "stdinout" ["stdinout", "stdinout_stream"];
    "environ" ["environ"];
    "grab" ["grab", "grab_index"];
    "ref" ["ref"];
    "mapreduce" ["map", "shuffle", "mapreduce"];
    "sync" ["sync"];
}

/// The library of that name, with or without `.sw`.
pub fn library(name: &str) -> Option<&'static Library> {
    let stem = name.strip_suffix(".sw").unwrap_or(name);
    LIBRARIES.iter().find(|library| library.name == stem)
}

/// The library that defines a function.
pub fn library_with(function: &str) -> Option<&'static Library> {
    LIBRARIES
        .iter()
        .find(|library| library.functions.contains(&function))
}

/// Whether a file of that shown name is one of these.
pub fn is_library(shown: &str) -> bool {
    LIBRARIES.iter().any(|library| library.shown == shown)
}
