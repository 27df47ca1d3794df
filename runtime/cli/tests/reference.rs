//! The generated pages of the documentation must agree with the types.

use std::path::Path;

#[test]
fn generated_pages_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in windvane::reference::pages().unwrap() {
        let found = std::fs::read_to_string(root.join(page.path)).unwrap_or_default();
        page.compare(&found).unwrap();
    }
}

#[test]
fn a_difference_names_its_line() {
    let pages = windvane::reference::pages().unwrap();
    let page = &pages[0];
    let found = page.text.replacen("# Commands", "# Verbs", 1);
    let difference = page.compare(&found).unwrap_err();
    assert_eq!(
        difference,
        "docs/commands.md line 3 is \"# Verbs\", but the types say \"# Commands\"; run `cargo \
         xtask docs`"
    );
}
