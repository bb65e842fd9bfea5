//! What is kept beside the counts, in the daemon's room: names of code that processes made at run
//! time, images that containers alone have, and which were seen in which mount namespace. All of
//! it is gone with its process; `database/aside.rs` reads it for every command.
//!
//! ```text
//! DB/HOST/daemon/jit/EPOCH-PID.map   a copy of /tmp/perf-PID.map as the process sees it
//! DB/HOST/daemon/images/BUILD-ID     copies of images that are not to be had from here
//! DB/HOST/daemon/namespaces          epoch, namespace, build-id and path of images in containers
//! ```

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use vocab::{Image, Pid};

use super::head;

/// A list of names may be anything; this much of it is kept.
const MAP_BYTES: u64 = 4 << 20;
/// The list of namespaces stops growing here.
const LIST_BYTES: u64 = 1 << 20;
/// Larger images are not copied.
const IMAGE_BYTES: u64 = 64 << 20;
/// Copies together; the oldest go first.
const IMAGES_BYTES: u64 = 256 << 20;
/// Files that wait to be copied. Beyond them an image is listed and not copied.
const MOST_OPEN: usize = 64;

/// An image that was seen in a mount namespace, or below a root, that is not ours.
#[derive(Debug)]
pub(super) struct Foreign {
    pub(super) namespace: PathBuf,
    pub(super) image: Image,
    /// The file, opened while its process lived.
    pub(super) file: Option<File>,
}

impl Foreign {
    /// None if a process sees the same file as we do. The daemon may be the one that lives apart,
    /// as a service whose system is read-only does: it is the file that counts.
    pub(super) fn seen(pid: Pid, image: &Image, waiting: usize) -> Option<Foreign> {
        let namespace = foreign_namespace(pid)?;
        let file = head::open(pid, &image.path);
        let identity = |file: &File| file.metadata().ok().map(|data| (data.dev(), data.ino()));
        let ours = File::open(&image.path).ok().as_ref().and_then(identity);
        if ours.is_some() && ours == file.as_ref().and_then(identity) {
            return None;
        }
        let file = file.filter(|_| waiting < MOST_OPEN);
        Some(Foreign { namespace, image: image.clone(), file })
    }
}

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

/// The mount namespace of a process, if it or the root in it is not ours.
fn foreign_namespace(pid: Pid) -> Option<PathBuf> {
    let link = |of: &str, what: &str| fs::read_link(format!("/proc/{of}/{what}")).ok();
    let theirs = link(&pid.0.to_string(), "ns/mnt")?;
    let elsewhere = theirs != link("self", "ns/mnt")?
        || link(&pid.0.to_string(), "root")? != link("self", "root")?;
    elsewhere.then_some(theirs)
}

/// Copies images that only a container has, and adds all that were seen in one to the list.
pub(super) fn keep_foreign(room: &Path, epoch: u64, seen: &mut Vec<Foreign>) {
    if seen.is_empty() {
        return;
    }
    let folder = room.join("images");
    for foreign in &*seen {
        // As with names: what cannot be kept is no reason to stop.
        let _ = copy_image(foreign, &folder);
    }
    keep_few(&folder, IMAGES_BYTES);
    let path = room.join("namespaces");
    let full = fs::metadata(&path).is_ok_and(|data| data.len() > LIST_BYTES);
    let lines: String =
        std::mem::take(seen).iter().map(|f| line(epoch, &f.namespace, &f.image)).collect();
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    if let (Ok(mut file), false) = (file, full) {
        let _ = file.write_all(lines.as_bytes());
    }
}

/// Copies are found by build-id, so that an image without one is not worth copying; nor is one
/// that is here under its own path.
fn copy_image(foreign: &Foreign, folder: &Path) -> io::Result<()> {
    let (Some(file), Some(id)) = (&foreign.file, foreign.image.build_id) else { return Ok(()) };
    let here = File::open(&foreign.image.path).ok().and_then(|file| head::read(&file));
    let to = folder.join(id.to_string());
    let is_theirs = head::read(file).is_some_and(|head| head.build_id == Some(id));
    let is_small = file.metadata()?.len() <= IMAGE_BYTES;
    let is_here = here.is_some_and(|head| head.build_id == Some(id)) || to.exists();
    if is_here || !is_theirs || !is_small {
        return Ok(());
    }
    DirBuilder::new().mode(0o700).recursive(true).create(folder)?;
    let new = to.with_extension("new");
    let (mut from, mut into) = (file, private(&new)?);
    match io::copy(&mut from, &mut into) {
        Ok(_) => fs::rename(new, to),
        Err(error) => {
            let _ = fs::remove_file(new);
            Err(error)
        }
    }
}

/// Removes the oldest files until the rest are few enough bytes.
fn keep_few(folder: &Path, most_bytes: u64) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let with_data = |entry: fs::DirEntry| {
        let data = entry.metadata().ok()?;
        Some((data.modified().ok()?, data.len(), entry.path()))
    };
    let mut files: Vec<_> = entries.filter_map(with_data).collect();
    files.sort();
    let mut bytes: u64 = files.iter().map(|(_, length, _)| length).sum();
    for (_, length, path) in files {
        if bytes <= most_bytes {
            break;
        }
        let _ = fs::remove_file(path);
        bytes = bytes.saturating_sub(length);
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
    fn an_image_that_is_not_here_is_copied_and_one_that_is_here_is_not() {
        let room = std::env::temp_dir().join(format!("whither-foreign-{}", std::process::id()));
        let build_id = head::read(&File::open("/bin/sh").unwrap()).unwrap().build_id;
        let seen = |path: &str| Foreign {
            namespace: "mnt:[1]".into(),
            image: Image { kind: ImageKind::File, path: path.into(), build_id },
            file: File::open("/bin/sh").ok(),
        };
        let copy = room.join("images").join(build_id.unwrap().to_string());
        fs::create_dir_all(&room).unwrap();
        keep_foreign(&room, 1, &mut vec![seen("/bin/sh")]);
        assert!(!copy.exists());
        keep_foreign(&room, 1, &mut vec![seen("/only/there")]);
        assert_eq!(fs::read(&copy).unwrap(), fs::read("/bin/sh").unwrap());
        assert_eq!(fs::read_to_string(room.join("namespaces")).unwrap().lines().count(), 2);
        keep_few(&room.join("images"), 10);
        assert!(!copy.exists());
        fs::remove_dir_all(room).unwrap();
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
