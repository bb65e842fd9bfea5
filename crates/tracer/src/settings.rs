//! What the launcher tells the engine, in a file of the directory that both share.
//!
//! The engine gets only the directory from its command line. A program that becomes another by
//! exec is started with the same directory, so it finds the same settings.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use crate::modelled::{CountAsk, ModelAsk};

/// Who listens to the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Listener {
    /// Exact counts per block; memory accesses too if asked, which takes about twice as long.
    Tally {
        /// Whether loads and stores are counted.
        counts_accesses: bool,
    },
    /// The trace file that every process appends to.
    Trace(PathBuf),
    /// The socket that every process sends its trace to.
    Socket(PathBuf),
    /// A hash of the stream, for comparing streams.
    Hash,
    /// Nobody: for measuring what listening costs.
    Null,
    /// A modelled core.
    Model(ModelAsk),
    /// A modelled core whose counters take turns.
    Count(Box<CountAsk>),
}

impl Listener {
    /// Whether memory accesses are reported.
    pub fn watches_memory(&self) -> bool {
        *self != Listener::Tally { counts_accesses: false }
    }
}

/// What runs the program, and the programs that it becomes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Engine {
    /// The QEMU at a path, with our plugin.
    Qemu(PathBuf),
    /// Our own, which lies in the shared directory.
    Native,
}

impl Engine {
    /// What lies in the shared directory for it.
    pub fn path(&self, dir: &Path) -> PathBuf {
        match self {
            Engine::Qemu(_) => plugin_path(dir),
            Engine::Native => native_path(dir),
        }
    }
}

/// What the engine needs to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// What runs the program.
    pub engine: Engine,
    /// The seed of what the engine makes up, where runs are to be the same.
    pub seed: Option<u64>,
    /// Who listens.
    pub listener: Listener,
}

/// Why there are no settings.
#[derive(Debug)]
pub enum SettingsError {
    /// The file could not be read or written.
    Io(io::Error),
    /// A line makes no sense.
    Line(String),
    /// A path cannot be written in a line.
    Path(PathBuf),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::Io(why) => write!(f, "the tracer's settings cannot be kept: {why}"),
            SettingsError::Line(line) => write!(f, "the tracer's settings have a bad line: {line}"),
            SettingsError::Path(path) => {
                write!(
                    f,
                    "the path {} contains a line break, which the tracer cannot pass on",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for SettingsError {}

/// The plugin's name in the shared directory.
pub fn plugin_path(dir: &Path) -> PathBuf {
    dir.join("plugin.so")
}

/// The native engine's name in the shared directory.
pub fn native_path(dir: &Path) -> PathBuf {
    dir.join("engine")
}

impl Settings {
    fn path(dir: &Path) -> PathBuf {
        dir.join("settings")
    }

    /// Writes the settings to the shared directory.
    pub fn write(&self, dir: &Path) -> Result<(), SettingsError> {
        let mut text = Vec::new();
        let mut line = |name: &str, value: &OsStr| {
            if value.as_bytes().contains(&b'\n') {
                return Err(SettingsError::Path(value.into()));
            }
            text.extend_from_slice(name.as_bytes());
            text.push(b'=');
            text.extend_from_slice(value.as_bytes());
            text.push(b'\n');
            Ok(())
        };
        match &self.engine {
            Engine::Qemu(path) => line("qemu", path.as_os_str())?,
            Engine::Native => line("engine", OsStr::new("native"))?,
        }
        if let Some(seed) = self.seed {
            line("seed", OsStr::new(&seed.to_string()))?;
        }
        match &self.listener {
            Listener::Tally { counts_accesses: true } => line("tally", OsStr::new("accesses"))?,
            Listener::Tally { counts_accesses: false } => line("tally", OsStr::new("blocks"))?,
            Listener::Trace(path) => line("trace", path.as_os_str())?,
            Listener::Socket(path) => line("socket", path.as_os_str())?,
            Listener::Hash => line("listener", OsStr::new("hash"))?,
            Listener::Null => line("listener", OsStr::new("null"))?,
            Listener::Count(ask) => {
                line("count", OsStr::new(&ask.model.to_line()))?;
                if ask.logs.as_os_str().as_bytes().contains(&b'\n') {
                    return Err(SettingsError::Path(ask.logs.clone()));
                }
                let machine = &ask.model.machine;
                fs::write(Settings::machine_path(dir), machine).map_err(SettingsError::Io)?;
                let counting = Settings::counting_path(dir);
                fs::write(counting, ask.to_text()).map_err(SettingsError::Io)?;
            }
            Listener::Model(ask) => {
                line("model", OsStr::new(&ask.to_line()))?;
                fs::write(Settings::machine_path(dir), &ask.machine).map_err(SettingsError::Io)?;
            }
        }
        fs::write(Settings::path(dir), text).map_err(SettingsError::Io)
    }

    /// Reads the settings from the shared directory.
    pub fn read(dir: &Path) -> Result<Settings, SettingsError> {
        // Only a modelled core has a machine; parsing finds out whether one is missing.
        let machine = fs::read_to_string(Settings::machine_path(dir)).unwrap_or_default();
        let counting = fs::read_to_string(Settings::counting_path(dir)).unwrap_or_default();
        let text = fs::read(Settings::path(dir)).map_err(SettingsError::Io)?;
        Settings::parse(&text, machine, &counting)
    }

    fn counting_path(dir: &Path) -> PathBuf {
        dir.join("counting")
    }

    fn machine_path(dir: &Path) -> PathBuf {
        dir.join("machine.toml")
    }

    fn parse(text: &[u8], mut machine: String, counting: &str) -> Result<Settings, SettingsError> {
        let (mut engine, mut seed, mut listener) = (None, None, None);
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let bad = || SettingsError::Line(String::from_utf8_lossy(line).into_owned());
            let equals = line.iter().position(|byte| *byte == b'=').ok_or_else(bad)?;
            let (name, value) = line.split_at(equals);
            let value = value.get(1..).unwrap_or_default();
            let path = || PathBuf::from(OsStr::from_bytes(value));
            match (name, value) {
                (b"qemu", _) => engine = Some(Engine::Qemu(path())),
                (b"engine", b"native") => engine = Some(Engine::Native),
                (b"seed", _) => {
                    let digits = std::str::from_utf8(value).ok();
                    seed = Some(digits.and_then(|digits| digits.parse().ok()).ok_or_else(bad)?);
                }
                (b"tally", b"accesses") => {
                    listener = Some(Listener::Tally { counts_accesses: true });
                }
                (b"tally", b"blocks") => {
                    listener = Some(Listener::Tally { counts_accesses: false });
                }
                (b"trace", _) => listener = Some(Listener::Trace(path())),
                (b"socket", _) => listener = Some(Listener::Socket(path())),
                (b"listener", b"hash") => listener = Some(Listener::Hash),
                (b"model", _) => {
                    let text = std::str::from_utf8(value).map_err(|_| bad())?;
                    let ask = ModelAsk::from_line(text, std::mem::take(&mut machine));
                    listener = Some(Listener::Model(ask.ok_or_else(bad)?));
                }
                (b"count", _) => {
                    let text = std::str::from_utf8(value).map_err(|_| bad())?;
                    let model = ModelAsk::from_line(text, std::mem::take(&mut machine));
                    let ask = CountAsk::from_text(counting, model.ok_or_else(bad)?);
                    listener = Some(Listener::Count(Box::new(ask.ok_or_else(bad)?)));
                }
                (b"listener", b"null") => listener = Some(Listener::Null),
                _ => return Err(bad()),
            }
        }
        match (engine, listener) {
            (Some(engine), Some(listener)) => Ok(Settings { engine, seed, listener }),
            _ => Err(SettingsError::Line("(something is missing)".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back_and_odd_ones_are_refused() {
        let dir = std::env::temp_dir().join(format!("whither-settings-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let listeners = [
            Listener::Tally { counts_accesses: true },
            Listener::Tally { counts_accesses: false },
            Listener::Trace("/tmp/a=b, c".into()),
            Listener::Socket("/tmp/s".into()),
            Listener::Hash,
            Listener::Null,
        ];
        for listener in listeners {
            for engine in [Engine::Qemu("/usr/bin/q".into()), Engine::Native] {
                let settings = Settings { engine, seed: Some(7), listener: listener.clone() };
                settings.write(&dir).unwrap();
                assert_eq!(Settings::read(&dir).unwrap(), settings);
            }
        }
        let odd =
            Settings { engine: Engine::Qemu("/a\nb".into()), seed: None, listener: Listener::Null };
        assert!(matches!(odd.write(&dir), Err(SettingsError::Path(_))));
        for text in [
            "qemu=/q\n",
            "listener=null\n",
            "qemu",
            "qemu=/q\nseed=x\n",
            "engine=other\n",
            "what=ever\n",
        ] {
            assert!(
                matches!(
                    Settings::parse(text.as_bytes(), String::new(), ""),
                    Err(SettingsError::Line(_))
                ),
                "{text}"
            );
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
