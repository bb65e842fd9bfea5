//! What is kept beside the counts, in the daemon's room: names of code that processes made at run
//! time, and which images were seen in which mount namespace. Both are gone with their process.
//!
//! ```text
//! DB/HOST/daemon/jit/EPOCH-PID.map   a copy of /tmp/perf-PID.map as the process sees it
//! DB/HOST/daemon/namespaces          epoch, namespace, build-id and path of images in containers
//! ```

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use vocab::{Image, Pid};

/// A list of names may be anything; this much of it is kept.
const MAP_BYTES: u64 = 4 << 20;
/// The list of namespaces stops growing here.
const LIST_BYTES: u64 = 1 << 20;

/// Copies the name lists of processes that made code, while they are there to be asked.
pub(super) fn keep_jit_maps(room: &Path, epoch: u64, pids: &mut BTreeSet<Pid>) {
    if pids.is_empty() {
        return;
    }
    let folder = room.join("jit");
    // Names are a courtesy: a disk that takes none has been complained about already.
    let _ = DirBuilder::new().mode(0o700).recursive(true).create(&folder);
    for pid in std::mem::take(pids) {
        let _ = copy_map(pid, &folder.join(format!("{epoch}-{}.map", pid.0)));
    }
}

fn copy_map(pid: Pid, to: &Path) -> io::Result<()> {
    let inside = own_number(pid).unwrap_or(pid.0);
    let theirs = format!("/proc/{}/root/tmp/perf-{inside}.map", pid.0);
    let ours = format!("/tmp/perf-{}.map", pid.0);
    let file = File::open(theirs).or_else(|_| File::open(ours))?;
    // Anything else might never end, or do something when it is read.
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    let mut text = Vec::new();
    file.take(MAP_BYTES).read_to_end(&mut text)?;
    let new = to.with_extension("new");
    private(&new)?.write_all(&text)?;
    fs::rename(new, to)
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// The number that a process has inside its own namespace.
fn own_number(pid: Pid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.0)).ok()?;
    innermost(&status)
}

/// `NSpid: 4021 17` → 17.
fn innermost(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().next_back()?.parse().ok()
}

/// The mount namespace of a process, if it is not ours.
pub(super) fn foreign_namespace(pid: Pid) -> Option<PathBuf> {
    let theirs = fs::read_link(format!("/proc/{}/ns/mnt", pid.0)).ok()?;
    let ours = fs::read_link("/proc/self/ns/mnt").ok()?;
    (theirs != ours).then_some(theirs)
}

/// Adds images that were seen in another mount namespace to the list.
pub(super) fn keep_namespaces(room: &Path, epoch: u64, seen: &mut Vec<(PathBuf, Image)>) {
    if seen.is_empty() {
        return;
    }
    let path = room.join("namespaces");
    let full = fs::metadata(&path).is_ok_and(|data| data.len() > LIST_BYTES);
    let lines: String =
        std::mem::take(seen).iter().map(|(ns, image)| line(epoch, ns, image)).collect();
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    if let (Ok(mut file), false) = (file, full) {
        let _ = file.write_all(lines.as_bytes());
    }
}

fn line(epoch: u64, namespace: &Path, image: &Image) -> String {
    let id = image.build_id.map_or_else(|| "-".to_owned(), |id| id.to_string());
    // Paths are anybody's: a line stays a line.
    format!("{epoch} {} {id} {}\n", namespace.display(), show::clean(&image.path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::ImageKind;

    #[test]
    fn the_innermost_number_is_the_last() {
        assert_eq!(innermost("Name:\tx\nNSpid:\t4021\t17\n"), Some(17));
        assert_eq!(innermost("NSpid:\t9\n"), Some(9));
        assert_eq!(innermost("Name:\tx\n"), None);
    }

    #[test]
    fn a_path_with_a_line_break_stays_on_its_line() {
        let image = Image { kind: ImageKind::File, path: "/a\nb".into(), build_id: None };
        assert_eq!(line(3, Path::new("mnt:[1]"), &image).lines().count(), 1);
    }

    #[test]
    fn a_list_of_names_is_copied_while_its_process_lives() {
        let pid = Pid(std::process::id());
        let source = format!("/tmp/perf-{}.map", pid.0);
        fs::write(&source, "10 20 made_up\n").unwrap();
        let room = std::env::temp_dir().join(format!("whither-aside-{}", pid.0));
        let mut pids = BTreeSet::from([pid]);
        keep_jit_maps(&room, 7, &mut pids);
        let copy = room.join(format!("jit/7-{}.map", pid.0));
        assert_eq!(fs::read_to_string(copy).unwrap(), "10 20 made_up\n");
        assert!(pids.is_empty());
        fs::remove_file(source).unwrap();
        fs::remove_dir_all(room).unwrap();
    }
}
