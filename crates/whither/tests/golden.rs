//! Output that is checked word for word.
//!
//! `make goldens` (WHITHER_BLESS=1) writes them anew; CI does so and fails if anything changed.
//! Unit tests include this file too.

#![allow(clippy::unwrap_used, clippy::panic, dead_code, reason = "a test may end here")]

use std::path::PathBuf;

/// Compares with `tests/goldens/NAME`, or writes it.
pub(crate) fn check(name: &str, actual: &str) {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests", "goldens", name].iter().collect();
    if std::env::var_os("WHITHER_BLESS").is_some() {
        std::fs::write(&path, actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; `make goldens` writes it", path.display()));
    assert!(
        expected == actual,
        "{name} has changed; if that is meant, `make goldens` writes it anew.\n\
         --- expected\n{expected}\n--- actual\n{actual}"
    );
}
