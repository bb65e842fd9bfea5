//! Guesses about the next lines.

use super::cache::Chain;

/// Instructions whose strides are followed.
const STRIDES: usize = 256;
/// Pages whose rows of lines are followed.
const STREAMS: usize = 32;
/// No page: they are shifted addresses.
const NO_PAGE: u64 = u64::MAX;
/// Lines that a stream may leave out in one step.
const NEAR_LINES: u64 = 4;
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
    table: Box<[Stride; STRIDES]>,
}

impl Default for StridePrefetcher {
    fn default() -> StridePrefetcher {
        StridePrefetcher { table: Box::new([Stride::default(); STRIDES]) }
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

/// A row of lines that grows at its head.
///
/// Misses that are under way together come in either order, and mean the same: which way a row goes
/// is settled by its third line, and one that comes a little late neither turns it nor ends it.
///
/// ```text
/// 4 5 6 or 5 4 6   upwards: the third lies beyond one end of the first two
/// 4 5 6 8 7 9      upwards all the way: 7 was late
/// ```
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    head: u64,
    /// The other end, as long as there are two lines.
    tail: u64,
    /// The furthest line that was asked for in this direction; the next run starts behind it.
    furthest: Option<u64>,
    up: bool,
    /// How often it has grown.
    run: u8,
    /// How many lines memory has brought it in a row.
    far: u8,
}

impl Stream {
    /// Tells of a line; whether the row has grown.
    fn grow(&mut self, line: u64) -> bool {
        let is_near = |end: u64| line.abs_diff(end) <= NEAR_LINES;
        let is_behind_tail = if self.up { line < self.tail } else { line > self.tail };
        if self.run == 0 && is_near(self.head) {
            self.up = line > self.head;
        } else if self.run == 1 && is_behind_tail && is_near(self.tail) {
            self.up = !self.up;
            self.head = self.tail;
        }
        let is_ahead = if self.up { line > self.head } else { line < self.head };
        match (is_near(self.head), is_ahead) {
            (true, true) => {
                (self.tail, self.head) = (self.head, line);
                self.run = self.run.saturating_add(1);
                return true;
            }
            (true, false) => {}
            (false, _) => *self = Stream { up: self.up, far: self.far, ..Stream::begun(line) },
        }
        false
    }

    fn begun(line: u64) -> Stream {
        Stream { head: line, tail: line, furthest: None, up: true, run: 0, far: 0 }
    }
}

/// Places that remember which stream a page has, by the page's low bits.
const HINTS: usize = 64;
/// Places that count streams.
const HELD: usize = 256;

/// How far streams run ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// Lines ahead of one that has just begun, or whose lines are near.
    pub lines: u64,
    /// Lines ahead at most of one whose lines come from memory, as many in a row as it runs ahead
    /// at first: it runs as far ahead as it has come.
    pub lines_max: u64,
    /// Whether such a one goes on in the next page.
    pub crosses_pages: bool,
}

impl Reach {
    /// Whether a stream's lines come from memory.
    fn is_far(self, stream: &Stream) -> bool {
        u64::from(stream.far) >= self.lines
    }

    /// Lines ahead of a stream that has so much room in its page.
    fn of(self, stream: &Stream, room: u64) -> u64 {
        if !self.is_far(stream) {
            return self.lines.min(room);
        }
        let ahead = self.lines.max(u64::from(stream.run).min(self.lines_max));
        if self.crosses_pages { ahead } else { ahead.min(room) }
    }
}

/// Follows rows of lines.
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
    /// The last line told from afar of pages with the same low bits.
    alone: [u64; HINTS],
    /// The stream that asked last.
    asked: usize,
    reach: Reach,
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
    /// Runs so far ahead, in pages of `page_lines` lines.
    pub fn new(reach: Reach, page_lines: u64) -> StreamPrefetcher {
        StreamPrefetcher {
            pages: [NO_PAGE; STREAMS],
            streams: [Stream::default(); STREAMS],
            hints: [0; HINTS],
            held: [0; HELD],
            order: Chain::new(STREAMS),
            alone: [u64::MAX; HINTS],
            asked: 0,
            reach,
            page_lines_shift: page_lines.max(1).ilog2(),
        }
    }

    /// The stream of a page; a page without one takes over what comes from its neighbour, or the
    /// oldest, and its line becomes the first.
    #[inline]
    fn find(&mut self, page: u64, line: u64) -> Option<usize> {
        let hint = page as usize & (HINTS - 1);
        let hinted = usize::from(self.hints[hint]) & (STREAMS - 1);
        if self.pages[hinted] == page {
            self.order.renew(hinted);
            return Some(hinted);
        }
        if self.held[page as usize % HELD] > 0
            && let Some(place) = self.pages.iter().position(|&held| held == page)
        {
            self.hints[hint] = place as u8;
            self.order.renew(place);
            return Some(place);
        }
        if let Some(place) = self.comes_from_neighbour(page, line) {
            self.give(place, page);
            return Some(place);
        }
        let oldest = self.order.oldest();
        self.give(oldest, page);
        self.streams[oldest] = Stream::begun(line);
        None
    }

    /// The place of a stream that has just left the page before, upwards, or behind, downwards.
    fn comes_from_neighbour(&self, page: u64, line: u64) -> Option<usize> {
        if !self.reach.crosses_pages {
            return None;
        }
        let last_in_page = (1u64 << self.page_lines_shift) - 1;
        let in_page = line & last_in_page;
        let (from, up) = if in_page < NEAR_LINES {
            (page.wrapping_sub(1), true)
        } else if last_in_page - in_page < NEAR_LINES {
            (page.wrapping_add(1), false)
        } else {
            return None;
        };
        let place = self.pages.iter().position(|&held| held == from)?;
        let stream = &self.streams[place];
        let is_its = stream.up == up && line.abs_diff(stream.head) <= NEAR_LINES;
        (is_its && self.reach.is_far(stream) && stream.run >= CONFIDENT).then_some(place)
    }

    /// So many pages had lines asked for from the second level, and nobody says which: as many streams, the
    /// oldest first, have left for theirs.
    pub fn pass(&mut self, pages: usize) {
        for _ in 0..pages.min(STREAMS) {
            let place = self.order.oldest();
            self.order.renew(place);
            let left = std::mem::replace(&mut self.pages[place], NO_PAGE);
            self.held[left as usize % HELD] -= u8::from(left != NO_PAGE);
        }
    }

    /// Gives a place to a page.
    fn give(&mut self, place: usize, page: u64) {
        self.order.renew(place);
        let left = std::mem::replace(&mut self.pages[place], page);
        self.held[left as usize % HELD] -= u8::from(left != NO_PAGE);
        self.held[page as usize % HELD] += 1;
        self.hints[page as usize & (HINTS - 1)] = place as u8;
    }

    /// Tells of a line asked from the second level; returns what to fetch that the stream has not
    /// asked for already.
    pub fn observe(&mut self, line: u64) -> Option<Run> {
        let place = self.find(line >> self.page_lines_shift, line)?;
        self.grow(place, line)
    }

    /// Tells of a line that memory brings, long before anything is timed: whether a stream asked for it
    /// before, and what it asks for next. That is taken to come from memory too.
    ///
    /// Most lines that nobody foresees come alone: a page has a stream from its second near line on.
    pub fn foresees(&mut self, line: u64) -> (bool, Option<Run>) {
        let page = line >> self.page_lines_shift;
        let last = &mut self.alone[page as usize % HINTS];
        let is_alone = last.abs_diff(line) > NEAR_LINES;
        *last = line;
        let around = [page.wrapping_sub(1), page, page.wrapping_add(1)];
        if is_alone && around.iter().all(|&page| self.held[page as usize % HELD] == 0) {
            return (false, None);
        }
        let Some(place) = self.find(page, line) else { return (false, None) };
        let Stream { furthest, up, .. } = self.streams[place];
        let run = self.grow(place, line);
        let asked = run.as_ref().map_or(0, |run| run.count);
        let far = &mut self.streams[place].far;
        *far = far.saturating_add(asked.min(u64::from(u8::MAX)) as u8);
        let ahead = |furthest: u64| {
            if up { furthest.checked_sub(line) } else { line.checked_sub(furthest) }
        };
        let is_foreseen = furthest
            .and_then(ahead)
            .is_some_and(|ahead| ahead < self.reach.lines.max(self.reach.lines_max));
        (is_foreseen, run)
    }

    /// A line of a stream's; returns what to fetch that it has not asked for already.
    #[inline]
    fn grow(&mut self, place: usize, line: u64) -> Option<Run> {
        let (shift, reach) = (self.page_lines_shift, self.reach);
        let stream = &mut self.streams[place];
        if !stream.grow(line) || stream.run < CONFIDENT {
            return None;
        }
        let up = stream.up;
        let in_page = line & ((1 << shift) - 1);
        let room = if up { (1 << shift) - 1 - in_page } else { in_page };
        let reach = reach.of(stream, room);
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
            false => (line.wrapping_sub(asked + 1), line.wrapping_sub(reach)),
        };
        stream.furthest = Some(furthest);
        self.asked = place;
        Some(Run { first, count, up })
    }

    /// Tells the stream that asked last whether memory has to bring a line of its.
    #[inline]
    pub fn answered(&mut self, is_far: bool) {
        let far = &mut self.streams[self.asked].far;
        *far = if is_far { far.saturating_add(1) } else { 0 };
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
    fn lines_that_come_out_of_order_make_the_same_stream() {
        let reach = Reach { lines: 8, lines_max: 8, crosses_pages: false };
        let asked = |lines: &[u64]| {
            let mut streams = StreamPrefetcher::new(reach, 64);
            let runs = lines.iter().filter_map(|&line| streams.observe(line));
            runs.flat_map(Run::lines).collect::<Vec<u64>>()
        };
        let in_order = asked(&[4, 5, 6, 7, 8, 9, 10]);
        assert_eq!(in_order, (7..=18).collect::<Vec<u64>>());
        assert_eq!(asked(&[5, 4, 6, 7, 8, 9, 10]), in_order);
        assert_eq!(asked(&[4, 5, 6, 8, 7, 10, 9]), in_order);
        assert_eq!(asked(&[50, 51, 49, 48]), (40..=48).rev().collect::<Vec<u64>>());
        // Five lines back is no longer late, and a row is begun anew.
        assert_eq!(asked(&[14, 15, 16, 11, 10]), (17..=24).collect::<Vec<u64>>());
        assert_eq!(asked(&[14, 15, 16, 11, 10, 9])[8..], [8, 7, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn streams_leave_for_pages_that_nobody_names_the_oldest_first() {
        let reach = Reach { lines: 8, lines_max: 8, crosses_pages: false };
        let asks = |pages: usize, next: u64| {
            let mut streams = StreamPrefetcher::new(reach, 64);
            for line in [4, 5, 6, 64 + 4, 64 + 5, 64 + 6] {
                streams.observe(line);
            }
            streams.pass(pages);
            streams.observe(next).is_some()
        };
        let asks_after = |pages| [7, 64 + 7].map(|next| asks(pages, next));
        assert_eq!(asks_after(0), [true, true]);
        assert_eq!(asks_after(STREAMS - 2), [true, true], "there was room");
        assert_eq!(asks_after(STREAMS - 1), [false, true]);
        assert_eq!(asks_after(STREAMS), [false, false]);
        assert_eq!(asks_after(usize::MAX), [false, false]);
    }

    #[test]
    fn a_stream_goes_on_in_the_next_page_as_far_ahead_as_it_has_come() {
        let reach = Reach { lines: 4, lines_max: 16, crosses_pages: true };
        for up in [true, false] {
            let mut streams = StreamPrefetcher::new(reach, 64);
            let mut asked = std::collections::BTreeSet::new();
            let line = |k: u64| if up { 64_030 + k } else { 64_030 - k };
            for k in 0..300 {
                for guess in streams.observe(line(k)).into_iter().flat_map(Run::lines) {
                    assert!(asked.insert(guess), "{guess} is asked for twice");
                    streams.answered(true);
                }
                let ahead = (1..40).take_while(|&n| asked.contains(&line(k + n))).count() as u64;
                assert_eq!(ahead, if k < 2 { 0 } else { k.clamp(4, 16) }, "at {k}");
            }
        }
    }

    #[test]
    fn one_that_may_begin_with_nothing_runs_as_far_through_lines_that_are_near() {
        let reach = Reach { lines: 0, lines_max: 16, crosses_pages: true };
        let mut streams = StreamPrefetcher::new(reach, 64);
        let mut furthest = 0;
        for line in 0..100 {
            if let Some(run) = streams.observe(line) {
                furthest = run.first + run.count - 1;
                streams.answered(false);
            }
            assert_eq!(furthest, if line < 2 { 0 } else { line + line.min(16) }, "at {line}");
        }
    }

    #[test]
    fn a_page_without_a_neighbours_stream_begins_anew() {
        let reach = Reach { lines: 4, lines_max: 16, crosses_pages: true };
        let mut streams = StreamPrefetcher::new(reach, 64);
        for line in 0..60 {
            streams.observe(line).inspect(|_| streams.answered(true));
        }
        // It left its page's end out by more than a step.
        assert_eq!((streams.observe(66), streams.observe(67)), (None, None));
        assert_eq!(streams.observe(68), Some(Run { first: 69, count: 4, up: true }));
    }

    #[test]
    fn a_stream_stays_in_its_page() {
        let reach = Reach { lines: 8, lines_max: 8, crosses_pages: false };
        let mut streams = StreamPrefetcher::new(reach, 64);
        assert_eq!((streams.observe(64), streams.observe(65)), (None, None));
        assert_eq!(streams.observe(66), Some(Run { first: 67, count: 8, up: true }));
        streams.observe(125);
        streams.observe(126);
        let down = streams.observe(124).unwrap();
        assert_eq!(down.lines().collect::<Vec<_>>()[..2], [123, 122]);
        let mut edge = StreamPrefetcher::new(reach, 64);
        for line in 60..62 {
            edge.observe(line);
        }
        assert_eq!(edge.observe(62), Some(Run { first: 63, count: 1, up: true }));
        assert_eq!(edge.observe(63), None);
    }
}
