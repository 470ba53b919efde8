//! The files that tools write are what the tools would write now.

#[test]
fn generated_wire_types_match_the_schema() {
    xtask::generate::check().unwrap();
}
