//! From bytes to items, whichever form the recording has.

use std::io::{Read, Seek, SeekFrom};

use vocab::BuildId;

use crate::attr::RecordedEvent;
use crate::bytes::Cursor;
use crate::feature::Notes;
use crate::item::Item;
use crate::order::Order;
use crate::records::{self, kind};
use crate::unpack::Unpacker;
use crate::{Body, RecordingError};

const MAGIC: &[u8; 8] = b"PERFILE2";
const MAGIC_SWAPPED: &[u8; 8] = b"2ELIFREP";
const HEADER: usize = 104;
const PIPE_HEADER: u64 = 16;
/// How perf's remarks begin.
const WORDS: &[u8; 8] = b"[ perf r";
/// Attributes, ids and features are tables of the recording's machine: none is larger.
const LARGEST_TABLE: u64 = 64 << 20;

/// What a recording consisted of.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The events, in the order of the items' numbers.
    pub events: Vec<RecordedEvent>,
    /// The host's name, where it was noted. Untrusted.
    pub host: Option<String>,
    /// Build-ids by path.
    pub build_ids: Vec<(String, BuildId)>,
    /// Why the reading ended before the end.
    pub damage: Option<RecordingError>,
}

/// Reads a recording in either form from a file.
pub fn read_file<R: Read + Seek>(mut input: R, mut each: impl FnMut(Item)) -> Outcome {
    let mut reading = Reading::default();
    let result = reading.file(&mut input, &mut each);
    reading.end(result, &mut each)
}

/// Reads a recording in the form that `perf record -o -` writes.
pub fn read_pipe<R: Read>(mut input: R, mut each: impl FnMut(Item)) -> Outcome {
    let mut reading = Reading::default();
    let mut head = [0; 16];
    let result = match read_up_to(&mut input, &mut head) {
        Err(error) => Err(RecordingError::Io(error)),
        Ok(_) => check_magic(&head).and_then(|size| match size {
            PIPE_HEADER => reading.records(&mut input, 16, None, &mut each),
            _ => Err(RecordingError::Header("a pipe carries the form of a file")),
        }),
    };
    reading.end(result, &mut each)
}

fn check_magic(head: &[u8]) -> Result<u64, RecordingError> {
    match head.get(..8) {
        Some(magic) if magic == MAGIC => {}
        Some(magic) if magic == MAGIC_SWAPPED => return Err(RecordingError::OtherByteOrder),
        _ => return Err(RecordingError::NotARecording),
    }
    Cursor::new(head.get(8..).unwrap_or(&[])).u64().ok_or(RecordingError::NotARecording)
}

/// As many bytes as there are, up to the buffer's length.
fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut read = 0;
    while let Some(room) = buffer.get_mut(read..).filter(|room| !room.is_empty()) {
        match input.read(room) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Where a table of the file lies.
#[derive(Clone, Copy)]
struct Extent {
    offset: u64,
    size: u64,
}

impl Extent {
    fn parse(from: &mut Cursor<'_>) -> Option<Extent> {
        Some(Extent { offset: from.u64()?, size: from.u64()? })
    }

    fn read<R: Read + Seek>(self, input: &mut R) -> Result<Vec<u8>, RecordingError> {
        if self.size > LARGEST_TABLE {
            return Err(RecordingError::Header("a table is larger than any machine needs"));
        }
        input.seek(SeekFrom::Start(self.offset)).map_err(RecordingError::Io)?;
        let mut bytes = Vec::new();
        input.take(self.size).read_to_end(&mut bytes).map_err(RecordingError::Io)?;
        if bytes.len() as u64 != self.size {
            return Err(RecordingError::CutShort { what: "a table", at: self.offset });
        }
        Ok(bytes)
    }
}

#[derive(Default)]
struct Reading {
    events: Vec<RecordedEvent>,
    notes: Notes,
    order: Order,
    unpacker: Option<Unpacker>,
}

impl Reading {
    fn end(mut self, result: Result<(), RecordingError>, each: &mut impl FnMut(Item)) -> Outcome {
        self.order.finish(each);
        self.notes.name(&mut self.events);
        Outcome {
            events: self.events,
            host: self.notes.host,
            build_ids: self.notes.build_ids,
            damage: result.err(),
        }
    }

    fn file<R: Read + Seek>(
        &mut self,
        input: &mut R,
        each: &mut impl FnMut(Item),
    ) -> Result<(), RecordingError> {
        let mut head = [0; HEADER];
        let read = read_up_to(input, &mut head).map_err(RecordingError::Io)?;
        if check_magic(&head)? == PIPE_HEADER {
            input.seek(SeekFrom::Start(PIPE_HEADER)).map_err(RecordingError::Io)?;
            return self.records(input, PIPE_HEADER, None, each);
        }
        if read < HEADER {
            return Err(RecordingError::CutShort { what: "the header", at: read as u64 });
        }
        let missing = || RecordingError::Header("it is too short");
        let mut from = Cursor::new(&head);
        from.take(16).ok_or_else(missing)?;
        let attr_size = from.u64().ok_or_else(missing)?;
        let attrs = Extent::parse(&mut from).ok_or_else(missing)?;
        let data = Extent::parse(&mut from).ok_or_else(missing)?;
        from.take(16).ok_or_else(missing)?;
        let flags = from.bytes.to_vec();
        self.attributes(input, attr_size, attrs)?;
        // A perf that was killed leaves no size and no features: records go on to the end.
        let limit = (data.size > 0).then_some(data.size);
        if limit.is_some() {
            self.features(input, &flags, data.offset.saturating_add(data.size));
        }
        self.notes.name(&mut self.events);
        input.seek(SeekFrom::Start(data.offset)).map_err(RecordingError::Io)?;
        self.records(input, data.offset, limit, each)
    }

    /// Each attribute is followed by where its ids lie.
    fn attributes<R: Read + Seek>(
        &mut self,
        input: &mut R,
        attr_size: u64,
        attrs: Extent,
    ) -> Result<(), RecordingError> {
        let table = attrs.read(input)?;
        let size = usize::try_from(attr_size).unwrap_or(0);
        if size <= 16 {
            return Err(RecordingError::Header("its attributes have no size"));
        }
        for entry in table.chunks_exact(size) {
            let (attr, ids) = entry.split_at_checked(size - 16).unwrap_or((entry, &[]));
            let mut event = RecordedEvent::parse(attr)
                .ok_or(RecordingError::Header("an attribute is too short"))?;
            let ids = Extent::parse(&mut Cursor::new(ids))
                .ok_or(RecordingError::Header("an attribute has no ids"))?
                .read(input)?;
            let mut ids = Cursor::new(&ids);
            event.ids = std::iter::from_fn(|| ids.u64()).collect();
            self.events.push(event);
        }
        if self.events.is_empty() {
            return Err(RecordingError::Header("it has no events"));
        }
        Ok(())
    }

    /// What cannot be read of the features is done without: they are names and notes.
    fn features<R: Read + Seek>(&mut self, input: &mut R, flags: &[u8], at: u64) {
        let set = |bit: u64| {
            let byte = flags.get((bit / 8) as usize).copied().unwrap_or(0);
            byte >> (bit % 8) & 1 != 0
        };
        let held: Vec<u64> = (0..256).filter(|&bit| set(bit)).collect();
        let table = Extent { offset: at, size: held.len() as u64 * 16 };
        let Ok(table) = table.read(input) else { return };
        let mut table = Cursor::new(&table);
        for feature in held {
            let Some(extent) = Extent::parse(&mut table) else { return };
            if let Ok(bytes) = extent.read(input) {
                self.notes.take(feature, &bytes);
            }
        }
    }

    fn records<R: Read>(
        &mut self,
        input: &mut R,
        mut at: u64,
        mut left: Option<u64>,
        each: &mut impl FnMut(Item),
    ) -> Result<(), RecordingError> {
        let mut record = vec![0; 1 << 16];
        while left != Some(0) {
            let Some(size) = next_record(input, &mut record, at)? else {
                // In a file whose header says that there is more, something was cut off.
                return match left {
                    None => Ok(()),
                    Some(_) => Err(RecordingError::CutShort { what: "its records", at }),
                };
            };
            let whole = record.get(..size).unwrap_or(&[]);
            let behind = self.record(whole, at, each)?;
            let skipped = skip(input, behind, at)?;
            let step = size as u64 + skipped;
            at += step;
            left = left.map(|left| left.saturating_sub(step));
        }
        Ok(())
    }

    /// One record, header included; gives how many bytes without a header follow it.
    fn record(
        &mut self,
        whole: &[u8],
        at: u64,
        each: &mut impl FnMut(Item),
    ) -> Result<u64, RecordingError> {
        let wrong = |what: &str| RecordingError::Record { what: what.into(), at };
        let mut from = Cursor::new(whole);
        let header = (|| Some((from.u32()?, from.u16()?, from.u16()?)))();
        let (kind, misc, size) = header.ok_or_else(|| wrong("has no header"))?;
        if usize::from(size) != whole.len() {
            return Err(wrong(&format!("says that it has {size} bytes")));
        }
        let body = from.bytes;
        let short = || wrong(&format!("of kind {kind} is shorter than its fields"));
        match kind {
            kind::SAMPLE => self.sample(misc, body).ok_or_else(short)?,
            0..kind::FIRST_OF_PERF => {
                let event = self.events.first();
                let parsed = records::parse(event, kind, misc, body).ok_or_else(short)?;
                if let Some((time_ns, body)) = parsed {
                    self.order.push(Item { time_ns, event: 0, body });
                }
            }
            kind::ATTR => self.attribute(body).ok_or_else(short)?,
            kind::BUILD_ID => self.notes.build_id(misc, body).ok_or_else(short)?,
            kind::FINISHED_ROUND => self.order.end_round(each),
            kind::EVENT_UPDATE => drop(self.update(body)),
            kind::FEATURE => {
                let feature = from.u64().ok_or_else(short)?;
                self.notes.take(feature, from.bytes);
                self.notes.name(&mut self.events);
            }
            kind::COMPRESSED => self.compressed(body, at, each)?,
            kind::COMPRESSED2 => {
                let length = from.u64().ok_or_else(short)?;
                let piece = usize::try_from(length).ok().and_then(|length| from.take(length));
                self.compressed(piece.ok_or_else(short)?, at, each)?;
            }
            kind::TRACING_DATA => return from.u32().map(u64::from).ok_or_else(short),
            kind::AUXTRACE => return from.u64().ok_or_else(short),
            _ => {}
        }
        Ok(0)
    }

    fn sample(&mut self, misc: u16, body: &[u8]) -> Option<()> {
        let place = self.event_of(body)?;
        let (time_ns, body) = records::sample_item(self.events.get(place)?, misc, body)?;
        self.order.push(Item { time_ns, event: place, body });
        Some(())
    }

    /// All events of a recording hold their ids in one place.
    fn event_of(&self, body: &[u8]) -> Option<usize> {
        let first = self.events.first()?;
        let place = match (self.events.len(), first.id_place()) {
            (1, _) | (_, None) => return Some(0),
            (_, Some(place)) => place,
        };
        let id = Cursor::new(body.get(place..)?).u64()?;
        Some(self.events.iter().position(|event| event.ids.contains(&id)).unwrap_or(0))
    }

    /// An attribute in a pipe, with its ids behind it.
    fn attribute(&mut self, body: &[u8]) -> Option<()> {
        let size = usize::try_from(Cursor::new(body.get(4..)?).u32()?).ok()?;
        // The first perfs to write pipes left the size out.
        let size = if size == 0 { 64 } else { size };
        let mut event = RecordedEvent::parse(body.get(..size)?)?;
        let mut ids = Cursor::new(body.get(size..)?);
        event.ids = std::iter::from_fn(|| ids.u64()).collect();
        self.events.push(event);
        Some(())
    }

    /// What perf learnt about an event while it recorded; 2 is its name.
    fn update(&mut self, body: &[u8]) -> Option<()> {
        let mut from = Cursor::new(body);
        let (what, id) = (from.u64()?, from.u64()?);
        if what == 2 {
            let event = self.events.iter_mut().find(|event| event.ids.contains(&id))?;
            event.rename(&from.text());
        }
        Some(())
    }

    fn compressed(
        &mut self,
        piece: &[u8],
        at: u64,
        each: &mut impl FnMut(Item),
    ) -> Result<(), RecordingError> {
        let mut unpacker = match self.unpacker.take() {
            Some(unpacker) => unpacker,
            None => Unpacker::new()?,
        };
        unpacker.push(piece)?;
        for record in unpacker.take_whole() {
            let kind = Cursor::new(&record).u32();
            if matches!(kind, Some(kind::COMPRESSED | kind::COMPRESSED2)) {
                let what = "holds a compressed record inside a compressed one".into();
                return Err(RecordingError::Record { what, at });
            }
            self.record(&record, at, each)?;
        }
        self.unpacker = Some(unpacker);
        Ok(())
    }
}

/// The next record's bytes, header included, and how many; `None` at the end of the input.
fn next_record(
    input: &mut impl Read,
    record: &mut [u8],
    at: u64,
) -> Result<Option<usize>, RecordingError> {
    let (head, rest) = record.split_at_mut_checked(8).ok_or(RecordingError::NotARecording)?;
    match read_up_to(input, head).map_err(RecordingError::Io)? {
        0 => return Ok(None),
        // Somebody sent perf's closing words down the pipe as well (`2>&1`).
        8 if *head == *WORDS => return Ok(None),
        8 => {}
        _ => return Err(RecordingError::CutShort { what: "a record", at }),
    }
    let size = head.get(6..8).and_then(|bytes| Some(u16::from_le_bytes(bytes.try_into().ok()?)));
    let size = usize::from(size.unwrap_or(0));
    let wanted = size.checked_sub(8).and_then(|body| rest.get_mut(..body));
    let Some(body) = wanted else {
        let what = format!("says that it has {size} bytes, and its header alone has 8");
        return Err(RecordingError::Record { what, at });
    };
    if read_up_to(input, body).map_err(RecordingError::Io)? < body.len() {
        return Err(RecordingError::CutShort { what: "a record", at });
    }
    Ok(Some(size))
}

/// Passes over data that follows a record without being one, padded to whole words.
fn skip(input: &mut impl Read, bytes: u64, at: u64) -> Result<u64, RecordingError> {
    let padded = bytes.checked_next_multiple_of(8).unwrap_or(bytes);
    let passed = std::io::copy(&mut input.take(padded), &mut std::io::sink());
    match passed.map_err(RecordingError::Io)? {
        passed if passed == padded => Ok(padded),
        _ => Err(RecordingError::CutShort { what: "a trace", at }),
    }
}

impl Item {
    /// Whether it is a sample.
    pub fn is_sample(&self) -> bool {
        matches!(self.body, Body::Sample(_))
    }
}
