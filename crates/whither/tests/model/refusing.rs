//! What cannot be modelled gets one sentence and a status.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::{Folder, can_model, whither};

/// What a refused program gets: its status and the one sentence.
fn refused(program: &str) -> (Option<i32>, String) {
    refusal(&["--machine", "zen4", "--", program], None)
}

fn refusal(arguments: &[&str], path: Option<&str>) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whither"));
    command.arg("model").args(arguments);
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(output.stdout.is_empty());
    (output.status.code(), said)
}

#[test]
fn what_cannot_be_modelled_gets_one_sentence_and_the_status_that_env_gives() {
    if !can_model() {
        return;
    }
    let folder = Folder::new("refused");
    let put = |name: &str, bytes: &[u8]| {
        let path = folder.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    // The start of an ELF header: class, byte order, version, and at 18 the processor.
    let elf = |class: u8, processor: u8| {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', class, 1, 1];
        bytes.resize(18, 0);
        bytes.push(processor);
        bytes.resize(200, 0);
        bytes
    };
    let cases: [(&str, Vec<u8>, i32, &str); 5] = [
        ("text", b"neither\n".to_vec(), 126, "neither an ELF executable nor a script"),
        ("elf32", elf(1, 3), 126, "is a 32-bit program"),
        ("arm64", elf(2, 183), 126, "ELF machine 183"),
        ("cut", b"\x7fELF\x02".to_vec(), 126, "damaged ELF file"),
        ("script", b"#!/no/such/interpreter\n".to_vec(), 127, "/no/such/interpreter"),
    ];
    for (name, bytes, status, words) in cases {
        let (code, said) = refused(&put(name, &bytes));
        assert_eq!(code, Some(status), "{name}: {said}");
        assert!(said.contains(words), "{name}: {said}");
    }
    let (code, said) = refused("/no/such/program");
    assert_eq!((code, said.contains("no such program")), (Some(127), true), "{said}");
}

#[test]
fn who_asks_for_qemu_is_told_what_is_wrong_with_it() {
    let folder = Folder::new("qemu");
    let path = folder.0.to_str().unwrap();
    let without =
        || refusal(&["--machine", "zen4", "--engine", "qemu", "--", "/bin/true"], Some(path));
    let (code, said) = without();
    assert_eq!((code, said.contains("not installed")), (Some(125), true), "{said}");
    let qemu = folder.0.join("qemu-x86_64");
    std::fs::write(&qemu, "#!/bin/sh\necho usage\nexit 1\n").unwrap();
    std::fs::set_permissions(&qemu, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (code, said) = without();
    assert_eq!((code, said.contains("without plugins")), (Some(125), true), "{said}");
}

#[test]
fn what_cannot_be_modelled_gets_one_sentence() {
    let cases: [(&[&str], i32, &str); 5] = [
        (&["model", "--machine", "zen44", "true"], 125, "no such machine"),
        (&["model", "--ideal", "dmis", "true"], 125, "did you mean 'dmiss'?"),
        (&["model", "--machine", "/no/such.toml", "true"], 125, "/no/such.toml"),
        (&["model", "no-such-program-here"], 127, "no-such-program-here"),
        (&["model", "/etc/passwd"], 126, "/etc/passwd"),
    ];
    for (arguments, status, words) in cases {
        if status != 125 && !can_model() {
            continue;
        }
        let output = whither(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words) && said.lines().count() == 1, "{arguments:?}: {said}");
    }
}

#[test]
fn a_program_with_avx_512_gets_its_sentence_from_whatever_models_it() {
    let folder = Folder::new("avx512");
    // vpxord zmm0, zmm0, zmm0, after enough turns for a sample.
    let source = ".globl _start\n_start: mov $100000, %ecx\n1: dec %ecx\n jnz 1b\n\
        .byte 0x62, 0xf1, 0x7d, 0x48, 0xef, 0xc0\n\
        mov $60, %eax\n xor %edi, %edi\n syscall\n";
    let flags = ["-nostdlib", "-static"];
    let Some(program) = folder.program(source, "s", &flags).filter(|_| can_model()) else { return };
    let (database, trace) = (folder.0.join("db"), folder.0.join("trace"));
    let (database, trace) = (database.to_str().unwrap(), trace.to_str().unwrap());
    let commands: [&[&str]; 4] = [
        &["model", "--machine", "zen4", "--", &program],
        &["model", "--record", trace, "--", &program],
        &["record", "--machine", "zen4", "-o", database, "--", &program],
        &["stat", "--machine", "zen4", "--", &program],
    ];
    for command in commands {
        let output = whither(command);
        let said = String::from_utf8_lossy(&output.stderr).replace("\n    ", " ");
        assert_eq!(output.status.code(), Some(128 + 4), "{command:?}: {said}");
        assert!(said.contains("that the tracer does not have, such as AVX-512"), "{said}");
    }
}
