//! What a result was measured on: processor, memory, kernel, date. No host name, no path.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// The machine, as a result records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The processor's own name.
    pub processor: String,
    /// Logical processors that this process may use.
    pub processors: usize,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The kernel's release.
    pub kernel: String,
    /// The distribution's name.
    pub system: String,
    /// The hypervisor's presence, as the processor says it.
    pub virtual_machine: bool,
}

impl Machine {
    /// This one.
    pub fn this() -> Machine {
        let cpuinfo = read("/proc/cpuinfo");
        let field = |name: &str| value_of(&cpuinfo, name).unwrap_or_else(|| "unknown".to_owned());
        let memory = value_of(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
        let kib = memory.split(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
        let system = read("/etc/os-release");
        let name = system.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        Machine {
            processor: field("model name"),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            memory_mib: kib / 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            system: name.unwrap_or("unknown").trim_matches('"').to_owned(),
            virtual_machine: field("flags").split(' ').any(|flag| flag == "hypervisor"),
        }
    }

    /// As an object.
    pub fn json(&self) -> Value {
        json!({
            "processor": self.processor, "processors": self.processors,
            "memory_mib": self.memory_mib, "kernel": self.kernel, "system": self.system,
            "virtual_machine": self.virtual_machine,
        })
    }

    /// As one line.
    pub fn text(&self) -> String {
        let kind = if self.virtual_machine { "virtual machine" } else { "bare machine" };
        format!(
            "{}, {} processors, {} MiB, {kind}; {}, Linux {}",
            self.processor, self.processors, self.memory_mib, self.system, self.kernel
        )
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The value of the first `name : value` line.
fn value_of(text: &str, name: &str) -> Option<String> {
    let line = |line: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    text.lines().find_map(line)
}

/// Today in UTC, as year-month-day.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    date_of((seconds / 86_400) as i64)
}

/// The civil date of a day counted from 1970-01-01.
fn date_of(day: i64) -> String {
    // Years start in March, so that the leap day is the last of its year; 146,097 days make an
    // era of 400 years.
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day_of_month:02}")
}

/// The first line that `program` prints about its version; why not otherwise.
///
/// # Errors
///
/// It is not installed, or does not answer.
pub fn version_of(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .map_err(|_| format!("{program} is not on the path"))?;
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    let text = String::from_utf8_lossy(&text);
    match text.lines().find(|line| !line.trim().is_empty()) {
        Some(line) if output.status.success() => Ok(line.trim().to_owned()),
        Some(line) => Err(format!("{program} does not work here: {}", line.trim())),
        None => Err(format!("{program} says nothing about its version")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_civil_dates() {
        let dates = [0, 59, 11_016, 19_782, 20_772, -1].map(date_of);
        let expected =
            ["1970-01-01", "1970-03-01", "2000-02-29", "2024-02-29", "2026-11-15", "1969-12-31"];
        assert_eq!(dates, expected);
    }

    #[test]
    fn the_first_of_several_values_counts() {
        assert_eq!(value_of("a\t: 1\na : 2\n", "a").as_deref(), Some("1"));
        assert_eq!(value_of("b: x\n", "a"), None);
    }
}
