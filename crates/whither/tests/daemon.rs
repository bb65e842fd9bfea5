//! The daemon, as it is: started, asked, killed, and robbed of its disk.
//!
//! It needs what root has; where that is missing a test says so and asserts nothing. `WHITHER_SOAK`
//! makes the campaigns as long as they should be.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use store::Database;
use vocab::Tally;

/// Two daemons at a time would sample each other; the machine has few CPUs.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A database of this test, gone afterwards; its daemon ends with it.
struct Scene {
    folder: PathBuf,
    daemon: Option<Child>,
    _turn: std::sync::MutexGuard<'static, ()>,
}

impl Scene {
    /// None where this machine does not let us.
    fn new(name: &str) -> Option<Scene> {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
        let bits = u64::from_str_radix(effective.trim(), 16).unwrap();
        if bits >> 38 & 3 != 3 {
            eprintln!("skipped: CAP_PERFMON and CAP_BPF are missing here");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("whither-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Some(Scene { folder, daemon: None, _turn: turn })
    }

    fn db(&self) -> PathBuf {
        self.folder.join("db")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whither"));
        command.arg("daemon").args(words).arg("--db").arg(self.db());
        command
    }

    fn ask(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Starts one in the foreground and waits until it answers.
    fn start(&mut self, more: &[&str]) {
        let mut words = vec!["start", "--foreground", "--drain", "0.2s", "--merge", "0.4s"];
        words.extend(more);
        let log = fs::File::create(self.folder.join("said")).unwrap();
        let mut child = self.command(&words).stderr(log).stdin(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.ask(&["status"]).status.success() {
            assert!(child.try_wait().unwrap().is_none(), "it ended: {}", self.said());
            assert!(Instant::now() < deadline, "it does not answer: {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
        self.daemon = Some(child);
    }

    fn said(&self) -> String {
        fs::read_to_string(self.folder.join("said")).unwrap_or_default()
    }

    fn status(&self) -> Value {
        let output = self.ask(&["status", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let status = self.status();
            if holds(&status) {
                return status;
            }
            assert!(Instant::now() < deadline, "{what} never came: {status}\n{}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// SIGKILL: nothing is said, nothing is written.
    fn kill(&mut self) {
        let mut child = self.daemon.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends it in good order.
    fn stop(&mut self) -> Output {
        let output = self.ask(&["stop"]);
        if let Some(mut child) = self.daemon.take() {
            child.wait().unwrap();
        }
        output
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(mut child) = self.daemon.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Everything in a database: opens, loads without trouble, and adds up.
fn whole(db: &Path) -> (Tally, usize, u64) {
    let epochs = Database::open(db).epochs().unwrap();
    assert!(epochs.troubles.is_empty(), "{:?}", epochs.troubles);
    let (mut all, mut gaps, mut counted) = (Tally::default(), 0, 0);
    for epoch in &epochs.value {
        let loaded = epoch.load().unwrap();
        assert!(loaded.troubles.is_empty(), "{:?}", loaded.troubles);
        let tally = loaded.value.tally.clone();
        assert!(tally.is_whole(), "{tally:?}");
        counted += loaded.value.counts.values().map(|count| count.0).sum::<u64>();
        all.merge(&tally);
        gaps += epoch.gaps().len();
    }
    assert_eq!(counted, all.stored.0);
    (all, gaps, counted)
}

#[test]
fn what_the_handlers_counted_is_in_the_database_or_accounted_for() {
    let Some(mut scene) = Scene::new("counted") else { return };
    scene.start(&["--per-process"]);
    for _ in 0..20 {
        Command::new("sh").args(["-c", "ls / > /dev/null"]).status().unwrap();
    }
    let status = scene.until("a sample", |status| status["samples"]["taken"].as_u64() > Some(0));
    assert_eq!(status["samples"]["adds_up"], true, "{status}");
    assert!(scene.ask(&["flush"]).status.success());
    let said = String::from_utf8(scene.stop().stdout).unwrap();
    let taken: u64 = said.split(' ').next().unwrap().parse().unwrap();
    let (tally, gaps, _) = whole(&scene.db());
    assert_eq!((tally.taken().0, tally.entries.unwrap().0), (taken, taken), "{said}");
    assert_eq!(gaps, 0);
    assert!(!scene.ask(&["status"]).status.success());
}

/// docs/JSON.md explains every key.
#[test]
fn every_key_of_the_status_is_documented() {
    let Some(mut scene) = Scene::new("keys") else { return };
    scene.start(&["--config", "mux"]);
    let status = scene.until("a sample", |status| status["samples"]["taken"].as_u64() > Some(0));
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/JSON.md");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("## whither.daemon, version 1\n"));
    let mut values = vec![&status];
    while let Some(value) = values.pop() {
        if let Some(object) = value.as_object() {
            for (key, inner) in object {
                assert!(page.contains(&format!("`{key}`")), "'{key}' is not explained");
                values.push(inner);
            }
        }
        values.extend(value.as_array().into_iter().flatten());
    }
    assert_eq!(status["events"].as_array().unwrap().len(), 3, "{status}");
}

#[test]
fn a_second_daemon_is_refused_by_the_name_of_the_first() {
    let Some(mut scene) = Scene::new("second") else { return };
    scene.start(&[]);
    let pid = scene.daemon.as_ref().unwrap().id();
    let refused = scene.ask(&["start"]);
    let sentence = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(sentence.contains(&format!("pid {pid}")), "{sentence}");
    assert_eq!(sentence.lines().count(), 1, "{sentence}");
    assert_eq!(scene.status()["daemon"]["pid"], pid);
}

#[test]
fn four_capabilities_are_left_in_every_thread_and_no_file_is_anyone_elses() {
    let Some(mut scene) = Scene::new("rights") else { return };
    scene.start(&[]);
    let pid = scene.daemon.as_ref().unwrap().id();
    let kept = 1 << 2 | 1 << 19 | 1 << 38 | 1_u64 << 39;
    let mut threads = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap();
        let bits = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        for name in ["CapPrm:", "CapEff:", "CapBnd:"] {
            assert_eq!(bits(name) & !kept, 0, "{name} {status}");
        }
        assert_eq!((bits("CapInh:"), bits("CapAmb:"), bits("NoNewPrivs:")), (0, 0, 1));
        threads += 1;
    }
    assert!(threads >= 1);
    assert!(scene.ask(&["flush"]).status.success());
    private(&scene.db());
}

/// 0700 for directories, 0600 for everything else, sockets included.
fn private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let data = fs::symlink_metadata(path).unwrap();
    let mode = data.permissions().mode() & 0o777;
    assert_eq!(mode, if data.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    if data.is_dir() {
        fs::read_dir(path).unwrap().flatten().for_each(|entry| private(&entry.path()));
    }
}

#[test]
fn killed_at_any_moment_the_database_opens_and_the_gap_is_recorded() {
    let Some(mut scene) = Scene::new("killed") else { return };
    let rounds = if std::env::var_os("WHITHER_SOAK").is_some() { 100 } else { 6 };
    let mut seed = 20_u64;
    let mut before = 0;
    for round in 0..rounds {
        scene.start(&[]);
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_millis((seed >> 33) % 700));
        // What a reader saw a moment ago must still be there.
        let (seen, _, _) = whole(&scene.db());
        assert!(seen.stored.0 >= before);
        scene.kill();
        let (after, gaps, _) = whole(&scene.db());
        assert!(after.stored.0 >= seen.stored.0, "round {round}");
        assert_eq!(gaps, round, "every restart after a death records one gap");
        before = after.stored.0;
    }
    scene.start(&[]);
    scene.stop();
    let (all, gaps, _) = whole(&scene.db());
    assert_eq!(gaps, rounds);
    assert!(all.taken().0 > 0);
}

#[test]
fn a_directory_that_turns_read_only_stops_nothing_but_the_writing() {
    let Some(mut scene) = Scene::new("readonly") else { return };
    scene.start(&[]);
    scene.until("an append", |status| status["database"]["bytes"].as_u64() > Some(0));
    let epoch = epoch_folder(&scene.db());
    set_mode(&epoch, 0o500);
    let status = scene.until("trouble", |status| status["database"]["trouble"].is_string());
    let taken = status["samples"]["taken"].as_u64();
    scene.until("more samples", |status| status["samples"]["taken"].as_u64() > taken);
    assert!(scene.said().contains("collecting goes on"), "{}", scene.said());
    set_mode(&epoch, 0o700);
    scene.until("recovery", |status| status["database"]["trouble"].is_null());
    scene.stop();
    let (tally, _, _) = whole(&scene.db());
    assert!(tally.taken().0 >= taken.unwrap(), "nothing was lost: {tally:?}");
    assert_eq!(tally.lost.0, 0);
}

fn epoch_folder(db: &Path) -> PathBuf {
    let host = fs::read_dir(db).unwrap().flatten().next().unwrap().path();
    let epochs = fs::read_dir(host).unwrap().flatten().map(|entry| entry.path());
    epochs.filter(|path| path.join("epoch.json").exists()).max().unwrap()
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_full_disk_stops_nothing_but_the_writing() {
    let Some(mut scene) = Scene::new("full") else { return };
    fs::create_dir_all(scene.db()).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k,mode=0700", "whither-test"])
        .arg(scene.db())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: nothing can be mounted here");
        return;
    }
    // Dropped before the scene, whose folder can then be removed.
    let _unmount = Unmount(scene.db());
    scene.start(&[]);
    scene.until("an append", |status| status["database"]["bytes"].as_u64() > Some(0));
    let filler = scene.db().join("filler");
    let _ = fs::write(&filler, vec![1_u8; 1 << 20]);
    let status = scene.until("trouble", |status| status["database"]["trouble"].is_string());
    let taken = status["samples"]["taken"].as_u64();
    scene.until("more samples", |status| status["samples"]["taken"].as_u64() > taken);
    fs::remove_file(&filler).unwrap();
    scene.until("recovery", |status| status["database"]["trouble"].is_null());
    scene.stop();
    let (tally, _, _) = whole(&scene.db());
    assert!(tally.taken().0 >= taken.unwrap());
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

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

#[test]
fn an_epoch_keeps_before_and_after_apart() {
    let Some(mut scene) = Scene::new("epoch") else { return };
    scene.start(&[]);
    scene.until("a sample", |status| status["samples"]["taken"].as_u64() > Some(0));
    assert!(scene.ask(&["epoch"]).status.success());
    assert_eq!(scene.status()["database"]["epoch"], 2);
    scene.stop();
    assert_eq!(Database::open(&scene.db()).epochs().unwrap().value.len(), 2);
}

#[test]
fn chains_of_callers_come_through_rings_and_add_up_too() {
    let Some(mut scene) = Scene::new("chains") else { return };
    scene.start(&["-g"]);
    let status = scene.until("a sample", |status| status["samples"]["taken"].as_u64() > Some(0));
    assert_eq!(
        (&status["daemon"]["route"], &status["samples"]["adds_up"]),
        (&"ring".into(), &true.into())
    );
    scene.stop();
    let epochs = Database::open(&scene.db()).epochs().unwrap();
    let stacks: usize =
        epochs.value.iter().map(|epoch| epoch.load().unwrap().value.stacks.len()).sum();
    assert!(stacks > 0);
    whole(&scene.db());
}

/// As another user, by way of `setpriv`: user mode, that user's own processes.
#[test]
fn without_privileges_own_processes_are_followed() {
    let Some(scene) = Scene::new("own") else { return };
    let found = Command::new("setpriv").arg("--version").output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no setpriv here");
        return;
    }
    set_mode(&scene.folder, 0o777);
    let script = format!(
        "cd /; sh -c 'while :; do :; done' & busy=$!; \
         {whither} daemon start --db {db} --drain 0.2s --merge 0.4s && sleep 2; \
         {whither} daemon status --json --db {db}; {whither} daemon stop --db {db}; kill $busy",
        whither = env!("CARGO_BIN_EXE_whither"),
        db = scene.db().display(),
    );
    let copy = scene.folder.join("script");
    fs::write(&copy, script).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh"])
        .arg(&copy)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("Permission denied") {
        eprintln!("skipped: another user cannot reach this build: {errors}");
        return;
    }
    let status: Value =
        text.lines().find_map(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    assert_eq!(status["daemon"]["route"], "own", "{text}{errors}");
    assert_eq!(status["samples"]["adds_up"], true, "{text}");
    assert!(status["samples"]["taken"].as_u64() > Some(0), "{text}");
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
