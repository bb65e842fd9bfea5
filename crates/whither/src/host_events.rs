//! Which events this machine has names for: the kernel's, its core's, and those of its PMUs.

use std::fs;
use std::path::Path;

use pmu::{Device, Dictionary, EventTable, HostCore, TermFormat, core_of};

use crate::doctor::this_processor;
use crate::failure::Failure;

const DEVICES: &str = "/sys/bus/event_source/devices";
/// Where tracepoints have their numbers; the second is the older place.
const TRACEPOINTS: [&str; 2] = ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"];

/// Everything that can be named on this machine.
pub(crate) fn dictionary(status: u8) -> Result<Dictionary, Failure> {
    let failed = |error: pmu::TableError| Failure::new(status, error.to_string());
    let table = EventTable::embedded().map_err(failed)?;
    let core = core_of(&host_core()).map_err(failed)?;
    Ok(Dictionary { table, core, devices: devices(Path::new(DEVICES)), tracepoints: tracepoint })
}

/// The processor as it names itself.
pub(crate) fn host_core() -> HostCore {
    let here = this_processor();
    let is_arm = here.vendor.starts_with("0x");
    HostCore {
        vendor: here.vendor,
        family: here.family,
        model: here.model,
        part: if is_arm { here.name } else { String::new() },
    }
}

/// The PMUs under a folder of sysfs; one that cannot be read is left out.
pub(crate) fn devices(folder: &Path) -> Vec<Device> {
    let mut devices: Vec<Device> = names_in(folder)
        .into_iter()
        .filter_map(|name| {
            let folder = folder.join(&name);
            let kind = text(&folder.join("type"))?.parse().ok()?;
            let mut device = Device {
                kind,
                formats: formats(&folder.join("format")),
                events: events(&folder.join("events")),
                cpumask: text(&folder.join("cpumask")).unwrap_or_default(),
                name,
            };
            device.formats.sort_by(|a, b| a.0.cmp(&b.0));
            Some(device)
        })
        .collect();
    devices.sort_by(|a, b| a.name.cmp(&b.name));
    devices
}

fn formats(folder: &Path) -> Vec<(String, TermFormat)> {
    let named = names_in(folder).into_iter();
    named
        .filter_map(|name| {
            let format = TermFormat::parse(&text(&folder.join(&name))?)?;
            Some((name, format))
        })
        .collect()
}

/// Files with a dot say the scale and unit of another.
fn events(folder: &Path) -> Vec<(String, String)> {
    let named = names_in(folder).into_iter().filter(|name| !name.contains('.'));
    named.filter_map(|name| Some((name.clone(), text(&folder.join(&name))?))).collect()
}

fn names_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The number of a tracepoint; none where there is none, or where it may not be read.
fn tracepoint(group: &str, name: &str) -> Option<u64> {
    let is_plain = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if !is_plain(group) || !is_plain(name) {
        return None;
    }
    let id = |folder: &&str| text(&Path::new(folder).join(group).join(name).join("id"));
    TRACEPOINTS.iter().find_map(id)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pmus_are_read_from_a_folder_like_sysfs() {
        let folder = std::env::temp_dir().join(format!("whither-pmus-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("cpu/type", "4\n");
        write("cpu/format/event", "config:0-7,32-35\n");
        write("cpu/format/odd", "config9:0\n");
        write("cpu/events/cache-misses", "event=0x64,umask=0x09\n");
        write("cpu/events/cache-misses.scale", "1\n");
        write("broken/type", "four\n");
        let found = devices(&folder);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].kind), ("cpu", 4));
        assert_eq!(found[0].formats.len(), 1);
        assert_eq!(found[0].events, [("cache-misses".into(), "event=0x64,umask=0x09".into())]);
    }

    #[test]
    fn no_path_can_be_smuggled_into_a_tracepoints_name() {
        assert_eq!(tracepoint("..", "x"), None);
        assert_eq!(tracepoint("sched", "../../x"), None);
    }
}
