//! Programs and code that are gone when their samples are looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use store::Database;

use crate::scene::Scene;

#[test]
fn an_image_that_vanishes_keeps_its_samples() {
    let Some(mut scene) = Scene::new("vanished") else { return };
    scene.start(&[]);
    let program = scene.folder.join("gone");
    // Another process copies it: what this one has written may still be open in a child that
    // another test is just starting, and then cannot be executed.
    assert!(Command::new("cp").arg("/bin/sh").arg(&program).status().unwrap().success());
    let mut child = Command::new(&program)
        .args(["-c", "while :; do :; done"])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    fs::remove_file(&program).unwrap();
    scene.until("the note", |status| status["notes"].to_string().contains("could not be read"));
    child.kill().unwrap();
    child.wait().unwrap();
    scene.stop();
    let epochs = Database::open(&scene.db()).epochs().unwrap();
    let images: Vec<String> = epochs
        .value
        .iter()
        .flat_map(|epoch| epoch.load().unwrap().value.images)
        .map(|image| image.path)
        .collect();
    assert!(images.iter().any(|path| path.contains("gone")), "{images:?}");
}

/// What `prof` says of the procedures of an image.
fn named(db: &Path, image: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_whither"))
        .args(["prof", "by", "procedure", "--json", "--db"])
        .arg(db)
        .output()
        .unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = shown["rows"].as_array().unwrap();
    let of_image = rows.iter().filter(|row| row["image"].as_str().unwrap().contains(image));
    of_image.map(|row| row["procedure"].as_str().unwrap().to_owned()).collect()
}

/// A program that exists in its own mount namespace alone is named after it has gone with it.
#[test]
fn a_program_of_a_container_is_named_when_the_container_is_gone() {
    let Some(mut scene) = Scene::new("container") else { return };
    let apart = scene.folder.join("apart");
    fs::create_dir_all(&apart).unwrap();
    scene.start(&[]);
    let script = format!(
        "mount -t tmpfs whither-test {apart} && cp /bin/sh {apart}/only-here && \
         exec {apart}/only-here -c 'while :; do :; done'",
        apart = apart.display()
    );
    let mut container = Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let kept = || {
        let hosts = fs::read_dir(scene.db()).unwrap().flatten();
        let images = hosts.filter_map(|host| fs::read_dir(host.path().join("daemon/images")).ok());
        images.flatten().count() > 0
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    while !kept() {
        if container.try_wait().unwrap().is_some() {
            eprintln!("skipped: there are no mount namespaces here");
            return;
        }
        assert!(Instant::now() < deadline, "nothing was kept: {}", scene.said());
        std::thread::sleep(Duration::from_millis(50));
    }
    container.kill().unwrap();
    container.wait().unwrap();
    scene.stop();
    let names = named(&scene.db(), "only-here");
    assert!(!names.is_empty());
    assert!(names.iter().all(|name| !name.contains("no known procedure")), "{names:?}");
    // Its code is there too, from the copy.
    let annotated = Command::new(env!("CARGO_BIN_EXE_whither"))
        .args(["annotate", "--image", "only-here", "--db"])
        .arg(scene.db())
        .output()
        .unwrap();
    assert!(annotated.status.success(), "{}", String::from_utf8_lossy(&annotated.stderr));
}

/// Code that a process made at run time keeps its name after process and list are gone.
#[test]
#[cfg(target_arch = "x86_64")]
fn generated_code_is_named_when_its_process_is_gone() {
    let Some(mut scene) = Scene::new("generated") else { return };
    // `jmp .` in memory of its own, and a line that names it.
    let script = "import ctypes, mmap, os\n\
        page = mmap.mmap(-1, 4096, prot=7)\n\
        page.write(b'\\xeb\\xfe')\n\
        start = ctypes.addressof(ctypes.c_char.from_buffer(page))\n\
        with open('/tmp/perf-%d.map' % os.getpid(), 'w') as names:\n\
        \x20   names.write('%x 10 spin_for_ever\\n' % start)\n\
        ctypes.CFUNCTYPE(None)(start)()\n";
    let spawned = Command::new("python3").args(["-c", script]).stdin(Stdio::null()).spawn();
    let Ok(mut maker) = spawned else {
        eprintln!("skipped: there is no python3 here");
        return;
    };
    let list = PathBuf::from(format!("/tmp/perf-{}.map", maker.id()));
    scene.start(&[]);
    let copy = format!("-{}.map", maker.id());
    let kept = || {
        let hosts = fs::read_dir(scene.db()).unwrap().flatten();
        let lists = hosts.filter_map(|host| fs::read_dir(host.path().join("daemon/jit")).ok());
        let mut names = lists.flatten().flatten().map(|entry| entry.file_name());
        names.any(|name| name.to_str().is_some_and(|name| name.ends_with(&copy)))
    };
    let deadline = Instant::now() + Duration::from_secs(30);
    while !kept() {
        assert!(maker.try_wait().unwrap().is_none(), "the maker of code has ended");
        assert!(Instant::now() < deadline, "nothing was kept: {}", scene.said());
        std::thread::sleep(Duration::from_millis(50));
    }
    maker.kill().unwrap();
    maker.wait().unwrap();
    let _ = fs::remove_file(list);
    scene.stop();
    assert_eq!(named(&scene.db(), &format!("process {}", maker.id())), ["spin_for_ever"]);
    let exported = Command::new(env!("CARGO_BIN_EXE_whither"))
        .args(["export", "--format", "folded", "--db"])
        .arg(scene.db())
        .output()
        .unwrap();
    let exported = String::from_utf8(exported.stdout).unwrap();
    assert!(exported.contains("spin_for_ever"), "{exported}");
}
