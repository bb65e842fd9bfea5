//! What the daemon kept beside the counts, of code that may not be there any more: names of what
//! processes generated, and images that a container alone has. `daemon/aside.rs` writes it.

use std::fs;
use std::path::{Component, Path, PathBuf};

use image::{JitMap, Procedures};
use store::EpochEntry;
use vocab::{Image, ImageKind};

/// The daemons' rooms of the hosts that are shown, with the epochs that are, the newest first.
pub(crate) struct Aside {
    rooms: Vec<(PathBuf, Vec<u64>)>,
}

impl Aside {
    pub(crate) fn of(database: &Path, epochs: &[EpochEntry]) -> Aside {
        let mut rooms: Vec<(PathBuf, Vec<u64>)> = Vec::new();
        for epoch in epochs.iter().rev().filter(|epoch| is_one_name(epoch.host())) {
            let room = database.join(epoch.host()).join("daemon");
            match rooms.iter_mut().find(|(known, _)| *known == room) {
                Some((_, numbers)) => numbers.push(epoch.number()),
                None => rooms.push((room, vec![epoch.number()])),
            }
        }
        Aside { rooms }
    }

    /// The names of code that a process made, if they were kept.
    pub(crate) fn names(&self, image: &Image) -> Option<Procedures> {
        let ImageKind::Generated(pid) = image.kind else { return None };
        let lists = self.rooms.iter().flat_map(|(room, epochs)| {
            epochs.iter().map(move |epoch| room.join(format!("jit/{epoch}-{}.map", pid.0)))
        });
        let text = lists.into_iter().find_map(|path| fs::read(path).ok())?;
        Some(JitMap::parse(&text).procedures)
    }

    /// The bytes of a file that was copied. Whether it is the one is for the reader to check.
    pub(crate) fn copy(&self, image: &Image) -> Option<Vec<u8>> {
        let id = image.build_id.filter(|_| image.kind == ImageKind::File)?;
        let mut copies = self.rooms.iter().map(|(room, _)| room.join(format!("images/{id}")));
        copies.find_map(|path| fs::read(path).ok())
    }
}

/// A host's name comes out of a file: it must not lead anywhere else.
fn is_one_name(host: &str) -> bool {
    let mut parts = Path::new(host).components();
    matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use collect::KernelLayout;
    use image::Binary;
    use vocab::{ImageId, Offset, Pid};

    use crate::database::ThisHost;
    use crate::run::Images;

    #[test]
    fn a_host_is_one_part_of_a_path() {
        assert!(is_one_name("web-1.example.org"));
        for host in ["", "..", "a/b", "/etc"] {
            assert!(!is_one_name(host), "{host}");
        }
    }

    #[test]
    fn names_come_from_the_newest_epoch_and_copies_by_build_id() {
        let room = std::env::temp_dir().join(format!("whither-kept-{}", std::process::id()));
        fs::create_dir_all(room.join("jit")).unwrap();
        fs::create_dir_all(room.join("images")).unwrap();
        fs::write(room.join("jit/3-77.map"), "1000 10 old\n").unwrap();
        fs::write(room.join("jit/4-77.map"), "1000 10 new\n").unwrap();
        let bytes = fs::read("/bin/sh").unwrap();
        let build_id = Binary::parse(&bytes).unwrap().build_id();
        fs::write(room.join(format!("images/{}", build_id.unwrap())), &bytes).unwrap();
        let aside = Aside { rooms: vec![(room.clone(), vec![4, 3])] };
        let image = |kind, build_id| Image { kind, path: "x".into(), build_id };
        let named = aside.names(&image(ImageKind::Generated(Pid(77)), None)).unwrap();
        assert_eq!(named.find(Offset(0x1008)).unwrap().name("x"), "new");
        assert_eq!(aside.names(&image(ImageKind::Generated(Pid(78)), None)), None);
        assert_eq!(aside.copy(&image(ImageKind::File, build_id)).unwrap(), bytes);
        assert_eq!(aside.copy(&image(ImageKind::File, None)), None);
        // A path that leads nowhere any more is read from the copy, code and all; wherever it was
        // sampled, since the build-id says what it is.
        let mut images = Images::default();
        let elsewhere = ThisHost { is_here: false, since_boot: false };
        let gone = image(ImageKind::File, build_id);
        let made = image(ImageKind::Generated(Pid(77)), None);
        let layout = KernelLayout::default();
        images.load_believed(ImageId(0), &gone, elsewhere, &aside, &layout);
        images.load_believed(ImageId(1), &made, elsewhere, &aside, &layout);
        let binary = Binary::parse(&bytes).unwrap();
        assert_eq!(images.code(ImageId(0)).unwrap().1, bytes);
        assert_eq!(
            images.procedures()[&ImageId(0)].iter().count(),
            binary.procedures().iter().count()
        );
        assert_eq!(images.procedures()[&ImageId(1)], named);
        assert!(images.unread.is_empty(), "{:?}", images.unread);
        // A copy that is something else is not believed.
        fs::write(room.join(format!("images/{}", build_id.unwrap())), b"damaged").unwrap();
        images.load_believed(ImageId(2), &gone, elsewhere, &aside, &layout);
        assert!(images.refusal(ImageId(2)).is_some());
        fs::remove_dir_all(room).unwrap();
    }
}
