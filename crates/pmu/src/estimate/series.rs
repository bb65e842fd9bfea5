//! Events over time.
//!
//! One slice in a round is a poor sample of its round: bursts fall into it or beside it. So its
//! neighbours are asked too, how far away follows from the data, and what other events did meanwhile:
//!
//! ```text
//! alone      steady | instructions per cycle, corrected by what was counted around     (ways)
//! blend      the same, and other groups' events: near by, and as expected alone        (ways, slopes)
//! in a slice of another group: what that group's events tell of it                     (told)
//! ```
//!
//! This is for pictures over a whole run, in bins as short as a round: it needs the run from both
//! sides, and its counts bear no ±. What is printed while a program runs (`stat -I`, `ssb -I`) are
//! totals of an interval, which is many rounds long; [`totals`](super::totals) estimates those, with
//! their uncertainty, from the interval's own slices.

use super::covariates::{Known, SLICES_MAX, hats, others};
use super::frame::Frame;
use super::line::{Line, Turns};
use super::mixture::Start;
use super::nodes::Nodes;
use super::slopes::logarithms;
use super::told::told;
use super::ways::{Blend, Expected, REACHES, Way, blended, by_slopes};
use crate::{Group, Grouping, Reading};

/// Slices that must have counted an event before anything but its neighbours is asked.
const SLICES_MIN: usize = 20;
/// Steps of the fits; few for the one that has many columns.
const STEPS_HATS: usize = 50;
const STEPS_OTHERS: usize = 5;
/// By how many nats one prediction must be nearer than another to weigh e times as much.
const NATS: f64 = 0.1;

/// All events of a run over time.
#[derive(Debug)]
pub struct Series<'a> {
    grouping: &'a Grouping,
    readings: &'a [Reading],
    turns: Turns,
    cycles: Vec<f64>,
    /// 1 in every slice.
    steady: Vec<f64>,
    hats: Vec<Known>,
    /// What each event says alone.
    alone: Vec<Option<Alone>>,
    /// Logarithms of instructions per cycle.
    per_cycle: Vec<f64>,
}

impl<'a> Series<'a> {
    /// Finds what each event says alone.
    pub fn new(grouping: &'a Grouping, readings: &'a [Reading]) -> Series<'a> {
        let cycles = |r: &Reading| r.counts.first().map_or(0.0, |&cycles| cycles as f64);
        let per_cycle: Vec<f64> = readings.iter().map(Reading::instructions_per_cycle).collect();
        let mut series = Series {
            grouping,
            readings,
            turns: Turns::new(grouping, readings),
            cycles: readings.iter().map(cycles).collect(),
            steady: vec![1.0; readings.len()],
            hats: hats(readings, grouping.anchors),
            alone: Vec::new(),
            per_cycle: logarithms(&per_cycle),
        };
        series.alone = (0..grouping.events.len()).map(|event| series.alone(event)).collect();
        series
    }

    /// The events and their groups.
    pub fn grouping(&self) -> &'a Grouping {
        self.grouping
    }

    /// The slices.
    pub fn readings(&self) -> &'a [Reading] {
        self.readings
    }

    /// An event's count in every slice: as counted where it was, else predicted from what was
    /// counted around, from instructions per cycle and from other groups' events. `None` if it was
    /// never counted.
    ///
    /// With few slices, or nothing seen in them, rates are interpolated between neighbours.
    pub fn of(&self, event: usize) -> Option<Vec<f64>> {
        let line = Line::new(self.grouping, self.readings, &self.turns, event);
        let nodes = self.nodes(&line, event)?;
        let rates = if self.is_known_well(&line) {
            let blend = self.blend(event, &nodes);
            self.sharpened(event, &nodes, blend)
        } else {
            nodes.interpolated()
        };
        let most = nodes.most();
        let whole = |(place, rate): (usize, f64)| {
            line.count(place).unwrap_or_else(|| rate.min(most) * line.size(place))
        };
        Some(rates.into_iter().enumerate().map(whole).collect())
    }

    fn is_known_well(&self, line: &Line<'_>) -> bool {
        line.slices() >= SLICES_MIN && line.seen() >= 2 && self.grouping.anchors > 0
    }

    /// What the event's own counts and instructions per cycle lead to expect.
    fn own_ways(&self, nodes: &Nodes) -> Vec<Expected> {
        let hats: Vec<&[f64]> = self.hats.iter().map(Vec::as_slice).collect();
        let steady = Way { known: vec![&self.steady], start: Start::Alike, steps: 0 };
        let by_hats = Way { known: hats, start: Start::Alike, steps: STEPS_HATS };
        let ways = [steady, by_hats];
        ways.iter().filter(|way| !way.known.is_empty()).map(|way| way.expected(nodes)).collect()
    }

    /// The same and what other groups' events lead to expect.
    fn blend(&self, event: usize, nodes: &Nodes) -> Blend {
        let mut ways = self.own_ways(nodes);
        let others = others(self.grouping, self.readings, event);
        let near: Vec<&[f64]> = others.iter().chain(&self.hats).map(Vec::as_slice).collect();
        if !near.is_empty() {
            let near = Way { known: near, start: Start::Alone, steps: STEPS_OTHERS };
            ways.push(near.expected(nodes));
        }
        let apart = |group: &&Group| !group.events.contains(&event);
        let others = self.grouping.groups.iter().filter(apart).flat_map(|group| &group.events);
        ways.push(by_slopes(&self.logarithms_of(others), nodes));
        blended(&ways, &REACHES, &self.cycles, nodes)
    }

    /// The logarithms of what is expected of events alone, and of instructions per cycle.
    fn logarithms_of<'e>(&self, events: impl Iterator<Item = &'e usize>) -> Vec<&[f64]> {
        let of = |&event: &usize| self.alone.get(event)?.as_ref();
        let logarithms = events.filter_map(of).map(|alone| alone.logarithms.as_slice());
        logarithms.chain([self.per_cycle.as_slice()]).collect()
    }

    fn nodes(&self, line: &Line<'_>, event: usize) -> Option<Nodes> {
        let groups: Vec<usize> = self.grouping.groups_of(event).collect();
        let frame = Frame::new(self.readings, &groups);
        let places: Vec<usize> = frame.nodes().map(|(place, _)| place).collect();
        let count = |&place: &usize| line.count(place).unwrap_or(0.0);
        let counts: Vec<f64> = places.iter().map(count).collect();
        let sizes: Vec<f64> = frame.nodes().map(|(_, size)| size).collect();
        let slices = self.readings.len();
        (!places.is_empty()).then_some(Nodes { places, counts, sizes, slices })
    }

    fn alone(&self, event: usize) -> Option<Alone> {
        let line = Line::new(self.grouping, self.readings, &self.turns, event);
        let is_too_long = self.readings.len() > SLICES_MAX;
        if is_too_long || event < self.grouping.anchors || !self.is_known_well(&line) {
            return None;
        }
        let nodes = self.nodes(&line, event)?;
        let mut rates = blended(&self.own_ways(&nodes), &REACHES, &self.cycles, &nodes).rates;
        for ((&place, count), size) in nodes.places.iter().zip(&nodes.counts).zip(&nodes.sizes) {
            if let Some(rate) = rates.get_mut(place) {
                *rate = count / size;
            }
        }
        let logarithms = logarithms(&rates);
        Some(Alone { rates, logarithms })
    }

    /// Puts in what each other group tells of its own slices, weighed by how near it came to what
    /// was counted.
    fn sharpened(&self, event: usize, nodes: &Nodes, blend: Blend) -> Vec<f64> {
        let mut rates = blend.rates;
        for (place, group) in self.grouping.groups.iter().enumerate() {
            let of = |&event: &usize| self.alone.get(event)?.as_ref();
            let alone: Vec<&[f64]> =
                group.events.iter().filter_map(of).map(|alone| alone.rates.as_slice()).collect();
            if group.events.contains(&event) || alone.is_empty() {
                continue;
            }
            let logarithms = self.logarithms_of(group.events.iter());
            let told = told(&alone, &logarithms, &self.steady, &self.cycles, nodes);
            let part = 1.0 / (1.0 + ((told.distance - blend.distance) / NATS).exp());
            let slices = self.readings.iter().zip(rates.iter_mut().zip(&told.rates));
            for (_, (rate, told)) in slices.filter(|(reading, _)| reading.group == place) {
                *rate += part * (told - *rate);
            }
        }
        rates
    }
}

/// What is expected of an event from its own counts and instructions per cycle; as counted where it
/// was.
#[derive(Debug)]
struct Alone {
    rates: Vec<f64>,
    logarithms: Vec<f64>,
}

/// One event over time: see [`Series::of`].
pub fn series(grouping: &Grouping, readings: &[Reading], event: usize) -> Option<Vec<f64>> {
    Series::new(grouping, readings).of(event)
}
