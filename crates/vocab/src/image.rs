//! What code is found in.

use std::fmt;

use crate::Pid;

/// The identity that the linker gave a file; up to 20 bytes are kept, as the kernel does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId {
    bytes: [u8; 20],
    len: u8,
}

impl BuildId {
    /// Takes the first 20 bytes; an empty id is no id.
    pub fn new(id: &[u8]) -> Option<BuildId> {
        let len = id.len().min(20);
        if len == 0 {
            return None;
        }
        let mut bytes = [0; 20];
        bytes[..len].copy_from_slice(&id[..len]);
        Some(BuildId { bytes, len: len as u8 })
    }

    /// The bytes of the id.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// What kind of thing an image is, which decides where its names come from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ImageKind {
    /// A file: program or library.
    File,
    /// The kernel proper.
    Kernel,
    /// A kernel module.
    Module,
    /// The page of code that the kernel maps into every process.
    Vdso,
    /// Memory without a file: code that a process made at run time.
    Generated(Pid),
}

/// One image: program, library, kernel or module.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Image {
    /// What it is.
    pub kind: ImageKind,
    /// Where it was found. Untrusted text: it comes from the sampled machine.
    pub path: String,
    /// Its build-id, where it has one.
    pub build_id: Option<BuildId>,
}

impl Image {
    /// The last part of the path, for narrow columns.
    pub fn short_name(&self) -> &str {
        match self.path.rsplit('/').next() {
            Some(name) if !name.is_empty() => name,
            _ => &self.path,
        }
    }
}

/// What is worth keeping of an image beside its identity, so that its offsets can still be turned
/// into addresses when the file is gone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ImageFacts {
    /// How large the file was.
    pub size_bytes: Option<u64>,
    /// Where its parts lie in memory, by rising address.
    pub layout: Vec<Loaded>,
}

/// A part of an image that is loaded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Loaded {
    /// The address that the linker gave it.
    pub address: u64,
    /// Where it lies in the file.
    pub offset: u64,
    /// How much of the file it takes.
    pub length: u64,
}

/// The place of an [`Image`] in the profile that holds it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ImageId(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_prints_as_hexadecimal_and_an_empty_one_is_none() {
        assert_eq!(BuildId::new(&[0x0a, 0xff]).unwrap().to_string(), "0aff");
        assert_eq!(BuildId::new(&[]), None);
        assert_eq!(BuildId::new(&[7; 32]).unwrap().as_bytes().len(), 20);
    }

    #[test]
    fn the_short_name_is_the_last_part_of_the_path() {
        let image = |path: &str| Image { kind: ImageKind::File, path: path.into(), build_id: None };
        assert_eq!(image("/usr/bin/gzip").short_name(), "gzip");
        assert_eq!(image("[vdso]").short_name(), "[vdso]");
        assert_eq!(image("/odd/").short_name(), "/odd/");
    }
}
