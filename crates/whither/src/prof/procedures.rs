//! Counts by procedure, as far as the images are still there.

use std::collections::HashMap;

use image::Procedure;
use show::{Cell, Column};
use store::{CountRow, Counts};
use vocab::{Count, Image, ImageId, Offset};

use super::table::{self, Rows};
use crate::database::{Aside, Selected, ThisHost};
use crate::listing::procedure_name;
use crate::progress::Progress;
use crate::run::{Images, kernel_layout};

/// Samples by image and the start of a procedure, with the procedure.
type Sums<'a> = HashMap<(ImageId, Option<Offset>), (Count, Option<&'a Procedure>)>;

pub(super) fn rows(
    selected: &Selected,
    counts: &Counts,
    rows: impl Iterator<Item = CountRow> + Clone,
    progress: bool,
) -> Rows {
    let mut by_image: HashMap<ImageId, Count> = HashMap::new();
    for row in rows.clone() {
        *by_image.entry(row.image).or_default() += row.count;
    }
    let epochs = selected.epochs.iter().map(|epoch| (epoch.host(), epoch.began_unix_ns()));
    let host = ThisHost::judge(epochs);
    let aside = Aside::of(&selected.database, &selected.epochs);
    let images = read(counts, &by_image, host, &aside, progress);
    let unread = unread(counts, &by_image, &images);
    let names = images.procedures();
    let mut sums: Sums<'_> = HashMap::new();
    for row in rows {
        let procedure = names.get(&row.image).and_then(|known| known.find(row.offset));
        let sum = sums.entry((row.image, procedure.map(|p| p.start))).or_default();
        sum.0 += row.count;
        sum.1 = procedure;
    }
    let made = sums.into_iter().map(|((id, start), (count, procedure))| {
        let image = counts.images.get(id.0 as usize);
        let short = image.map_or("?", Image::short_name);
        let name = procedure_name(procedure, short);
        let cells = vec![
            Cell::text(short),
            Cell::text(name),
            Cell::text(image.map_or("?", |image| image.path.as_str())),
            start.map_or(Cell::Empty, |start| Cell::Hex(start.0)),
            procedure.map_or(Cell::Empty, |p| Cell::text(p.source.to_string())),
        ];
        (count, cells)
    });
    let columns = vec![
        Column::text("image", "image"),
        Column::text("procedure", "procedure"),
        Column::text("path", "").only_in_json(),
        Column::text("offset", "").only_in_json(),
        Column::text("named_by", "").only_in_json(),
    ];
    let mut made = table::of(columns, made.collect());
    made.notes.extend(unread);
    made
}

/// Reads what can be believed to be what was sampled.
fn read(
    counts: &Counts,
    by_image: &HashMap<ImageId, Count>,
    host: ThisHost,
    aside: &Aside,
    progress: bool,
) -> Images {
    let mut ids: Vec<ImageId> = by_image.keys().copied().collect();
    ids.sort_unstable();
    let (mut images, layout) = (Images::default(), kernel_layout());
    let bar = Progress::new("reading images", ids.len(), progress);
    for id in ids {
        if let Some(image) = counts.images.get(id.0 as usize) {
            images.load_believed(id, image, host, aside, &layout);
        }
        bar.step();
    }
    images
}

/// A sentence about those that were not.
fn unread(counts: &Counts, by_image: &HashMap<ImageId, Count>, images: &Images) -> Option<String> {
    let refused = &images.unread;
    let samples: Count = refused.iter().filter_map(|(id, _)| by_image.get(id)).copied().sum();
    let (id, why) = refused.iter().max_by_key(|(id, _)| by_image.get(id))?;
    let image = counts.images.get(id.0 as usize)?;
    Some(format!(
        "{} images with {samples} samples are counted without names; {}: {why}",
        refused.len(),
        image.path
    ))
}
