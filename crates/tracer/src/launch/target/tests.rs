//! What can run and what cannot.

use super::elf::properties_need_avx512;
use super::*;

#[test]
fn a_shebang_line_splits_as_in_the_kernel() {
    let of = |line: &str| shebang(line.as_bytes());
    assert_eq!(of("#!/bin/sh\necho"), Some(("/bin/sh".into(), None)));
    assert_eq!(
        of("#! /usr/bin/env  -S a b \n"),
        Some(("/usr/bin/env".into(), Some("-S a b".into())))
    );
    assert_eq!(of("#!/bin/sh\r\necho\r"), Some(("/bin/sh\r".into(), None)));
    assert_eq!(of("#!/bin/sh\t-e \t\n"), Some(("/bin/sh".into(), Some("-e".into()))));
    assert_eq!(of("#!\n"), None);
    assert_eq!(of("#! \n"), None);
}

#[test]
fn a_note_that_needs_the_fourth_level_is_found_behind_other_properties() {
    let mut note = vec![0; 16];
    for (kind, value) in [(0xc000_0002u32, 3u32), (0xc000_8002, 0xf)] {
        note.extend(kind.to_le_bytes());
        note.extend(4u32.to_le_bytes());
        note.extend(value.to_le_bytes());
        note.extend([0; 4]);
    }
    assert!(properties_need_avx512(&note));
    note[40] = 7;
    assert!(!properties_need_avx512(&note));
    assert!(!properties_need_avx512(&note[..20]));
}

#[test]
fn programs_are_told_apart_by_their_first_bytes() {
    let dir = std::env::temp_dir().join(format!("whither-target-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let make = |name: &str, bytes: &[u8], mode: u32| {
        let path = dir.join(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        inspect(&path)
    };
    let script = make("script", b"#!/bin/sh -e\n", 0o755).unwrap();
    assert_eq!(script.leading, [OsString::from("-e"), dir.join("script").into()]);
    assert!(matches!(make("plain", b"#!/bin/sh\n", 0o644), Err(TargetError::NotExecutable(_))));
    assert!(matches!(make("lost", b"#!/no/such\n", 0o755), Err(TargetError::NoInterpreter(..))));
    assert!(matches!(make("text", b"hello", 0o755), Err(TargetError::UnknownFormat(_))));
    let mut header = fs::read("/proc/self/exe").unwrap()[..64].to_vec();
    assert!(matches!(make("cut", &header, 0o755), Err(TargetError::Malformed(_))));
    header[18] = 183;
    assert!(matches!(make("arm", &header, 0o755), Err(TargetError::OtherMachine(_, 183))));
    (header[18], header[4]) = (3, 1);
    assert!(matches!(make("narrow", &header, 0o755), Err(TargetError::Narrow(_))));
    assert!(matches!(inspect(&dir), Err(TargetError::NotAFile(_))));
    let missing = inspect(&dir.join("none")).unwrap_err();
    assert_eq!(missing.exit_status(), 127);
    assert!(inspect(Path::new("/proc/self/exe")).unwrap().leading.is_empty());
    assert!(matches!(find(OsStr::new("no-such-program-here")), Err(TargetError::NotFound(_))));
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn libraries_beside_a_program_are_found_through_a_link_to_it() {
    let dir = std::env::temp_dir().join(format!("whither-origin-{}", std::process::id()));
    let [bin, lib, links] = ["bin", "lib", "links"].map(|name| dir.join(name));
    [&bin, &lib, &links].into_iter().for_each(|path| fs::create_dir_all(path).unwrap());
    let (source, beside) = (dir.join("source.c"), lib.join("libbeside.so"));
    let compile = |text: &str, out: &Path, options: &[&str]| {
        fs::write(&source, text).unwrap();
        let built = Command::new("cc").arg("-o").args([out, &source]).args(options).status();
        built.is_ok_and(|status| status.success())
    };
    if !compile("int beside(void) { return 0; }", &beside, &["-shared", "-fPIC"]) {
        return eprintln!("skipped: there is no C compiler");
    }
    let search = format!("-L{}", lib.display());
    let options = [search.as_str(), "-lbeside", "-Wl,-rpath,$ORIGIN/../lib"];
    let text = "int beside(void); int main(void) { return beside(); }";
    assert!(compile(text, &bin.join("program"), &options));
    let link = links.join("program");
    std::os::unix::fs::symlink(bin.join("program"), &link).unwrap();
    let found = check_libraries(&inspect(&link).unwrap());
    fs::remove_file(&beside).unwrap();
    let missing = check_libraries(&inspect(&link).unwrap());
    fs::remove_dir_all(&dir).unwrap();
    assert!(found.is_ok(), "{found:?}");
    let Err(TargetError::MissingLibraries(_, names)) = missing else { panic!("{missing:?}") };
    assert_eq!(names, ["libbeside.so"]);
}
