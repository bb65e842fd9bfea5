//! Guesses about the next lines.

use super::cache::Chain;

/// Instructions whose strides are followed.
const STRIDES: usize = 256;
/// Pages whose rows of lines are followed.
const STREAMS: usize = 32;
/// No page: they are shifted addresses.
const NO_PAGE: u64 = u64::MAX;
/// Repetitions before a guess is acted upon.
const CONFIDENT: u8 = 2;

/// How many steps lead to another line, by the step's bytes: division is slow.
const STEPS_AHEAD: [i64; 64] = {
    let mut steps = [0; 64];
    let mut bytes = 1;
    while bytes < 64 {
        steps[bytes] = 128 / bytes as i64;
        bytes += 1;
    }
    steps
};

#[derive(Clone, Copy, Debug, Default)]
struct Stride {
    pc: u64,
    last: u64,
    step: i64,
    confidence: u8,
}

/// Follows constant strides of single instructions.
#[derive(Clone, Debug)]
pub struct StridePrefetcher {
    table: Vec<Stride>,
}

impl Default for StridePrefetcher {
    fn default() -> StridePrefetcher {
        StridePrefetcher { table: vec![Stride::default(); STRIDES] }
    }
}

impl StridePrefetcher {
    /// Tells of an access; returns the address to fetch, if the stride has held.
    #[inline]
    pub fn observe(&mut self, pc: u64, address: u64) -> Option<u64> {
        let entry = &mut self.table[(pc ^ (pc >> 8)) as usize & (STRIDES - 1)];
        if entry.pc != pc {
            *entry = Stride { pc, last: address, step: 0, confidence: 0 };
            return None;
        }
        let step = address.wrapping_sub(entry.last) as i64;
        entry.last = address;
        // Chosen without decisions: whether a step repeats is as hard to guess for the host as the
        // program's data is, and only the last question is mostly answered alike.
        let (is_step, repeats) = (step != 0, step == entry.step);
        let confidence = if repeats { (entry.confidence + 1).min(CONFIDENT + 1) } else { 0 };
        entry.confidence = if is_step { confidence } else { entry.confidence };
        entry.step = if is_step { step } else { entry.step };
        if !(is_step & repeats & (confidence >= CONFIDENT)) {
            return None;
        }
        // Two steps ahead, and far enough to reach another line for short steps.
        let steps = STEPS_AHEAD.get(step.unsigned_abs() as usize).map_or(2, |&steps| steps);
        Some(address.wrapping_add(step.wrapping_mul(steps) as u64))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    line: u64,
    /// The furthest line that was asked for in this direction; the next run starts behind it.
    furthest: Option<u64>,
    up: bool,
    run: u8,
}

/// Places that remember which stream a page has, by the page's low bits.
const HINTS: usize = 64;
/// Places that count streams.
const HELD: usize = 256;

/// Follows rows of lines within a page.
#[derive(Clone, Debug)]
pub struct StreamPrefetcher {
    /// The page of each stream; all ones where there is none.
    pages: [u64; STREAMS],
    streams: [Stream; STREAMS],
    hints: [u8; HINTS],
    /// How many streams there are by their pages' low bits: most pages that have none are known
    /// without a search.
    held: [u8; HELD],
    order: Chain,
    lines_ahead: u64,
    page_lines_shift: u32,
}

/// Lines to fetch: from `first`, `count` of them, in steps of one line up or down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The first line.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Whether upwards.
    pub up: bool,
}

impl Run {
    /// The lines themselves.
    pub fn lines(self) -> impl Iterator<Item = u64> {
        (0..self.count).map(move |k| {
            if self.up { self.first.wrapping_add(k) } else { self.first.wrapping_sub(k) }
        })
    }
}

impl StreamPrefetcher {
    /// Runs so many lines ahead within pages of `page_lines` lines.
    pub fn new(lines_ahead: u64, page_lines: u64) -> StreamPrefetcher {
        StreamPrefetcher {
            pages: [NO_PAGE; STREAMS],
            streams: [Stream::default(); STREAMS],
            hints: [0; HINTS],
            held: [0; HELD],
            order: Chain::new(STREAMS),
            lines_ahead,
            page_lines_shift: page_lines.max(1).ilog2(),
        }
    }

    /// The stream of a page; a page without one takes the oldest, and its line becomes the first.
    #[inline]
    fn find(&mut self, page: u64, line: u64) -> Option<&mut Stream> {
        let hint = page as usize & (HINTS - 1);
        let hinted = usize::from(self.hints[hint]) & (STREAMS - 1);
        if self.pages[hinted] == page {
            self.order.renew(hinted);
            return Some(&mut self.streams[hinted]);
        }
        if self.held[page as usize % HELD] > 0
            && let Some(place) = self.pages.iter().position(|&held| held == page)
        {
            self.hints[hint] = place as u8;
            self.order.renew(place);
            return Some(&mut self.streams[place]);
        }
        let oldest = self.order.oldest();
        self.order.renew(oldest);
        let left = std::mem::replace(&mut self.pages[oldest], page);
        self.held[left as usize % HELD] -= u8::from(left != NO_PAGE);
        self.held[page as usize % HELD] += 1;
        self.hints[hint] = oldest as u8;
        self.streams[oldest] = Stream { line, up: true, ..Stream::default() };
        None
    }

    /// Tells of a line asked from the second level; returns what to fetch that the stream has not
    /// asked for already.
    pub fn observe(&mut self, line: u64) -> Option<Run> {
        let (shift, ahead) = (self.page_lines_shift, self.lines_ahead);
        let stream = self.find(line >> shift, line)?;
        if line == stream.line {
            return None;
        }
        let up = line > stream.line;
        let is_near = line.abs_diff(stream.line) <= 4;
        stream.run =
            if is_near && (up == stream.up || stream.run == 0) { stream.run + 1 } else { 0 };
        if stream.run == 0 || up != stream.up {
            stream.furthest = None;
        }
        stream.up = up;
        stream.line = line;
        stream.run = stream.run.min(CONFIDENT + 1);
        if stream.run < CONFIDENT {
            return None;
        }
        let in_page = line & ((1 << shift) - 1);
        let room = if up { (1 << shift) - 1 - in_page } else { in_page };
        let reach = ahead.min(room);
        let asked = stream.furthest.map_or(0, |furthest| match up {
            true => furthest.saturating_sub(line),
            false => line.saturating_sub(furthest),
        });
        if reach <= asked {
            return None;
        }
        let count = reach - asked;
        let (first, furthest) = match up {
            true => (line + asked + 1, line + reach),
            false => (line - asked - 1, line - reach),
        };
        stream.furthest = Some(furthest);
        Some(Run { first, count, up })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stride_is_followed_after_it_has_repeated() {
        let mut strides = StridePrefetcher::default();
        let told: Vec<_> = (0..6).map(|k| strides.observe(7, 1000 + 256 * k)).collect();
        assert_eq!(told[..3], [None, None, None]);
        assert_eq!(told[3], Some(1000 + 256 * 5));
        assert_eq!(strides.observe(7, 5), None);
    }

    #[test]
    fn strides_are_told_as_one_decides_step_by_step() {
        let mut strides = StridePrefetcher::default();
        let mut plainly = std::collections::HashMap::new();
        let mut dice = crate::testing::Dice::new(11);
        for _ in 0..100_000 {
            let pc = 1 + dice.next() % 100;
            let (last, step, times): &mut (u64, i64, u8) = plainly.entry(pc).or_default();
            let again = *step != 0 && !dice.next().is_multiple_of(5);
            let next = if again { *step } else { dice.next() as i64 % 300 - 150 };
            let address = if *last == 0 { 1 << 40 } else { last.wrapping_add_signed(next) };
            let expected = if *last == 0 || address == *last {
                None
            } else if next == *step {
                *times = (*times + 1).min(9);
                let steps = STEPS_AHEAD.get(step.unsigned_abs() as usize).map_or(2, |&steps| steps);
                (*times >= CONFIDENT).then(|| address.wrapping_add_signed(*step * steps))
            } else {
                (*step, *times) = (next, 0);
                None
            };
            *last = address;
            assert_eq!(strides.observe(pc, address), expected);
        }
    }

    #[test]
    fn a_stream_stays_in_its_page() {
        let mut streams = StreamPrefetcher::new(8, 64);
        assert_eq!((streams.observe(64), streams.observe(65)), (None, None));
        assert_eq!(streams.observe(66), Some(Run { first: 67, count: 8, up: true }));
        streams.observe(125);
        streams.observe(126);
        streams.observe(124);
        streams.observe(123);
        let down = streams.observe(122).unwrap();
        assert_eq!(down.lines().collect::<Vec<_>>()[..2], [121, 120]);
        let mut edge = StreamPrefetcher::new(8, 64);
        for line in 60..62 {
            edge.observe(line);
        }
        assert_eq!(edge.observe(62), Some(Run { first: 63, count: 1, up: true }));
        assert_eq!(edge.observe(63), None);
    }
}
