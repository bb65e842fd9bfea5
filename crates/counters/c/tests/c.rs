//! The header is what the code says, and C programs built against the library count exactly.

#![allow(clippy::unwrap_used, reason = "a test may end here")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_committed_header_is_the_one_that_the_code_makes() {
    let path = here().join("include/whither_counters.h");
    let made = whither_counters::header();
    assert!(!made.contains("#error"), "{made}");
    if std::env::var_os("WHITHER_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &made).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), made);
}

/// Where cargo put the libraries that belong to this test.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    let has = |folder: &Path| folder.join("libwhither_counters.a").exists();
    if has(folder) { folder.to_owned() } else { folder.parent().unwrap().to_owned() }
}

/// Builds a C program against the library and runs it; what it printed.
fn run(source: &str, how: &[&str]) -> String {
    let folder = std::env::temp_dir().join(format!("whither-c-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join(format!("{source}-{}", how.len()));
    let built = Command::new("cc")
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
        .arg(here().join("include"))
        .arg(here().join("examples").join(format!("{source}.c")))
        .arg("-o")
        .arg(&program)
        .args(how)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(&program).env("LD_LIBRARY_PATH", libraries()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{source}: {} {said}", ran.status);
    std::fs::remove_file(&program).unwrap();
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn a_c_program_counts_itself_with_either_library() {
    let libraries = libraries();
    let archive = libraries.join("libwhither_counters.a");
    let folder = format!("-L{}", libraries.display());
    let expected = "outer: 1500 writes\ninner: 500 writes\n";
    let fixed: &[&str] = &[archive.to_str().unwrap(), "-lm", "-ldl"];
    assert_eq!(run("nested", fixed), expected);
    assert_eq!(run("nested", &[&folder, "-lwhither_counters"]), expected);
}

#[test]
fn misuse_from_c_is_answered_by_codes() {
    let folder = format!("-L{}", libraries().display());
    assert_eq!(run("misuse", &[&folder, "-lwhither_counters"]), "all answered\n");
}
