//! What is worth keeping of images while they are still there.

use image::Binary;
use vocab::{BuildId, ImageFacts, ImageId, ImageKind, Loaded, Profile};

/// Notes size and layout of every file that has samples, and the kernel's build-id, which no
/// mapping tells.
pub(crate) fn note_facts(profile: &mut Profile) {
    let sampled: std::collections::BTreeSet<ImageId> =
        profile.counts.keys().map(|spot| spot.image).collect();
    for id in sampled {
        let Some(image) = profile.images.get_mut(id.0 as usize) else { continue };
        match image.kind {
            ImageKind::Kernel if image.build_id.is_none() => {
                image.build_id = super::this_host::kernel_build_id();
            }
            ImageKind::File => {
                if let Some((facts, build_id)) = facts_of(&image.path) {
                    // A modelled run knows paths alone; it has only just ended.
                    image.build_id = image.build_id.or(build_id);
                    profile.facts.insert(id, facts);
                }
            }
            _ => {}
        }
    }
}

fn facts_of(path: &str) -> Option<(ImageFacts, Option<BuildId>)> {
    let bytes = std::fs::read(path).ok()?;
    let binary = Binary::parse(&bytes).ok();
    let layout = binary.iter().flat_map(|binary| binary.segments().iter()).map(|segment| Loaded {
        address: segment.address,
        offset: segment.offset.0,
        length: segment.len,
    });
    let facts = ImageFacts { size_bytes: Some(bytes.len() as u64), layout: layout.collect() };
    Some((facts, binary.as_ref().and_then(Binary::build_id)))
}
