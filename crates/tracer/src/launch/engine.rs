//! What both engines have in common for the launcher and for whoever follows an exec.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::probe::{Qemu, QemuError, probe};
use super::target::Target;
use super::{native, qemu};
use crate::settings::{Engine, Settings, native_path, plugin_path};

/// Which engine runs a program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum EngineChoice {
    /// Whichever [`CHOICE`] names; if it names none our own, and QEMU where that cannot run.
    #[default]
    Best,
    /// QEMU; found by PATH if none is given.
    Qemu(Option<Qemu>),
    /// Our own, which travels with us.
    Native,
}

/// The variable of the environment that chooses an engine: `native` or `qemu`.
pub const CHOICE: &str = "WHITHER_ENGINE";

/// Whether this machine can run the native engine: an x86-64 processor with AVX and BMI2, and a kernel
/// that lets programs set their thread pointers.
pub fn can_run_natively() -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    {
        const FSGSBASE: u64 = 2;
        // SAFETY: asks the C library for a number.
        let allowed = unsafe { libc::getauxval(libc::AT_HWCAP2) };
        let has_vectors = is_x86_feature_detected!("avx") && is_x86_feature_detected!("bmi2");
        allowed & FSGSBASE != 0 && has_vectors
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    false
}

impl EngineChoice {
    /// What the environment asks for, or what is best here.
    pub fn best() -> EngineChoice {
        match std::env::var(CHOICE).as_deref() {
            Ok("qemu") => EngineChoice::Qemu(None),
            Ok("native") => EngineChoice::Native,
            _ if can_run_natively() => EngineChoice::Native,
            _ => EngineChoice::Qemu(None),
        }
    }

    /// What a report calls the engine that this comes to.
    pub fn name(&self) -> &'static str {
        match self {
            EngineChoice::Best => EngineChoice::best().name(),
            EngineChoice::Qemu(_) => "qemu-user",
            EngineChoice::Native => "the native engine",
        }
    }

    /// The engine itself, if it is there.
    pub(super) fn find(&self) -> Result<Engine, QemuError> {
        match self {
            EngineChoice::Best => EngineChoice::best().find(),
            EngineChoice::Qemu(Some(qemu)) => Ok(Engine::Qemu(qemu.path.clone())),
            EngineChoice::Qemu(None) => Ok(Engine::Qemu(probe()?.path)),
            EngineChoice::Native => Ok(Engine::Native),
        }
    }
}

/// The bytes of what runs inside the traced process (see `tracer-embed`).
#[derive(Clone, Copy, Debug)]
pub struct Engines<'a> {
    /// QEMU's plugin, a shared object.
    pub plugin: &'a [u8],
    /// The native engine, an executable.
    pub native: &'a [u8],
}

impl Engines<'_> {
    /// Writes what an engine needs to the shared directory.
    pub(super) fn write(&self, engine: &Engine, dir: &Path) -> io::Result<()> {
        match engine {
            Engine::Qemu(_) => fs::write(plugin_path(dir), self.plugin),
            Engine::Native => {
                let path = native_path(dir);
                fs::write(&path, self.native)?;
                fs::set_permissions(&path, Permissions::from_mode(0o755))
            }
        }
    }
}

/// The command that runs a target under the engine of the settings: the engine's path, and its
/// arguments, its own name left out.
///
/// `arguments` are the program's, its name first.
pub fn command_line(
    settings: &Settings,
    dir: &Path,
    target: &Target,
    guest_only: &[OsString],
    arguments: &[OsString],
) -> (PathBuf, Vec<OsString>) {
    match &settings.engine {
        Engine::Qemu(path) => {
            (path.clone(), qemu::arguments(settings, dir, target, guest_only, arguments))
        }
        Engine::Native => (native_path(dir), native::arguments(dir, target, guest_only, arguments)),
    }
}

/// Splits an environment into what the engine itself may see and what it sets for the program only.
///
/// An engine is a program of this machine: the dynamic linker's variables would change it too.
/// Assignments are `NAME=value`. One with a comma cannot be passed to QEMU by option (QEMU splits
/// there), so it stays with QEMU, which still hands it on.
pub fn split_environment(
    engine: &Engine,
    environment: Vec<OsString>,
) -> (Vec<OsString>, Vec<OsString>) {
    let can_be_passed = |bytes: &[u8]| *engine == Engine::Native || !bytes.contains(&b',');
    let is_for_linker = |assignment: &OsString| {
        let bytes = assignment.as_bytes();
        let named = [&b"LD_"[..], b"GLIBC_TUNABLES="].iter().any(|name| bytes.starts_with(name));
        named && can_be_passed(bytes)
    };
    let (guest_only, host) = environment.into_iter().partition(is_for_linker);
    (host, guest_only)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linker_s_variables_reach_the_program_only() {
        let strings = |all: &[&str]| all.iter().map(OsString::from).collect::<Vec<_>>();
        let all = strings(&["A=1", "LD_PRELOAD=/x.so", "LD_AUDIT=a,b", "PATH=/bin"]);
        let (host, guest_only) = split_environment(&Engine::Qemu("/q".into()), all.clone());
        assert_eq!(host, strings(&["A=1", "LD_AUDIT=a,b", "PATH=/bin"]));
        assert_eq!(guest_only, strings(&["LD_PRELOAD=/x.so"]));
        let (host, guest_only) = split_environment(&Engine::Native, all);
        assert_eq!(host, strings(&["A=1", "PATH=/bin"]));
        assert_eq!(guest_only, strings(&["LD_PRELOAD=/x.so", "LD_AUDIT=a,b"]));
    }
}
