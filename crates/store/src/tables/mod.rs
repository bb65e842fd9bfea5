//! The six tables of a segment, and how a profile becomes rows of them and back.
//!
//! Every row names its image and event by text rather than by number: one file read alone, by
//! whatever reads Parquet, says what it counts, and a damaged neighbour takes nothing from it.
//! Rows are sorted, so that the dictionary turns the repeated texts into next to nothing.

mod from_profile;
mod places;
mod plain_counts;
mod to_profile;

pub(crate) use from_profile::Fill;
pub(crate) use places::Nowhere;
pub use places::Places;
pub(crate) use to_profile::{Gather, image_of};

use crate::table::{Kind, Packing, Spec, key, sum};

use Kind::{Int, Ints, MaybeInt, MaybeText, Text, Texts};
use Packing::{Delta, Dictionary};

/// Counts by image, event and offset, and by process and time slice where these are kept apart.
pub(crate) static COUNTS: Spec = Spec {
    name: "counts",
    columns: &[
        key("image", Text, Dictionary),
        key("build_id", MaybeText, Dictionary),
        key("kind", Text, Dictionary),
        key("event", Text, Dictionary),
        key("offset", Int, Delta),
        key("pid", MaybeInt, Dictionary),
        key("process", MaybeText, Dictionary),
        key("slice", MaybeInt, Dictionary),
        sum("count"),
    ],
};

/// What is known of the images: each in the segment in which it was first seen.
pub(crate) static IMAGES: Spec = Spec {
    name: "images",
    columns: &[
        key("image", Text, Dictionary),
        key("build_id", MaybeText, Dictionary),
        key("kind", Text, Dictionary),
        key("size_bytes", MaybeInt, Dictionary),
        key("load_address", Ints, Delta),
        key("load_offset", Ints, Delta),
        key("load_length", Ints, Delta),
    ],
};

/// Chains of calls, the innermost frame first; a frame without an image could not be placed.
pub(crate) static STACKS: Spec = Spec {
    name: "stacks",
    columns: &[
        key("event", Text, Dictionary),
        key("images", Texts, Dictionary),
        key("build_ids", Texts, Dictionary),
        key("kinds", Texts, Dictionary),
        key("offsets", Ints, Dictionary),
        sum("count"),
    ],
};

/// Branch records; an end without an image could not be placed.
pub(crate) static BRANCHES: Spec = Spec {
    name: "branches",
    columns: &[
        key("event", Text, Dictionary),
        key("from_image", MaybeText, Dictionary),
        key("from_build_id", MaybeText, Dictionary),
        key("from_kind", MaybeText, Dictionary),
        key("from_offset", MaybeInt, Delta),
        key("to_image", MaybeText, Dictionary),
        key("to_build_id", MaybeText, Dictionary),
        key("to_kind", MaybeText, Dictionary),
        key("to_offset", MaybeInt, Dictionary),
        sum("count"),
        sum("mispredicted"),
        sum("cycles"),
        sum("timed"),
    ],
};

/// Where control went from an instruction, as far as samples told: `onward` is `passed`, `to` with
/// an offset of the same image, `taken` or `straight`.
pub(crate) static WAYS: Spec = Spec {
    name: "ways",
    columns: &[
        key("event", Text, Dictionary),
        key("image", Text, Dictionary),
        key("build_id", MaybeText, Dictionary),
        key("kind", Text, Dictionary),
        key("offset", Int, Delta),
        key("onward", Text, Dictionary),
        key("to_offset", MaybeInt, Dictionary),
        sum("count"),
        sum("pairs"),
        sum("begun"),
    ],
};

/// Outcomes of sampled loads.
pub(crate) static LOADS: Spec = Spec {
    name: "loads",
    columns: &[
        key("event", Text, Dictionary),
        key("image", Text, Dictionary),
        key("build_id", MaybeText, Dictionary),
        key("kind", Text, Dictionary),
        key("offset", Int, Delta),
        key("level", Text, Dictionary),
        key("latency_cycles", Int, Dictionary),
        sum("count"),
    ],
};

/// All of them.
pub(crate) static ALL: [&Spec; 6] = [&COUNTS, &IMAGES, &STACKS, &BRANCHES, &LOADS, &WAYS];
