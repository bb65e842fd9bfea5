//! Every name that means an event here: the kernel's, this core's, and the PMUs' own.

use vocab::EventCode;

use crate::{CoreEvents, Device, EventTable};

/// Names and what they mean. The PMUs and tracepoints of a machine are read by the caller.
#[derive(Clone, Debug)]
pub struct Dictionary {
    /// The kernel's own names.
    pub table: EventTable,
    /// What is known about this machine's core beyond that.
    pub core: Option<CoreEvents>,
    /// The machine's PMUs.
    pub devices: Vec<Device>,
    /// The kernel's number of a tracepoint, where it may be read.
    pub tracepoints: fn(&str, &str) -> Option<u64>,
}

impl Dictionary {
    /// The kernel's names alone.
    pub fn of_table(table: EventTable) -> Dictionary {
        Dictionary { table, core: None, devices: Vec::new(), tracepoints: |_, _| None }
    }

    pub(crate) fn tracepoint(&self, group: &str, name: &str) -> Option<u64> {
        (self.tracepoints)(group, name)
    }

    /// The code of a plain name: the kernel's first, then the core's, then those of its PMUs.
    pub(crate) fn named(&self, name: &str) -> Option<EventCode> {
        let generic = self.table.get(name).map(crate::EventEntry::code);
        generic.or_else(|| self.of_core(name)).or_else(|| self.of_device(name))
    }

    fn of_core(&self, name: &str) -> Option<EventCode> {
        let core = self.core.as_ref()?;
        let event = core.event.iter().find(|event| event.name.eq_ignore_ascii_case(name))?;
        let device = self.devices.iter().find(|device| core.pmus.contains(&device.name))?;
        device.code(&event.code).ok().map(|(code, _)| code)
    }

    fn of_device(&self, name: &str) -> Option<EventCode> {
        let mut cores = self.devices.iter().filter(|device| device.is_core());
        let device = cores.find(|device| device.events.iter().any(|(known, _)| known == name))?;
        device.code(name).ok().map(|(code, _)| code)
    }

    /// Every plain name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let cores = self.devices.iter().filter(|device| device.is_core());
        let own = cores.flat_map(|device| &device.events).map(|(name, _)| name.as_str());
        let core = self.core.iter().flat_map(|core| &core.event).map(|event| event.name.as_str());
        self.table.names().chain(core).chain(own)
    }
}
