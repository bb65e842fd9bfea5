//! What every view of samples says about them.

use analyse::ProcedureTime;
use show::{Body, Cell, Fact, Section};
use store::EpochEntry;
use vocab::{Count, Source};

use super::Sampled;
use crate::database::shown;
use crate::failure::{ERROR, Failure};

impl Sampled {
    /// Where the samples are from.
    pub(crate) fn what(&self) -> Section {
        let epochs = &self.selected.epochs;
        let mut hosts: Vec<&str> = epochs.iter().map(EpochEntry::host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let began = epochs.iter().map(EpochEntry::began_unix_ns).min().unwrap_or(0);
        let mut facts = vec![
            Fact::new("source", "source", Cell::text(self.profile.source.word())),
            Fact::new("event", "event", Cell::text(self.event_name())),
            Fact::new("stored", "samples", Cell::Count(self.whole())),
            Fact::new("epochs", "epochs", Cell::Count(Count(epochs.len() as u64))),
            Fact::new("hosts", "hosts", Cell::text(hosts.join(", "))),
            Fact::new("began", "from (UTC)", Cell::text(shown(began))),
        ];
        let machine = epochs.iter().find_map(|epoch| epoch.facts().modelled.as_ref());
        facts.extend(
            machine.map(|by| Fact::new("machine", "modelled by", Cell::text(by.machine.as_str()))),
        );
        Section {
            key: "database",
            title: String::new(),
            caption: String::new(),
            body: Body::Facts(facts),
        }
    }

    /// `deflate_slow in gzip`.
    pub(crate) fn title(&self, time: &ProcedureTime) -> String {
        format!("{} in {}", self.name(time), self.image_name(time.image))
    }

    pub(crate) fn name(&self, time: &ProcedureTime) -> String {
        let image = self.image_name(time.image);
        match &time.procedure {
            Some(procedure) => procedure.name(image),
            None => format!("{image} (no known procedure)"),
        }
    }

    /// One procedure's place and part.
    pub(crate) fn about(&self, time: &ProcedureTime) -> Section {
        let path = self.image(time.image).map_or("?", |image| image.path.as_str());
        let mut facts = vec![
            Fact::new("procedure", "procedure", Cell::text(self.name(time))),
            Fact::new("path", "image", Cell::text(path)),
        ];
        if let Some(procedure) = &time.procedure {
            facts.push(Fact::new("offset", "offset", Cell::Hex(procedure.start.0)));
            facts.push(Fact::new("bytes", "bytes", Cell::Count(Count(procedure.len_bytes()))));
            facts.push(Fact::new("named_by", "named by", Cell::text(procedure.source.to_string())));
        }
        facts.push(Fact::new("samples", "samples", Cell::Count(time.count)));
        facts.push(Fact::new("share", "share of all", Cell::share_of(time.count, self.whole())));
        Section {
            key: "procedure",
            title: String::new(),
            caption: String::new(),
            body: Body::Facts(facts),
        }
    }

    /// What numbers are of, beside a heading.
    pub(crate) fn caption(&self) -> String {
        let source = self.profile.source.word();
        format!("{source}: {}, {} samples; ± at 95 %", self.event_name(), self.whole())
    }

    /// What no view of samples sees.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.unread().into_iter().collect();
        let tally = self.selected.tally();
        if tally.unplaced_total() > Count::ZERO {
            notes.push(format!(
                "{} samples without a place are in no share",
                tally.unplaced_total()
            ));
        }
        if tally.lost > Count::ZERO {
            notes.push(format!("{} samples were lost before anyone could place them", tally.lost));
        }
        if self.selected.other_source > 0 {
            let (other, how) = match self.profile.source {
                Source::Measured => ("modelled", "--modelled shows them"),
                Source::Modelled => ("measured", "leave out --modelled to see them"),
            };
            notes
                .push(format!("{} {other} epochs are left out: {how}", self.selected.other_source));
        }
        notes.extend(self.selected.troubles.iter().map(ToString::to_string));
        notes
    }

    /// The status after everything that could be shown has been.
    pub(crate) fn finish(&self) -> Result<u8, Failure> {
        match self.selected.troubles.first() {
            None => Ok(0),
            Some(first) => Err(Failure::new(ERROR, first.to_string())
                .kept("everything else in the database is shown")),
        }
    }
}
