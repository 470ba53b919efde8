//! `ciel cat` and `ciel flatten`: structured files, whole, partial, damaged, and what they may not
//! replace.

use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};

use ciel_cio::{Item, ROOT, Writer};

use crate::support::{Folder, shows};

/// A folder with a structured file: the root writes, spawns a child and writes again.
fn folder_with(name: &str, is_complete: bool) -> Folder {
    let folder = Folder::new();
    let file = std::fs::File::create_new(folder.path(name)).unwrap();
    let writer = Writer::create(file).unwrap();
    let child = writer.segment();
    let data = |text: &str| Item::Data(writer.write(text.as_bytes()).unwrap());
    let items = [data("before\n"), Item::Child(child), data("after\n")];
    writer.commit(ROOT, &items, true).unwrap();
    let own = data("child\n");
    if is_complete {
        writer.commit(child, &[own], true).unwrap();
        writer.close().unwrap();
    }
    folder
}

/// Changes the second line of the flat view.
fn damage(folder: &Folder, name: &str) {
    let file = std::fs::File::options().write(true).open(folder.path(name));
    file.unwrap().write_all_at(b"C", 4096 + 13).unwrap();
}

fn names(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path(".")).unwrap();
    let name = |entry: std::fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
    names.sort();
    names
}

#[test]
fn cat_prints_flat_and_structured_files_one_after_the_other() {
    let folder = folder_with("log.cio", true);
    folder.write("plain", "flat\n");
    shows!("cat", folder.ciel(&["cat", "plain", "log.cio", "plain"]));
    assert_eq!(names(&folder), ["log.cio", "plain"]);
}

#[test]
fn cat_prints_a_partial_file_up_to_the_frontier_and_says_so() {
    let folder = folder_with("log.cio", false);
    folder.write("plain", "flat\n");
    shows!("cat_partial", folder.ciel(&["cat", "log.cio", "plain"]));
}

#[test]
fn cat_prints_what_precedes_damaged_bytes() {
    let folder = folder_with("log.cio", true);
    damage(&folder, "log.cio");
    shows!("cat_damaged", folder.ciel(&["cat", "log.cio"]));
}

#[test]
fn cat_of_a_file_that_cannot_be_read_is_told() {
    let folder = folder_with("log.cio", true);
    shows!("cat_missing", folder.ciel(&["cat", "lgo.cio"]));
    shows!("cat_folder", folder.ciel(&["cat", "."]));
    let file = std::fs::File::options()
        .write(true)
        .open(folder.path("log.cio"));
    file.unwrap().write_all_at(&[2], 8).unwrap();
    shows!("cat_header", folder.ciel(&["cat", "log.cio"]));
}

#[test]
fn cat_on_a_full_disk_names_the_standard_output() {
    let folder = folder_with("log.cio", true);
    let mut command = folder.command(&["cat", "log.cio"]);
    command.stdout(std::fs::File::create("/dev/full").unwrap());
    shows!("cat_full", folder.ended(command.spawn().unwrap()));
}

#[test]
fn flatten_writes_the_flat_file_and_keeps_the_structured_one() {
    let folder = folder_with("log.cio", true);
    shows!("flatten", folder.ciel(&["flatten", "log.cio"]));
    assert_eq!(folder.read("log"), "before\nchild\nafter\n");
    assert_eq!(names(&folder), ["log", "log.cio"]);
    let ended = folder.ciel(&["flatten", "log.cio", "-o", "other", "--remove"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(folder.read("other"), folder.read("log"));
    assert_eq!(names(&folder), ["log", "other"]);
}

#[test]
fn flatten_replaces_a_file_only_if_asked() {
    let folder = folder_with("log.cio", true);
    folder.write("log", "mine\n");
    let path = folder.path("log");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    shows!("flatten_exists", folder.ciel(&["flatten", "log.cio"]));
    assert_eq!(folder.read("log"), "mine\n");
    let ended = folder.ciel(&["flatten", "log.cio", "--overwrite"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(folder.read("log"), "before\nchild\nafter\n");
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(names(&folder), ["log", "log.cio"]);
}

#[test]
fn flatten_of_a_file_that_is_partial_or_damaged_leaves_nothing() {
    let folder = folder_with("log.cio", false);
    shows!("flatten_partial", folder.ciel(&["flatten", "log.cio"]));
    assert_eq!(names(&folder), ["log.cio"]);
    let folder = folder_with("log.cio", true);
    damage(&folder, "log.cio");
    shows!("flatten_damaged", folder.ciel(&["flatten", "log.cio"]));
    assert_eq!(names(&folder), ["log.cio"]);
}

#[test]
fn flatten_tells_files_that_are_not_what_they_should_be() {
    let folder = folder_with("log", true);
    folder.write("plain.cio", "flat\n");
    shows!("flatten_flat", folder.ciel(&["flatten", "plain.cio"]));
    shows!("flatten_name", folder.ciel(&["flatten", "log"]));
    let over = |output| folder.ciel(&["flatten", "log", "--overwrite", "-o", output]);
    shows!("flatten_same", over("./log"));
    shows!("flatten_device", over("/dev/null"));
    shows!("flatten_nowhere", over("no/log"));
    assert_eq!(names(&folder), ["log", "plain.cio"]);
}
