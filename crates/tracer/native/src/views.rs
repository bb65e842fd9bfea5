//! Files that the program maps more than once: what it writes to one view of a file it finds in the
//! others, code among them. Programs that may not have memory both writable and executable make code
//! that way.

use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A range in which a file is shared, not copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct View {
    start: u64,
    end: u64,
    /// Its device and number.
    file: (u64, u64),
    offset: u64,
}

static VIEWS: Mutex<Vec<View>> = Mutex::new(Vec::new());

fn views() -> MutexGuard<'static, Vec<View>> {
    VIEWS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A range of a file is shared from now on.
pub(crate) fn add(start: u64, end: u64, descriptor: RawFd, offset: u64) {
    // SAFETY: all-zero is a valid stat, which the kernel writes to.
    let about = unsafe {
        let mut about: libc::stat = std::mem::zeroed();
        (libc::fstat(descriptor, &raw mut about) == 0).then_some(about)
    };
    if let Some(about) = about {
        views().push(View { start, end, file: (about.st_dev, about.st_ino), offset });
    }
}

/// Nothing is shared in a range any more.
pub(crate) fn remove(start: u64, end: u64) {
    cut(&mut views(), start, end);
}

/// A range was moved, and is of another length.
pub(crate) fn moved(old: u64, old_end: u64, start: u64, end: u64) {
    let mut views = views();
    let found = views.iter().find(|view| view.start <= old && old < view.end).copied();
    cut(&mut views, old, old_end);
    cut(&mut views, start, end);
    if let Some(view) = found {
        views.push(View { start, end, offset: view.offset + (old - view.start), ..view });
    }
}

fn cut(views: &mut Vec<View>, start: u64, end: u64) {
    let met: Vec<View> =
        views.extract_if(.., |view| view.start < end && start < view.end).collect();
    for view in met {
        if view.start < start {
            views.push(View { end: start, ..view });
        }
        if view.end > end {
            views.push(View { start: end, offset: view.offset + (end - view.start), ..view });
        }
    }
}

/// The other ranges that show what a range does.
pub(crate) fn others(start: u64, end: u64) -> Vec<(u64, u64)> {
    others_in(&views(), start, end)
}

fn others_in(views: &[View], start: u64, end: u64) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    for view in views.iter().filter(|view| view.start < end && start < view.end) {
        let (from, to) = (start.max(view.start), end.min(view.end));
        let (first, last) = (view.offset + (from - view.start), view.offset + (to - view.start));
        for other in views.iter().filter(|other| *other != view && other.file == view.file) {
            let first = first.max(other.offset);
            let last = last.min(other.offset + (other.end - other.start));
            if first < last {
                let at = |offset: u64| other.start + (offset - other.offset);
                all.push((at(first), at(last)));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_view_shows_is_found_in_the_others() {
        let view = |start, end, inode, offset| View { start, end, file: (1, inode), offset };
        let mut views = vec![
            view(0x1000, 0x4000, 7, 0),
            view(0x10000, 0x12000, 7, 0x1000),
            view(0x20000, 0x21000, 8, 0),
        ];
        assert_eq!(others_in(&views, 0x2000, 0x3000), [(0x10000, 0x11000)]);
        assert_eq!(others_in(&views, 0x1000, 0x2000), []);
        assert_eq!(others_in(&views, 0x10000, 0x12000), [(0x2000, 0x4000)]);
        assert_eq!(others_in(&views, 0x20000, 0x21000), []);
        cut(&mut views, 0x2000, 0x3000);
        assert_eq!(others_in(&views, 0x10000, 0x12000), [(0x3000, 0x4000)]);
    }
}
