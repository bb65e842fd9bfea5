//! Where the kernel keeps its control groups.

use std::path::{Path, PathBuf};

/// The directory of a control group, by the name that perf gives it: its path below the mount of
/// the hierarchy that perf events belong to. None where there is no such mount, or the name leads
/// out of it.
pub fn cgroup_directory(name: &str) -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    below(&hierarchy(&mounts)?, name)
}

fn below(root: &Path, name: &str) -> Option<PathBuf> {
    let is_plain = |part: &str| !matches!(part, "." | "..");
    let parts = name.split('/').filter(|part| !part.is_empty());
    parts.clone().all(is_plain).then(|| root.join(parts.collect::<PathBuf>()))
}

/// The hierarchy of its own that version 1 may give perf events; else that of version 2.
fn hierarchy(mounts: &str) -> Option<PathBuf> {
    let lines = || {
        mounts.lines().filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((fields.next()?, fields.next()?, fields.next()?))
        })
    };
    let of_perf = |options: &str| options.split(',').any(|option| option == "perf_event");
    let own = lines().find(|(_, kind, options)| *kind == "cgroup" && of_perf(options));
    let unified = || lines().find(|(_, kind, _)| *kind == "cgroup2");
    own.or_else(unified).map(|(at, ..)| PathBuf::from(unescaped(at)))
}

/// The kernel writes a space as `\040`.
fn unescaped(path: &str) -> String {
    path.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_of_perf_events_is_found_among_the_mounts() {
        let second = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup\\040x cgroup2 rw,nosuid 0 0\n";
        assert_eq!(hierarchy(second), Some(PathBuf::from("/sys/fs/cgroup x")));
        let first = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                     cgroup /sys/fs/cgroup/pe cgroup rw,perf_event 0 0\n";
        assert_eq!(hierarchy(&format!("{second}{first}")), Some("/sys/fs/cgroup/pe".into()));
        assert_eq!(hierarchy("proc /proc proc rw 0 0\nodd\n"), None);
    }

    #[test]
    fn a_name_stays_below_the_mount() {
        let root = Path::new("/c");
        assert_eq!(below(root, "/a/b"), Some("/c/a/b".into()));
        assert_eq!(below(root, "a//b/"), Some("/c/a/b".into()));
        assert_eq!(below(root, "/"), Some("/c".into()));
        assert_eq!(below(root, "../etc"), None);
    }
}
