//! The files behind a profile's images: names and code.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use collect::KernelLayout;
use image::{Binary, JitMap, Kernel, Procedures};
use vocab::{Image, ImageId, ImageKind, Profile};

use crate::database::{Aside, ThisHost};
use crate::progress::Progress;

/// What could be read of the images that have samples.
#[derive(Debug, Default)]
pub(crate) struct Images {
    procedures: HashMap<ImageId, Procedures>,
    code: HashMap<ImageId, (Binary, Vec<u8>)>,
    /// Where what was stripped off is kept.
    apart: HashMap<ImageId, PathBuf>,
    kernel: Option<Kernel>,
    /// Images that could not be read, and why.
    pub(crate) unread: Vec<(ImageId, String)>,
    /// Images whose procedures have no names of their own.
    pub(crate) stripped: Vec<ImageId>,
}

impl Images {
    /// Reads every image that has a sample.
    pub(crate) fn load(profile: &Profile, layout: &KernelLayout, progress: bool) -> Images {
        let mut sampled: Vec<ImageId> = profile.counts.keys().map(|spot| spot.image).collect();
        sampled.dedup();
        sampled.sort_unstable();
        sampled.dedup();
        let sampled: Vec<(ImageId, &Image)> =
            sampled.into_iter().filter_map(|id| Some((id, profile.image(id)?))).collect();
        Images::load_these(&sampled, layout, progress)
    }

    /// Reads these.
    pub(crate) fn load_these(
        wanted: &[(ImageId, &Image)],
        layout: &KernelLayout,
        progress: bool,
    ) -> Images {
        let bar = Progress::new("reading images", wanted.len(), progress);
        let mut images = Images::default();
        for &(id, image) in wanted {
            images.load_one(id, image, layout);
            bar.step();
        }
        images
    }

    /// Reads one more.
    pub(crate) fn load_one(&mut self, id: ImageId, image: &Image, layout: &KernelLayout) {
        if let Err(why) = self.try_load(id, image, layout) {
            self.unread.push((id, why));
        }
    }

    /// Reads one more of a database: what can be believed to be what was sampled, and what the daemon
    /// kept of the rest.
    pub(crate) fn load_believed(
        &mut self,
        id: ImageId,
        image: &Image,
        host: ThisHost,
        aside: &Aside,
        layout: &KernelLayout,
    ) {
        // A list of this name in /tmp may be another process's by now.
        if let Some(names) = aside.names(image) {
            self.procedures.insert(id, names);
            return;
        }
        let read = match host.refuses(image) {
            Some(why) => Err(why.to_owned()),
            None => self.try_load(id, image, layout),
        };
        let read = read.or_else(|why| match aside.copy(image) {
            Some(bytes) => self.keep(id, image, bytes).map_err(|_| why),
            None => Err(why),
        });
        if let Err(why) = read {
            self.unread.push((id, why));
        }
    }

    /// Why an image could not be read.
    pub(crate) fn refusal(&self, id: ImageId) -> Option<&str> {
        self.unread.iter().find(|(unread, _)| *unread == id).map(|(_, why)| why.as_str())
    }

    /// The bytes that hold an image's debugging information: its own, or those of the file that it
    /// was stripped into.
    pub(crate) fn debug_bytes(&self, id: ImageId) -> Option<Cow<'_, [u8]>> {
        match self.apart.get(&id) {
            Some(path) => fs::read(path).ok().map(Cow::Owned),
            None => self.code(id).map(|(_, bytes)| Cow::Borrowed(bytes)),
        }
    }

    /// Files alone, without this machine's kernel: for replays.
    #[cfg(test)]
    pub(super) fn load_files(profile: &Profile) -> Images {
        let mut images = Images::default();
        for (place, image) in profile.images.iter().enumerate() {
            if image.kind == ImageKind::File {
                images.load_file(ImageId(place as u32), image).unwrap();
            }
        }
        images
    }

    pub(crate) fn procedures(&self) -> &HashMap<ImageId, Procedures> {
        &self.procedures
    }

    /// The image's description and its bytes.
    pub(crate) fn code(&self, id: ImageId) -> Option<(&Binary, &[u8])> {
        self.code.get(&id).map(|(binary, bytes)| (binary, bytes.as_slice()))
    }

    fn try_load(
        &mut self,
        id: ImageId,
        image: &Image,
        layout: &KernelLayout,
    ) -> Result<(), String> {
        match image.kind {
            ImageKind::File => self.load_file(id, image),
            ImageKind::Vdso => self.keep(id, image, vdso()?),
            ImageKind::Generated(pid) => {
                let path = format!("/tmp/perf-{}.map", pid.0);
                let text = fs::read(&path)
                    .map_err(|_| format!("its names would be in {path}, which is not there"))?;
                self.procedures.insert(id, JitMap::parse(&text).procedures);
                Ok(())
            }
            ImageKind::Kernel | ImageKind::Module => {
                let kernel = match &mut self.kernel {
                    Some(kernel) => kernel,
                    held => held.insert(read_kernel()?),
                };
                let procedures = kernel_procedures(image, layout, kernel)?;
                self.procedures.insert(id, procedures);
                Ok(())
            }
        }
    }

    fn load_file(&mut self, id: ImageId, image: &Image) -> Result<(), String> {
        // The kernel marks a file that was replaced or removed while it ran.
        if let Some(path) = image.path.strip_suffix(" (deleted)") {
            return Err(format!("{path} was removed or replaced while it ran"));
        }
        let bytes = fs::read(&image.path).map_err(|error| error.to_string())?;
        self.keep(id, image, bytes)
    }

    /// Keeps names and code, provided that it is still the image that was sampled.
    fn keep(&mut self, id: ImageId, image: &Image, bytes: Vec<u8>) -> Result<(), String> {
        let binary = Binary::parse(&bytes).map_err(|error| error.to_string())?;
        if image.build_id.is_some() && image.build_id != binary.build_id() {
            return Err("the file has changed since it ran (its build-id differs)".into());
        }
        let binary = match stripped_off(&binary, &image.path) {
            Some((whole, path)) => {
                self.apart.insert(id, path);
                whole
            }
            None => binary,
        };
        if !binary.has_symtab() && binary.procedures().iter().any(|p| p.raw_name.is_none()) {
            self.stripped.push(id);
        }
        self.procedures.insert(id, binary.procedures().clone());
        self.code.insert(id, (binary, bytes));
        Ok(())
    }
}

/// The image with the names that were stripped off it and are kept apart, and where: by build-id as
/// distributions ship them, or by the name that the image itself gives.
fn stripped_off(binary: &Binary, image: &str) -> Option<(Binary, PathBuf)> {
    let by_id = binary.build_id().map(|id| id.to_string()).and_then(|id| {
        let (folder, file) = id.split_at_checked(2)?;
        let path = PathBuf::from(format!("/usr/lib/debug/.build-id/{folder}/{file}.debug"));
        let debug = Binary::parse(&fs::read(&path).ok()?).ok()?;
        Some((binary.with_debug(&debug).ok()?, path))
    });
    by_id.or_else(|| {
        let name = &binary.debug_link()?.name;
        let folder = Path::new(image).parent()?;
        let below = folder.strip_prefix("/").ok()?;
        // The name is untrusted: it must not lead anywhere else.
        (!name.contains('/') && name != "..").then_some(())?;
        let places = [
            folder.join(name),
            folder.join(".debug").join(name),
            Path::new("/usr/lib/debug").join(below).join(name),
        ];
        places
            .into_iter()
            .find_map(|path| Some((binary.with_linked_debug(&fs::read(&path).ok()?).ok()?, path)))
    })
}

fn read_kernel() -> Result<Kernel, String> {
    let text = fs::read("/proc/kallsyms").map_err(|error| error.to_string())?;
    Kernel::parse(&text).map_err(|error| error.to_string())
}

fn kernel_procedures(
    image: &Image,
    layout: &KernelLayout,
    kernel: &Kernel,
) -> Result<Procedures, String> {
    if image.kind == ImageKind::Kernel {
        return Ok(kernel.procedures().clone());
    }
    let name = image.path.trim_start_matches('[').trim_end_matches(']');
    let module = kernel.modules().get(name).ok_or("the kernel lists no symbols for it")?;
    let start = layout.module_start(name).ok_or("it was unloaded while the program ran")?;
    Ok(module.procedures(start))
}

/// Every process has the same vdso: ours is read from our own memory.
fn vdso() -> Result<Vec<u8>, String> {
    let maps = File::open("/proc/self/maps").map_err(|error| error.to_string())?;
    let line = BufReader::new(maps).lines().map_while(Result::ok).find(|l| l.ends_with("[vdso]"));
    let range = line.as_deref().and_then(|line| line.split(' ').next()).and_then(|range| {
        let (start, end) = range.split_once('-')?;
        Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
    });
    let (start, end) = range.ok_or("this process has no vdso")?;
    let length = usize::try_from(end.saturating_sub(start)).map_err(|error| error.to_string())?;
    let mut bytes = vec![0; length.min(1 << 20)];
    let memory = File::open("/proc/self/mem").map_err(|error| error.to_string())?;
    memory.read_exact_at(&mut bytes, start).map_err(|error| error.to_string())?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_vdso_reads_as_an_image_with_named_procedures() {
        let Ok(bytes) = vdso() else {
            eprintln!("skipped: this process has no vdso");
            return;
        };
        let binary = Binary::parse(&bytes).unwrap();
        assert!(binary.procedures().iter().any(|p| p.raw_name.is_some()));
    }
}
