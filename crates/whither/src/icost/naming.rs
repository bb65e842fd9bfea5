//! What the places of a program are called.

use std::collections::HashMap;

use icost::sample::Place;
use image::{DebugInfo, Syntax};
use vocab::{Image, ImageId, Offset};

use super::Heard;
use crate::model::place_of;
use crate::run::Images;

/// Where every sampled instruction lies, and the images that they lie in.
#[derive(Debug, Default)]
pub(crate) struct Names {
    images: Vec<Image>,
    files: Images,
    /// By the number that steps have.
    spots: Vec<Option<(ImageId, Offset)>>,
    lines: HashMap<u32, String>,
}

impl Names {
    /// Finds the places of the windows' instructions and reads their images.
    pub(crate) fn load(heard: &Heard, progress: bool) -> Names {
        let mut names = Names::default();
        let mut found: HashMap<Place, (ImageId, Offset)> = HashMap::new();
        let wanted: HashMap<Place, ()> =
            heard.sampled.places.iter().map(|&place| (place, ())).collect();
        for process in tracer::counts::counts(&heard.processes) {
            for placed in &process.blocks {
                for (k, code) in placed.block.instructions.iter().enumerate() {
                    let place = Place { process: process.key.to_word(), pc: code.pc };
                    if wanted.contains_key(&place)
                        && let Some((image, offset)) = place_of(&process, placed, k)
                    {
                        found.insert(place, (names.image(image), offset));
                    }
                }
            }
        }
        names.spots = heard.sampled.places.iter().map(|place| found.get(place).copied()).collect();
        let wanted: Vec<(ImageId, &Image)> =
            names.images.iter().enumerate().map(|(k, image)| (ImageId(k as u32), image)).collect();
        let layout = collect::KernelLayout::default();
        names.files = Images::load_these(&wanted, &layout, progress);
        names
    }

    fn image(&mut self, image: Image) -> ImageId {
        let found = self.images.iter().position(|known| *known == image);
        let place = found.unwrap_or_else(|| {
            self.images.push(image);
            self.images.len() - 1
        });
        ImageId(place as u32)
    }

    fn short(&self, id: ImageId) -> &str {
        self.images.get(id.0 as usize).map_or("?", |image| image.short_name())
    }

    /// The procedure of an instruction, with its image.
    pub(crate) fn procedure(&self, number: u32) -> String {
        let Some(&Some((image, offset))) = self.spots.get(number as usize) else {
            return "(code from nowhere)".to_owned();
        };
        let short = self.short(image);
        let procedures = self.files.procedures().get(&image);
        match procedures.and_then(|procedures| procedures.find(offset)) {
            Some(procedure) => format!("{} ({short})", procedure.name(short)),
            None => format!("{short} (no known procedure)"),
        }
    }

    /// The source line of an instruction, where the image says.
    pub(crate) fn line(&self, number: u32) -> Option<String> {
        self.lines.get(&number).cloned()
    }

    /// Reads the source lines of everything that was sampled.
    pub(crate) fn read_lines(&mut self) {
        for place in 0..self.images.len() {
            let image = ImageId(place as u32);
            let Some((binary, _)) = self.files.code(image) else { continue };
            let bytes = self.files.debug_bytes(image);
            let Some(debug) = bytes.as_deref().and_then(DebugInfo::read) else { continue };
            let mut addresses: Vec<(u64, u32)> = Vec::new();
            for (number, spot) in self.spots.iter().enumerate() {
                if let Some((_, offset)) = spot.filter(|(held, _)| *held == image)
                    && let Some(address) = binary.address_of(offset)
                {
                    addresses.push((address, number as u32));
                }
            }
            addresses.sort_unstable();
            let wanted: Vec<(u64, u64)> = addresses.iter().map(|&(at, _)| (at, at + 1)).collect();
            let lines = debug.lines_of(&wanted);
            for (address, number) in addresses {
                if let Some(row) = lines.row_at(address) {
                    let file = lines.file(row.file).rsplit('/').next().unwrap_or("?");
                    self.lines.insert(number, format!("{file}:{}", row.line));
                }
            }
        }
    }

    /// An instruction: its procedure, how far into it, and what it does.
    pub(crate) fn instruction(&self, number: u32) -> String {
        let Some(&Some((image, offset))) = self.spots.get(number as usize) else {
            return "(code from nowhere)".to_owned();
        };
        let short = self.short(image);
        let procedures = self.files.procedures().get(&image);
        let Some(procedure) = procedures.and_then(|procedures| procedures.find(offset)) else {
            return format!("{short}+{:#x}", offset.0);
        };
        let at = format!("{}+{:#x}", procedure.name(short), offset.0 - procedure.start.0);
        let Some((binary, bytes)) = self.files.code(image) else { return at };
        let text = binary.disassemble(bytes, procedure, Syntax::Intel, short).ok().and_then(|l| {
            let is_it = |address: u64| binary.offset_of(address) == Some(offset);
            l.instructions.into_iter().find(|i| is_it(i.address)).map(|i| i.text)
        });
        text.map_or(at.clone(), |text| format!("{at}: {text}"))
    }

    /// Sentences about images that could not be read.
    pub(crate) fn unread(&self) -> Vec<String> {
        let sentence = |(id, why): &(ImageId, String)| {
            format!("{} could not be read, so its code has no names: {why}.", self.short(*id))
        };
        self.files.unread.iter().map(sentence).collect()
    }
}
