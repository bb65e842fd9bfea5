//! What a week takes on disk.
//!
//! A simulated week goes through the real writer, day by day: appended, merged a few rows at a
//! time, ended, merged whole. The bytes are those of the folder, manifest included.

use std::path::Path;

use serde_json::json;
use store::{Compaction, Counts, Database, EpochEntry, Facts, Span, Want, Writer};
use vocab::Count;

use super::simulated::Week;
use crate::context::Context;
use crate::result::{Figure, RowResult};

const SEED: u64 = 1997;
const DAYS: u64 = 7;
/// Rows a step of merging takes, as the daemon does it.
const STEP_ROWS: usize = 20_000;
/// Pairs without which the week is too small to mean anything.
const PAIRS_LEAST: u64 = 2_000_000;

/// Adds the week's figures; `scale` below 1 has fewer samples and less code.
pub(super) fn measure(context: &Context, scale: f64, result: &mut RowResult) -> Result<(), String> {
    let folder = context.work.streams()?.join("week");
    let measured = measure_in(&folder, context, scale, result);
    let _ = std::fs::remove_dir_all(&folder);
    measured
}

fn measure_in(
    folder: &Path,
    context: &Context,
    scale: f64,
    result: &mut RowResult,
) -> Result<(), String> {
    result.seeds.insert("week".to_owned(), json!(SEED));
    context.progress.start(DAYS);
    let samples = write_week(folder, scale, || context.progress.step("a day"));
    context.progress.finish();
    let samples = samples.map_err(|error| error.to_string())?;
    let epochs = Database::open(folder).epochs().map_err(|error| error.to_string())?;
    let epoch = epochs.value.first().ok_or("the database is empty")?;
    let bytes = folder_bytes(&folder.join("simulated")).map_err(|error| error.to_string())?;
    let pairs = pairs(epoch)?;
    if scale >= 1.0 && pairs < PAIRS_LEAST {
        return Err(format!("the week has only {pairs} distinct pairs"));
    }
    if epoch.tally().stored != samples {
        return Err(format!("{} of {samples} samples were read back", epoch.tally().stored));
    }
    result.ours.push(Figure::exact("week_mb", bytes as f64 / 1e6));
    result.ours.push(Figure::exact("bytes_per_offset", bytes as f64 / pairs as f64));
    let size = if scale < 1.0 { format!(" at {scale} of its size") } else { String::new() };
    result.notes.push(format!(
        "the week{size}: four CPUs at 997 Hz, 600 images, two events, one epoch; {samples} samples, \
         {pairs} distinct pairs, {bytes} bytes; offsets are random within an image, which packs \
         worse than the loops of real programs"
    ));
    Ok(())
}

/// Appends day by day, merging in between as the daemon does; gives the samples.
fn write_week(
    folder: &Path,
    scale: f64,
    mut step: impl FnMut(),
) -> Result<Count, store::StoreError> {
    let mut writer = Writer::open(folder, "simulated")?;
    writer.begin(Facts { origin: "simulated week".into(), ..Facts::default() }, 1)?;
    let week = Week::new(SEED, scale);
    let mut samples = Count::ZERO;
    for day in 0..DAYS {
        let profile = week.part(day, DAYS);
        samples += profile.tally.stored;
        writer.append_lightly(&profile, Span { from_unix_ns: day + 1, to_unix_ns: day + 2 })?;
        writer.compact(STEP_ROWS)?;
        step();
    }
    writer.end(DAYS + 2)?;
    while writer.compact(STEP_ROWS)? != Compaction::Idle {}
    Ok(samples)
}

/// Distinct (image, offset, event): an epoch that has ended is one segment, in which none comes
/// twice.
fn pairs(epoch: &EpochEntry) -> Result<u64, String> {
    let mut counts = Counts::new(Want { offsets: true, ..Want::default() });
    let troubles = counts.take(epoch).map_err(|error| error.to_string())?;
    match troubles.first() {
        Some(trouble) => Err(trouble.to_string()),
        None => Ok(counts.rows.len() as u64),
    }
}

fn folder_bytes(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { folder_bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_week_meets_the_goals_and_is_read_back_whole() {
        let name = format!("whither-week-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let samples = write_week(&folder, 0.005, || ()).unwrap();
        let epoch = Database::open(&folder).epochs().unwrap().value.remove(0);
        let (pairs, bytes) = (pairs(&epoch).unwrap(), folder_bytes(&folder).unwrap());
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(epoch.tally().stored, samples);
        assert!(pairs > 50_000, "{pairs}");
        assert!(bytes <= 4 * pairs, "{bytes} bytes for {pairs} pairs");
    }
}
