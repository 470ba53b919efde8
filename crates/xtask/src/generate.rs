//! Generates the wire types of `ciel-protocol` from the one schema.
//!
//! The result is checked in, so that building needs neither this tool nor a Protocol Buffers
//! compiler. It does not know what the messages mean. Read `protocol/executor.proto` next.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use prost::Message;

use crate::source_root;

const SCHEMA: &str = "executor.proto";
const PACKAGE: &str = ".ciel.executor";
const TARGET: &str = "crates/ciel-protocol/src/generated";

/// The files that the schema gives: name to text.
///
/// # Errors
/// If the schema does not compile, with its file and line.
pub fn render() -> Result<BTreeMap<String, String>> {
    let folder = source_root().join("protocol");
    let schema = protox::compile([SCHEMA], [&folder])?;
    let scratch = tempfile::tempdir()?;
    prost_build::Config::new()
        .out_dir(scratch.path())
        .bytes(["."])
        .btree_map(["."])
        .compile_fds(schema.clone())?;
    pbjson_build::Builder::new()
        .register_descriptors(&schema.encode_to_vec())?
        .btree_map(["."])
        .out_dir(scratch.path())
        .build(&[PACKAGE])?;
    read_folder(scratch.path())
}

/// Writes the files that are not fresh.
///
/// # Errors
/// Those of [`render`], and of writing.
pub fn write() -> Result<()> {
    let target = source_root().join(TARGET);
    fs::create_dir_all(&target)?;
    for (name, text) in render()? {
        let path = target.join(name);
        if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
    }
    Ok(())
}

/// Whether the files in the tree are those generated from the schema.
///
/// # Errors
/// Those of [`render`]; or names the files that differ.
pub fn check() -> Result<()> {
    let fresh = render()?;
    let present = read_folder(&source_root().join(TARGET))?;
    let names = fresh.keys().chain(present.keys());
    let mut stale: Vec<_> = names
        .filter(|name| fresh.get(*name) != present.get(*name))
        .collect();
    stale.sort();
    stale.dedup();
    if !stale.is_empty() {
        bail!("not fresh in {TARGET}: {stale:?}; run `cargo run -p xtask -- generate`");
    }
    Ok(())
}

fn read_folder(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().expect("a folder's entry has a name");
        files.insert(
            name.to_string_lossy().into_owned(),
            fs::read_to_string(&path)?,
        );
    }
    Ok(files)
}
