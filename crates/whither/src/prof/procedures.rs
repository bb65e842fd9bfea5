//! Counts by procedure, as far as the images are still there.

use std::collections::HashMap;

use image::{Procedure, Procedures};
use show::{Cell, Column};
use store::{CountRow, Counts};
use vocab::{Count, Image, ImageId, ImageKind, Offset};

use super::kept::Kept;
use super::table::{self, Rows};
use crate::database::{Selected, ThisHost};
use crate::run::{Images, kernel_layout};

/// The procedures of images, as far as they are known.
type Names = HashMap<ImageId, Procedures>;
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
    let kept = Kept::of(&selected.database, &selected.epochs);
    let (names, unread) = names(counts, &by_image, host, &kept, progress);
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
        let name = match procedure {
            Some(procedure) => procedure.name(short),
            None => format!("{short} (no known procedure)"),
        };
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

/// Reads what can be believed to be what was sampled; a sentence about the rest.
fn names(
    counts: &Counts,
    by_image: &HashMap<ImageId, Count>,
    host: ThisHost,
    kept: &Kept,
    progress: bool,
) -> (Names, Option<String>) {
    let mut ids: Vec<ImageId> = by_image.keys().copied().collect();
    ids.sort_unstable();
    let mut names = Names::new();
    let mut refused: Vec<(ImageId, String)> = Vec::new();
    let mut wanted: Vec<(ImageId, &Image)> = Vec::new();
    for id in ids {
        let Some(image) = counts.images.get(id.0 as usize) else { continue };
        // A list of this name in /tmp may be another process's by now.
        if let (ImageKind::Generated(_), Some(known)) = (image.kind, kept.procedures(image)) {
            names.insert(id, known);
            continue;
        }
        match host.refuses(image) {
            Some(why) => refused.push((id, why.into())),
            None => wanted.push((id, image)),
        }
    }
    let read = Images::load_these(&wanted, &kernel_layout(), progress);
    names.extend(read.procedures().iter().map(|(&id, known)| (id, known.clone())));
    refused.extend(read.unread.iter().cloned());
    refused.retain(|(id, _)| {
        let image = counts.images.get(id.0 as usize);
        let known = image.and_then(|image| kept.procedures(image));
        let is_refused = known.is_none();
        names.extend(known.map(|known| (*id, known)));
        is_refused
    });
    let samples: Count = refused.iter().filter_map(|(id, _)| by_image.get(id)).copied().sum();
    let largest = refused.iter().max_by_key(|(id, _)| by_image.get(id));
    let said = largest.and_then(|(id, why)| {
        let image = counts.images.get(id.0 as usize)?;
        Some(format!(
            "{} images with {samples} samples are counted without names; {}: {why}",
            refused.len(),
            image.path
        ))
    });
    (names, said)
}
