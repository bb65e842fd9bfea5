//! The report: one View of a native run.

use analyse::{ProcedureTime, by_image};
use perf::Rate;
use show::{Body, Cell, Column, Fact, Row, Schema, Section, Table, Tone, Unit, View};
use vocab::{Count, ImageId, Mode, Profile, Source, Unplaced};

use super::SAMPLED;
use super::hottest::HotProcedure;
use super::images::Images;
use super::modelled::Second;
use super::notes::notes;
use super::program::Program;
use super::sample::Native;
use super::sampling::Sampling;
use crate::cli::RunJob;
use crate::examined::{executed, largest_cause, mean_cpi};
use crate::listing::{self, CodeTable, Sources};

/// Everything that the report is made from.
pub(crate) struct Report<'a> {
    pub(crate) job: &'a RunJob,
    pub(crate) program: &'a Program,
    pub(crate) sampling: &'a Sampling,
    pub(crate) native: &'a Native,
    pub(crate) images: &'a Images,
    pub(crate) times: &'a [ProcedureTime],
    pub(crate) hottest: &'a [HotProcedure],
    /// The core that the hottest code was held to.
    pub(crate) core: Option<&'a str>,
    /// The modelled half, if there is one.
    pub(crate) second: Option<&'a Second<'a>>,
}

impl Report<'_> {
    pub(crate) fn view(&self) -> View {
        View {
            schema: Schema { name: "run", version: 1 },
            title: format!("whither run: {}", self.program.shown()),
            sections: [self.run(), self.by_image(), self.by_procedure()]
                .into_iter()
                .chain([self.examined(), self.hottest_code()])
                .chain(self.second.into_iter().flat_map(|second| second.sections(self)))
                .chain([self.counted(), self.sampling(), self.notes()])
                .collect(),
        }
    }

    fn profile(&self) -> &Profile {
        &self.native.profile
    }

    /// Samples that were delivered, placed or not: the whole of every share.
    pub(super) fn whole(&self) -> Count {
        self.profile().tally.stored + self.profile().tally.unplaced_total()
    }

    pub(super) fn share_of(&self, count: Count) -> Cell {
        Cell::share_of(count, self.whole())
    }

    pub(super) fn image_name(&self, id: ImageId) -> &str {
        self.profile().image(id).map_or("?", |image| image.short_name())
    }

    pub(super) fn procedure_name(&self, time: &ProcedureTime) -> String {
        listing::procedure_name(time.procedure.as_ref(), self.image_name(time.image))
    }

    fn run(&self) -> Section {
        let seconds = |time: std::time::Duration| Cell::Number(time.as_secs_f64(), Unit::Seconds);
        let ended = &self.native.ended;
        let status = match (ended.code(), ended.signal()) {
            (_, Some(signal)) => format!("killed by signal {signal}"),
            (code, None) => format!("exit status {}", code.unwrap_or(0)),
        };
        Section {
            key: "run",
            title: String::new(),
            caption: String::new(),
            body: Body::Facts(vec![
                Fact::new("command", "command", Cell::text(self.program.shown())),
                Fact::new("ended", "ended", Cell::text(status)),
                Fact::new("elapsed_s", "elapsed", seconds(self.native.elapsed)),
                Fact::new("user_s", "user time", seconds(ended.usage.user)),
                Fact::new("system_s", "system time", seconds(ended.usage.system)),
                Fact::new("peak_kib", "peak memory, KiB", Cell::Count(Count(ended.usage.peak_kib))),
            ]),
        }
    }

    /// How the samples were taken, in a few words.
    fn caption(&self) -> String {
        let event = &self.sampling.request.event.name;
        let rate = match self.sampling.request.rate {
            Rate::Hertz(hertz) => format!("at {hertz} Hz"),
            Rate::Period(period) => format!("every {period}"),
        };
        let mode = match self.native.mode {
            Mode::Both => "",
            Mode::User => ", user mode only",
            Mode::Kernel => ", kernel mode only",
        };
        let word = Source::Measured.word();
        format!("{word}: {event} {rate}{mode}, {} samples; ± at 95 %", self.whole())
    }

    fn by_image(&self) -> Section {
        let placed = by_image(self.profile(), SAMPLED).into_iter().map(|time| {
            let path = self.profile().image(time.image).map_or("?", |i| i.path.as_str());
            (time.count, path.to_owned())
        });
        let unplaced = self.profile().tally.unplaced.iter();
        let unplaced = unplaced.map(|(reason, &count)| (count, unplaced_name(*reason).to_owned()));
        let rows = placed
            .chain(unplaced)
            .map(|(count, name)| {
                let cells = vec![self.share_of(count), Cell::Count(count), Cell::text(name)];
                Row::Cells(tone(count, self.whole()), cells)
            })
            .collect();
        Section {
            key: "images",
            title: "WHERE TIME WENT, BY IMAGE".into(),
            caption: self.caption(),
            body: Body::Table(Table {
                columns: vec![
                    Column::number("share", "share"),
                    Column::number("samples", "samples"),
                    Column::text("image", "image"),
                ],
                rows,
                text_rows: Some(8),
            }),
        }
    }

    fn by_procedure(&self) -> Section {
        let row = |time: &ProcedureTime| {
            let named_by = match &time.procedure {
                Some(procedure) => Cell::text(procedure.source.to_string()),
                None => Cell::Empty,
            };
            let bytes =
                time.procedure.as_ref().map_or(Cell::Empty, |p| Cell::Count(Count(p.len_bytes())));
            let start = time.procedure.as_ref().map_or(Cell::Empty, |p| Cell::Hex(p.start.0));
            Row::Cells(
                tone(time.count, self.whole()),
                vec![
                    self.share_of(time.count),
                    Cell::Count(time.count),
                    Cell::text(self.image_name(time.image)),
                    Cell::text(self.procedure_name(time)),
                    Cell::text(self.profile().image(time.image).map_or("?", |i| i.path.as_str())),
                    start,
                    bytes,
                    named_by,
                ],
            )
        };
        Section {
            key: "procedures",
            title: "BY PROCEDURE".into(),
            caption: String::new(),
            body: Body::Table(Table {
                columns: vec![
                    Column::number("share", "share"),
                    Column::number("samples", "samples"),
                    Column::text("image", "image"),
                    Column::text("procedure", "procedure"),
                    Column::text("path", "").only_in_json(),
                    Column::text("offset", "").only_in_json(),
                    Column::number("bytes", "").only_in_json(),
                    Column::text("named_by", "").only_in_json(),
                ],
                rows: self.times.iter().map(row).collect(),
                text_rows: Some(self.job.procedures),
            }),
        }
    }

    /// How well the hottest code ran, as far as samples of time tell.
    fn examined(&self) -> Section {
        let row = |hot: &HotProcedure| {
            let (time, report) = (self.times.get(hot.row)?, hot.report.as_ref()?);
            let summary = &report.summary;
            let best =
                summary.best_cpi().map_or(Cell::Empty, |cpi| Cell::Number(cpi, Unit::Number));
            let cells = vec![
                best,
                mean_cpi(summary, executed(report)),
                Cell::Number(summary.total_stall, Unit::Share),
                largest_cause(summary),
                Cell::text(self.procedure_name(time)),
                Cell::text(self.image_name(time.image)),
            ];
            Some(Row::Cells(tone(time.count, self.whole()), cells))
        };
        let core = self.core.unwrap_or("no known core");
        Section {
            key: "examined",
            title: "HOW THE HOTTEST CODE RAN".into(),
            caption: format!("cycles per instruction at best on {core}, and as sampled"),
            body: Body::Table(Table {
                columns: vec![
                    Column::number("best_cpi", "best CPI"),
                    Column::number("actual_cpi", "actual"),
                    Column::number("stalled", "stalled"),
                    Column::text("largest", "largest cause").on_pages_of(90),
                    Column::text("procedure", "procedure"),
                    Column::text("image", "image").on_pages_of(80),
                ],
                rows: self.hottest.iter().filter_map(row).collect(),
                text_rows: None,
            }),
        }
    }

    fn hottest_code(&self) -> Section {
        let mut sources = Sources::default();
        let mut table = |hot: &HotProcedure| {
            let time = &self.times[hot.row];
            let title = format!("{} in {}", self.procedure_name(time), self.image_name(time.image));
            let rows = match &hot.code {
                Ok(listing) => {
                    let report = hot.report.as_ref();
                    let table = CodeTable { listing, whole: self.whole(), report };
                    listing::rows(&table, &mut sources)
                }
                Err(why) => vec![Row::Gap(format!("no code: {why}"))],
            };
            let columns = match hot.report {
                Some(_) => listing::columns_with_stalls(),
                None => listing::columns(),
            };
            (title, Table { columns, rows, text_rows: None })
        };
        Section {
            key: "hottest",
            title: "HOTTEST CODE".into(),
            caption:
                "shares of all samples; letters before an instruction are what may have held it \
                      up"
                .into(),
            body: Body::Tables(self.hottest.iter().map(&mut table).collect()),
        }
    }

    fn counted(&self) -> Section {
        let row = |(event, reading): &(vocab::Event, Result<perf::Reading, String>)| {
            let count = match reading {
                Ok(reading) if event.name == "task-clock" => {
                    Cell::Number(reading.count.as_f64() / 1e9, Unit::Seconds)
                }
                Ok(reading) => Cell::Count(reading.count),
                Err(why) => Cell::NotCounted(why.clone()),
            };
            Row::Cells(Tone::Plain, vec![Cell::text(event.name.as_str()), count])
        };
        Section {
            key: "counted",
            title: "COUNTED BESIDE IT".into(),
            caption: format!("{}, exact", Source::Measured.word()),
            body: Body::Table(Table {
                columns: vec![Column::text("event", ""), Column::number("count", "")],
                rows: self.native.counted.iter().map(row).collect(),
                text_rows: None,
            }),
        }
    }

    fn sampling(&self) -> Section {
        let tally = &self.profile().tally;
        let request = &self.sampling.request;
        let rate = match request.rate {
            Rate::Hertz(hertz) => Cell::Number(hertz as f64, Unit::Hertz),
            Rate::Period(period) => Cell::Count(Count(period)),
        };
        Section {
            key: "sampling",
            title: "HOW SURE".into(),
            caption: String::new(),
            body: Body::Facts(vec![
                Fact::new("source", "source", Cell::text(Source::Measured.word())),
                Fact::new("event", "event", Cell::text(request.event.name.as_str())),
                Fact::new("rate", "rate", rate),
                Fact::new(
                    "precision",
                    "precision of the pc, 0 to 3",
                    Cell::Count(Count(u64::from(self.native.precision))),
                ),
                Fact::new("taken", "samples taken", Cell::Count(tally.taken())),
                Fact::new("stored", "placed in an image", Cell::Count(tally.stored)),
                Fact::new("unplaced", "unplaced", Cell::Count(tally.unplaced_total())),
                Fact::new("lost", "lost", Cell::Count(tally.lost)),
                Fact::new("throttled", "times throttled", Cell::Count(tally.throttled)),
                Fact::new("missed", "missed by the timer", self.missed()),
            ]),
        }
    }

    /// Samples that the clock owes: time on the CPU over the period, less what was taken.
    fn missed(&self) -> Cell {
        let clock = self.native.counted.iter().find(|(event, _)| event.name == "task-clock");
        let ran_ns = match clock {
            Some((_, Ok(reading))) => reading.count.as_f64(),
            _ => return Cell::NotCounted("task-clock was not counted".into()),
        };
        match self.sampling.period_ns() {
            Some(period_ns) if self.native.mode == Mode::Both => {
                let owed = ran_ns / period_ns - self.profile().tally.taken().as_f64();
                Cell::Count(Count(owed.max(0.0) as u64))
            }
            Some(_) => Cell::NotCounted("samples are of user mode only".into()),
            None => Cell::NotCounted("the event is not a clock".into()),
        }
    }

    fn notes(&self) -> Section {
        Section {
            key: "notes",
            title: "WHAT THIS REPORT DOES NOT SEE".into(),
            caption: String::new(),
            body: Body::Prose(notes(self)),
        }
    }
}

pub(crate) fn unplaced_name(reason: Unplaced) -> &'static str {
    match reason {
        Unplaced::UnknownProcess => "(unplaced: no map of the process was seen)",
        Unplaced::UnknownAddress => "(unplaced: nothing known is mapped at the address)",
        Unplaced::HiddenKernel => "(unplaced: the kernel hides where its code lies)",
    }
}

pub(crate) fn tone(count: Count, whole: Count) -> Tone {
    match count.as_f64() / whole.as_f64().max(1.0) {
        share if share >= 0.10 => Tone::Hot,
        share if share >= 0.03 => Tone::Warm,
        share if share >= 0.005 => Tone::Plain,
        _ => Tone::Faint,
    }
}
