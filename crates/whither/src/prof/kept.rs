//! Names that the daemon kept beside the counts, of code that may not be there any more: what
//! processes generated, and images that a container alone has.

use std::fs;
use std::path::{Component, Path, PathBuf};

use image::{Binary, JitMap, Procedures};
use store::EpochEntry;
use vocab::{Image, ImageKind};

/// The daemons' rooms of the hosts that are shown, with the epochs that are, the newest first.
pub(super) struct Kept {
    rooms: Vec<(PathBuf, Vec<u64>)>,
}

impl Kept {
    pub(super) fn of(database: &Path, epochs: &[EpochEntry]) -> Kept {
        let mut rooms: Vec<(PathBuf, Vec<u64>)> = Vec::new();
        for epoch in epochs.iter().rev().filter(|epoch| is_one_name(epoch.host())) {
            let room = database.join(epoch.host()).join("daemon");
            match rooms.iter_mut().find(|(known, _)| *known == room) {
                Some((_, numbers)) => numbers.push(epoch.number()),
                None => rooms.push((room, vec![epoch.number()])),
            }
        }
        Kept { rooms }
    }

    /// The procedures of an image, if they were kept.
    pub(super) fn procedures(&self, image: &Image) -> Option<Procedures> {
        match (image.kind, image.build_id) {
            (ImageKind::Generated(pid), _) => {
                let names = self.rooms.iter().flat_map(|(room, epochs)| {
                    epochs
                        .iter()
                        .map(move |epoch| format!("jit/{epoch}-{}.map", pid.0))
                        .map(|n| room.join(n))
                });
                let text = names.into_iter().find_map(|path| fs::read(path).ok())?;
                Some(JitMap::parse(&text).procedures)
            }
            (ImageKind::File, Some(id)) => {
                let paths = self.rooms.iter().map(|(room, _)| room.join(format!("images/{id}")));
                let bytes = paths.into_iter().find_map(|path| fs::read(path).ok())?;
                let binary = Binary::parse(&bytes).ok()?;
                (binary.build_id() == Some(id)).then(|| binary.procedures().clone())
            }
            _ => None,
        }
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
    use vocab::{Offset, Pid};

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
        let kept = Kept { rooms: vec![(room.clone(), vec![4, 3])] };
        let image = |kind, build_id| Image { kind, path: "x".into(), build_id };
        let named = kept.procedures(&image(ImageKind::Generated(Pid(77)), None)).unwrap();
        assert_eq!(named.find(Offset(0x1008)).unwrap().name("x"), "new");
        assert_eq!(kept.procedures(&image(ImageKind::Generated(Pid(78)), None)), None);
        let copied = kept.procedures(&image(ImageKind::File, build_id)).unwrap();
        assert_eq!(&copied, Binary::parse(&bytes).unwrap().procedures());
        assert_eq!(kept.procedures(&image(ImageKind::File, None)), None);
        fs::remove_dir_all(room).unwrap();
    }
}
