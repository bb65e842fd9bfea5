//! What the tracer counted, as a profile.

use tracer::counts::{ProcessCounts, Spot as Ran, Totals};
use tracer::launch::Finished;
use vocab::{
    Count, Epoch, Event, EventCode, EventId, Image, ImageKind, Mode, Offset, Pid, Profile, Source,
    Spot,
};

use crate::model::MODELLED;

/// The event of the profile that holds how often instructions ran.
pub(super) const RUNS: EventId = EventId(0);

/// Exact counts of all processes together.
pub(super) struct Counted {
    /// How often the instruction at each place ran.
    pub(super) profile: Profile,
    pub(super) totals: Totals,
    pub(super) processes: usize,
    pub(super) notes: Vec<String>,
}

impl Counted {
    pub(super) fn read(finished: &Finished) -> Counted {
        let event = Event {
            name: "instructions".into(),
            code: EventCode::new(MODELLED, 0),
            mode: Mode::User,
        };
        let epoch = Epoch { host: String::new(), began_unix_ns: 0 };
        let mut counted = Counted {
            profile: Profile::empty(epoch, Source::Modelled, vec![event]),
            totals: Totals::default(),
            processes: 0,
            notes: finished.missing_instruction().map(str::to_owned).into_iter().collect(),
        };
        for process in tracer::counts::counts(&finished.processes) {
            counted.add(&process);
        }
        counted
    }

    fn add(&mut self, process: &ProcessCounts) {
        let own = process.totals();
        let both = |a: Option<u64>, b: Option<u64>| match self.processes {
            0 => b,
            _ => Some(a?.saturating_add(b?)),
        };
        self.totals = Totals {
            instructions: self.totals.instructions.saturating_add(own.instructions),
            blocks: self.totals.blocks.saturating_add(own.blocks),
            loads: both(self.totals.loads, own.loads),
            stores: both(self.totals.stores, own.stores),
            taken: self.totals.taken.saturating_add(own.taken),
            not_taken: self.totals.not_taken.saturating_add(own.not_taken),
        };
        self.processes += 1;
        for (ran, times) in process.instructions() {
            let (image, offset) = place(process, &ran);
            let image = self.profile.image_id(&image);
            self.profile.store(Spot { image, offset, event: RUNS }, Count(times));
        }
        if !process.is_complete {
            let pid = process.key.pid;
            self.notes.push(format!("process {pid} left too much to keep: counts are missing"));
        }
        for (path, is_followed) in &process.execs {
            if !is_followed {
                self.notes.push(format!("{path} was started and could not be followed"));
            }
        }
    }
}

fn place(process: &ProcessCounts, ran: &Ran) -> (Image, Offset) {
    match ran.place {
        Some(at) => {
            let path = process.images.get(at.image as usize).cloned().unwrap_or_default();
            (Image { kind: ImageKind::File, path, build_id: None }, Offset(at.offset))
        }
        None => {
            let pid = process.key.pid;
            let path = format!("[generated code of process {pid}]");
            let kind = ImageKind::Generated(Pid(pid));
            (Image { kind, path, build_id: None }, Offset(ran.pc))
        }
    }
}
