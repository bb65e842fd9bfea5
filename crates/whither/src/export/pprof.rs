//! pprof's form: a gzipped protocol buffer.

use std::collections::HashMap;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use vocab::{ImageId, Place};

use super::Exported;
use super::stacks::Stacks;
use super::symbols::{Frame, Symbol, symbols};
use super::wire::Message;
use crate::examined::period_of;
use crate::failure::{ERROR, Failure};
use crate::sampled::Sampled;

/// Numbers of the fields of a profile.
mod field {
    pub(super) const SAMPLE_TYPE: u64 = 1;
    pub(super) const SAMPLE: u64 = 2;
    pub(super) const MAPPING: u64 = 3;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const FUNCTION: u64 = 5;
    pub(super) const STRING: u64 = 6;
    pub(super) const TIME_NS: u64 = 9;
    pub(super) const PERIOD_TYPE: u64 = 11;
    pub(super) const PERIOD: u64 = 12;
}

pub(super) fn pprof(sampled: &Sampled, stacks: &Stacks) -> Result<Exported, Failure> {
    let mut writer = Writer::new();
    let symbols = symbols(sampled, stacks);
    let period = period_of(sampled).map(|period| period.round() as u64);
    let unit = if sampled.event_name().ends_with("-clock") { "nanoseconds" } else { "count" };
    let samples = writer.value_type("samples", "count");
    writer.whole.message(field::SAMPLE_TYPE, &samples);
    let value_type = writer.value_type(sampled.event_name(), unit);
    if period.is_some() {
        writer.whole.message(field::SAMPLE_TYPE, &value_type);
    }
    for (stack, count) in &stacks.list {
        let mut sample = Message::default();
        let leaf_first = stack.iter().rev().copied();
        let locations: Vec<u64> =
            leaf_first.map(|place| writer.location(sampled, place, &symbols)).collect();
        sample.numbers(1, locations);
        let values = std::iter::once(count.0).chain(period.map(|period| count.0 * period));
        sample.numbers(2, values);
        writer.whole.message(field::SAMPLE, &sample);
    }
    if let Some(period) = period {
        writer.whole.message(field::PERIOD_TYPE, &value_type);
        writer.whole.number(field::PERIOD, period);
    }
    let began = sampled.selected.epochs.iter().map(store::EpochEntry::began_unix_ns).min();
    writer.whole.number(field::TIME_NS, began.unwrap_or(0));
    let bytes = writer.finish();
    let failed = |error: std::io::Error| Failure::new(ERROR, format!("cannot pack: {error}"));
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&bytes).map_err(failed)?;
    let bytes = packed.finish().map_err(failed)?;
    let notes = super::folded::no_chains(sampled).into_iter().collect();
    Ok(Exported { bytes, samples: stacks.total, notes })
}

/// Everything is numbered from 1 in the order in which it is met.
struct Writer {
    whole: Message,
    strings: HashMap<String, u64>,
    string_list: Vec<String>,
    mappings: HashMap<ImageId, u64>,
    locations: HashMap<Option<Place>, u64>,
    functions: HashMap<(String, String), u64>,
}

impl Writer {
    fn new() -> Writer {
        let mut writer = Writer {
            whole: Message::default(),
            strings: HashMap::new(),
            string_list: Vec::new(),
            mappings: HashMap::new(),
            locations: HashMap::new(),
            functions: HashMap::new(),
        };
        // The empty string has number zero.
        writer.string("");
        writer
    }

    fn string(&mut self, text: &str) -> u64 {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let number = self.string_list.len() as u64;
        self.strings.insert(text.to_owned(), number);
        self.string_list.push(text.to_owned());
        number
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> Message {
        let mut message = Message::default();
        message.number(1, self.string(kind));
        message.number(2, self.string(unit));
        message
    }

    fn mapping(&mut self, sampled: &Sampled, image: ImageId) -> u64 {
        if let Some(&known) = self.mappings.get(&image) {
            return known;
        }
        let id = self.mappings.len() as u64 + 1;
        self.mappings.insert(image, id);
        let mut message = Message::default();
        message.number(1, id);
        let held = sampled.image(image);
        let path = self.string(held.map_or("?", |image| image.path.as_str()));
        message.number(5, path);
        if let Some(build_id) = held.and_then(|image| image.build_id) {
            message.number(6, self.string(&build_id.to_string()));
        }
        // It has names, files, lines and inlined calls: nobody need look them up again.
        (7..=10).for_each(|flag| message.number(flag, 1));
        self.whole.message(field::MAPPING, &message);
        id
    }

    fn location(
        &mut self,
        sampled: &Sampled,
        place: Option<Place>,
        symbols: &HashMap<Place, Symbol>,
    ) -> u64 {
        if let Some(&known) = self.locations.get(&place) {
            return known;
        }
        let id = self.locations.len() as u64 + 1;
        self.locations.insert(place, id);
        let mut message = Message::default();
        message.number(1, id);
        let symbol = place.and_then(|place| symbols.get(&place));
        if let (Some(place), Some(symbol)) = (place, symbol) {
            message.number(2, self.mapping(sampled, place.image));
            message.number(3, symbol.address);
        }
        let unknown = Frame {
            name: "[unknown]".into(),
            raw_name: "[unknown]".into(),
            file: String::new(),
            line: 0,
        };
        let frames = symbol.map_or(std::slice::from_ref(&unknown), |symbol| &symbol.frames);
        for frame in frames {
            let mut line = Message::default();
            line.number(1, self.function(frame));
            line.number(2, u64::from(frame.line));
            message.message(4, &line);
        }
        self.whole.message(field::LOCATION, &message);
        id
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let key = (frame.raw_name.clone(), frame.file.clone());
        if let Some(&known) = self.functions.get(&key) {
            return known;
        }
        let id = self.functions.len() as u64 + 1;
        self.functions.insert(key, id);
        let mut message = Message::default();
        message.number(1, id);
        message.number(2, self.string(&frame.name));
        message.number(3, self.string(&frame.raw_name));
        message.number(4, self.string(&frame.file));
        self.whole.message(field::FUNCTION, &message);
        id
    }

    fn finish(mut self) -> Vec<u8> {
        for text in std::mem::take(&mut self.string_list) {
            self.whole.bytes(field::STRING, text.as_bytes());
        }
        self.whole.0
    }
}
