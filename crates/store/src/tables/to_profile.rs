//! Rows as a profile again.

use std::collections::HashMap;

use vocab::{
    Branch, BranchTally, BuildId, Count, Event, EventCode, EventId, Image, ImageFacts, ImageId,
    ImageKind, Load, LoadLevel, Loaded, Mode, Offset, Onward, Owner, Pid, Place, Process,
    ProcessId, Profile, Slice, Spot, Stack, Way, WayTally,
};

use crate::table::{Batch, Column, Lists, Symbol, Texts};

/// An image by its three columns.
type Named = (Symbol, Symbol, Symbol);

/// The image that three texts stand for.
pub(crate) fn image_of(path: &str, build_id: Option<&str>, kind: &str) -> Image {
    let kind = match kind {
        "kernel" => ImageKind::Kernel,
        "module" => ImageKind::Module,
        "vdso" => ImageKind::Vdso,
        other => match other.strip_prefix("generated ").and_then(|pid| pid.parse().ok()) {
            Some(pid) => ImageKind::Generated(Pid(pid)),
            None => ImageKind::File,
        },
    };
    let build_id = build_id.and_then(from_hex).and_then(|bytes| BuildId::new(&bytes));
    Image { kind, path: path.into(), build_id }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect(),
    )
}

/// Collects rows into a profile. Numbers of texts belong to one set of texts throughout.
pub(crate) struct Gather<'a> {
    profile: &'a mut Profile,
    /// Events by the label under which they are stored.
    known_events: &'a HashMap<String, Event>,
    images: HashMap<Named, ImageId>,
    events: HashMap<Symbol, EventId>,
    processes: HashMap<(u64, Symbol), ProcessId>,
}

impl<'a> Gather<'a> {
    pub(crate) fn new(
        profile: &'a mut Profile,
        known_events: &'a HashMap<String, Event>,
    ) -> Gather<'a> {
        Gather {
            profile,
            known_events,
            images: HashMap::new(),
            events: HashMap::new(),
            processes: HashMap::new(),
        }
    }

    fn image(&mut self, named: Named, texts: &Texts) -> ImageId {
        if let Some(&known) = self.images.get(&named) {
            return known;
        }
        let (path, build_id, kind) = named;
        let text = |symbol| texts.text(symbol);
        let image =
            image_of(text(path).unwrap_or(""), text(build_id), text(kind).unwrap_or("file"));
        let id = self.profile.image_id(&image);
        self.images.insert(named, id);
        id
    }

    fn event(&mut self, label: Symbol, texts: &Texts) -> EventId {
        if let Some(&known) = self.events.get(&label) {
            return known;
        }
        let text = texts.text(label).unwrap_or("");
        // A label that the epoch does not list: its manifest is damaged. The name is what is left.
        let bare =
            || Event { name: text.into(), code: EventCode::new(u32::MAX, 0), mode: Mode::Both };
        let event = self.known_events.get(text).cloned().unwrap_or_else(bare);
        let id = self.profile.event_id(&event);
        self.events.insert(label, id);
        id
    }

    fn process(&mut self, pid: Option<u64>, name: Symbol, texts: &Texts) -> Option<ProcessId> {
        let pid = pid?;
        if let Some(&known) = self.processes.get(&(pid, name)) {
            return Some(known);
        }
        let name_text = texts.text(name).unwrap_or("").to_owned();
        let id = self.profile.process_id(&Process { pid: Pid(pid as u32), name: name_text });
        self.processes.insert((pid, name), id);
        Some(id)
    }

    /// Rows of any table.
    pub(crate) fn take(&mut self, batch: &Batch, texts: &Texts) {
        let rows = Reading { batch };
        match batch.spec.name {
            "counts" => self.counts(&rows, texts),
            "images" => self.facts(&rows, texts),
            "stacks" => self.stacks(&rows, texts),
            "branches" => self.branches(&rows, texts),
            "loads" => self.loads(&rows, texts),
            "ways" => self.ways(&rows, texts),
            _ => {}
        }
    }

    fn counts(&mut self, rows: &Reading<'_>, texts: &Texts) {
        for row in 0..rows.batch.rows() {
            let spot = Spot {
                image: self.image(rows.named(0, row), texts),
                event: self.event(rows.text(3, row), texts),
                offset: Offset(rows.int(4, row)),
            };
            let process = self.process(rows.maybe(5, row), rows.text(6, row), texts);
            let slice = rows.maybe(7, row).map(|slice| Slice(slice as u32));
            let count = Count(rows.int(8, row));
            *self.profile.counts.entry(spot).or_default() += count;
            if process.is_some() || slice.is_some() {
                let owner = Owner { process, slice };
                *self.profile.apart.entry((spot, owner)).or_default() += count;
            }
        }
    }

    fn facts(&mut self, rows: &Reading<'_>, texts: &Texts) {
        for row in 0..rows.batch.rows() {
            let image = self.image(rows.named(0, row), texts);
            let (addresses, offsets) = (rows.ints(4, row), rows.ints(5, row));
            let parts = addresses.iter().zip(offsets).zip(rows.ints(6, row));
            let layout = parts
                .map(|((&address, &offset), &length)| Loaded { address, offset, length })
                .collect();
            let facts = ImageFacts { size_bytes: rows.maybe(3, row), layout };
            self.profile.facts.entry(image).or_insert(facts);
        }
    }

    fn stacks(&mut self, rows: &Reading<'_>, texts: &Texts) {
        for row in 0..rows.batch.rows() {
            let (paths, ids) = (rows.texts(1, row), rows.texts(2, row));
            let frames = paths.iter().zip(ids).zip(rows.texts(3, row)).zip(rows.ints(4, row));
            let frames = frames
                .map(|(((&path, &build_id), &kind), &offset)| {
                    self.end((path, build_id, kind), Some(offset), texts)
                })
                .collect();
            let stack = Stack { event: self.event(rows.text(0, row), texts), frames };
            *self.profile.stacks.entry(stack).or_default() += Count(rows.int(5, row));
        }
    }

    fn end(&mut self, named: Named, offset: Option<u64>, texts: &Texts) -> Option<Place> {
        (named.0 != Symbol::NONE)
            .then(|| Place { image: self.image(named, texts), offset: Offset(offset.unwrap_or(0)) })
    }

    fn branches(&mut self, rows: &Reading<'_>, texts: &Texts) {
        for row in 0..rows.batch.rows() {
            let branch = Branch {
                event: self.event(rows.text(0, row), texts),
                from: self.end(rows.named(1, row), rows.maybe(4, row), texts),
                to: self.end(rows.named(5, row), rows.maybe(8, row), texts),
            };
            let count = |column| Count(rows.int(column, row));
            let tally = BranchTally {
                count: count(9),
                mispredicted: count(10),
                cycles: count(11),
                timed: count(12),
            };
            self.profile.branches.entry(branch).or_default().add(&tally);
        }
    }

    fn ways(&mut self, rows: &Reading<'_>, texts: &Texts) {
        for row in 0..rows.batch.rows() {
            let to = rows.maybe(6, row);
            let onward = match (texts.text(rows.text(5, row)).unwrap_or(""), to) {
                ("passed", _) => Onward::Passed,
                ("to", Some(offset)) => Onward::To(Offset(offset)),
                ("taken", _) => Onward::Taken,
                ("straight", _) => Onward::Straight,
                // A word that a later whither may write says nothing to this one.
                _ => continue,
            };
            let place = Place {
                image: self.image(rows.named(1, row), texts),
                offset: Offset(rows.int(4, row)),
            };
            let way = Way { event: self.event(rows.text(0, row), texts), place, onward };
            let count = |column| Count(rows.int(column, row));
            let tally = WayTally { count: count(7), pairs: count(8), begun: count(9) };
            self.profile.ways.entry(way).or_default().add(&tally);
        }
    }

    fn loads(&mut self, rows: &Reading<'_>, texts: &Texts) {
        for row in 0..rows.batch.rows() {
            let word = texts.text(rows.text(5, row)).unwrap_or("");
            let level = LoadLevel::ALL.into_iter().find(|level| level.word() == word);
            let load = Load {
                event: self.event(rows.text(0, row), texts),
                place: Place {
                    image: self.image(rows.named(1, row), texts),
                    offset: Offset(rows.int(4, row)),
                },
                level: level.unwrap_or(LoadLevel::Unknown),
                latency_cycles: rows.int(6, row),
            };
            *self.profile.loads.entry(load).or_default() += Count(rows.int(7, row));
        }
    }
}

/// A batch by column and row.
struct Reading<'a> {
    batch: &'a Batch,
}

impl Reading<'_> {
    fn int(&self, column: usize, row: usize) -> u64 {
        match self.batch.columns.get(column) {
            Some(Column::Int(values)) => values.get(row).copied().unwrap_or(0),
            _ => 0,
        }
    }

    fn maybe(&self, column: usize, row: usize) -> Option<u64> {
        match self.batch.columns.get(column) {
            Some(Column::MaybeInt(values)) => values.get(row),
            _ => None,
        }
    }

    fn text(&self, column: usize, row: usize) -> Symbol {
        match self.batch.columns.get(column) {
            Some(Column::Text(values)) => values.get(row).copied().unwrap_or_default(),
            _ => Symbol::NONE,
        }
    }

    fn named(&self, first: usize, row: usize) -> Named {
        (self.text(first, row), self.text(first + 1, row), self.text(first + 2, row))
    }

    fn ints(&self, column: usize, row: usize) -> &[u64] {
        match self.batch.columns.get(column) {
            Some(Column::Ints(lists)) => Lists::get(lists, row),
            _ => &[],
        }
    }

    fn texts(&self, column: usize, row: usize) -> &[Symbol] {
        match self.batch.columns.get(column) {
            Some(Column::Texts(lists)) => Lists::get(lists, row),
            _ => &[],
        }
    }
}
