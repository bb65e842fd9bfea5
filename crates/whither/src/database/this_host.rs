//! Whether what was sampled is still here to be named.

use vocab::{BuildId, Image, ImageKind};

/// This host's name.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// The running kernel's build-id, from its notes.
pub(crate) fn kernel_build_id() -> Option<BuildId> {
    const BUILD_ID_NOTE: u32 = 3;
    let notes = std::fs::read("/sys/kernel/notes").ok()?;
    let mut at = 0_usize;
    loop {
        let word = |place: usize| {
            let bytes = notes.get(place..place + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        let (name, content) = (word(at)? as usize, word(at + 4)? as usize);
        let kind = word(at + 8)?;
        let name_at = at + 12;
        let content_at = name_at.checked_add(name.next_multiple_of(4))?;
        let is_gnu = notes.get(name_at..name_at + 3) == Some(b"GNU");
        if kind == BUILD_ID_NOTE && is_gnu {
            return BuildId::new(notes.get(content_at..content_at.checked_add(content)?)?);
        }
        at = content_at.checked_add(content.next_multiple_of(4))?;
    }
}

/// What names can be believed: those of files whose build-id matches wherever they were sampled,
/// and of what has none only if it was sampled here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThisHost {
    /// Whether all that is shown was sampled on this host.
    pub(crate) is_here: bool,
    /// Whether all of it was sampled since this host started.
    pub(crate) since_boot: bool,
}

impl ThisHost {
    /// From the hosts and beginnings of the epochs that are shown.
    pub(crate) fn judge<'a>(epochs: impl Iterator<Item = (&'a str, u64)> + Clone) -> ThisHost {
        let (name, booted) = (host_name(), boot_unix_ns());
        ThisHost {
            is_here: epochs.clone().all(|(host, _)| host == name),
            since_boot: epochs.clone().all(|(_, began)| booted.is_some_and(|boot| began > boot)),
        }
    }

    /// Why an image's names would be those of something else; build-ids are compared later.
    pub(crate) fn refuses(&self, image: &Image) -> Option<&'static str> {
        match image.kind {
            ImageKind::Kernel if image.build_id.is_some() => (image.build_id != kernel_build_id())
                .then_some("another kernel runs now (its build-id differs)"),
            ImageKind::Kernel | ImageKind::Module | ImageKind::Generated(_) => (!(self.is_here
                && self.since_boot))
                .then_some("it was sampled on another host or before this one started"),
            ImageKind::File | ImageKind::Vdso => (image.build_id.is_none() && !self.is_here)
                .then_some("it has no build-id, and it was sampled on another host"),
        }
    }
}

fn boot_unix_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse::<u64>().ok()?.checked_mul(1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::Pid;

    #[test]
    fn what_has_no_build_id_is_believed_here_only() {
        let image = |kind, id: Option<u8>| Image {
            kind,
            path: "x".into(),
            build_id: id.and_then(|byte| BuildId::new(&[byte; 20])),
        };
        let here = ThisHost { is_here: true, since_boot: true };
        let elsewhere = ThisHost { is_here: false, since_boot: true };
        let earlier = ThisHost { is_here: true, since_boot: false };
        for (host, kind, id, refused) in [
            (here, ImageKind::File, None, false),
            (elsewhere, ImageKind::File, None, true),
            (elsewhere, ImageKind::File, Some(1), false),
            (here, ImageKind::Kernel, Some(1), true),
            (here, ImageKind::Kernel, None, false),
            (earlier, ImageKind::Kernel, None, true),
            (earlier, ImageKind::Module, None, true),
            (elsewhere, ImageKind::Generated(Pid(1)), None, true),
        ] {
            let image = image(kind, id);
            assert_eq!(host.refuses(&image).is_some(), refused, "{host:?} {image:?}");
        }
    }
}
