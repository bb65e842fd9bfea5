//! Builds the QEMU plugin so that it can travel inside another binary.
//!
//! Constraints: runs in build scripts and tests, so no dependencies.
//!
//! Not for: running the plugin (see `tracer::launch`).
//!
//! The plugin cannot be an ordinary dependency: it is a shared object loaded into QEMU, where a
//! panic must abort instead of unwinding through C, and where it runs for every block of the
//! program, so it is optimised even in a debug build. Cargo has no stable way to depend on a shared
//! object or to give one package its own panic strategy. So this crate runs a second cargo on the
//! plugin's package, with the workspace's `plugin` profile and a target directory of its own: the
//! outer cargo holds the lock of its own while a build script runs. The lock file is the workspace's,
//! so both are built from the same versions.
//!
//! ```text
//! build.rs:  let plugin = tracer_embed::build(Path::new(&env::var_os("OUT_DIR")?))?;
//!            tracer_embed::sources().iter().for_each(|source| {
//!                println!("cargo::rerun-if-changed={}", source.display());
//!            });
//!            println!("cargo::rustc-env=WHITHER_PLUGIN={}", plugin.display());
//! main.rs:   static PLUGIN: &[u8] = include_bytes!(env!("WHITHER_PLUGIN"));
//! ```
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fmt, io};

/// Why there is no plugin.
#[derive(Debug)]
pub enum EmbedError {
    /// Cargo could not be started.
    Cargo(io::Error),
    /// Cargo ran and failed; its own words are kept.
    Build(String),
}

impl fmt::Display for EmbedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EmbedError::Cargo(why) => {
                write!(f, "cargo could not be started to build the plugin: {why}")
            }
            EmbedError::Build(words) => write!(f, "the plugin does not build: {words}"),
        }
    }
}

impl std::error::Error for EmbedError {}

/// The directory of the plugin's package.
pub fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin")
}

/// What a build script must watch: the plugin and the rooms that it is built from.
pub fn sources() -> Vec<PathBuf> {
    let tracer = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let own = ["plugin", "src", "Cargo.toml"];
    let rooms = ["../model", "../pmu", "../metrology", "../vocab"];
    let workspace = ["../../machines", "../../Cargo.lock", "../../Cargo.toml"];
    let all = own.iter().chain(&rooms).chain(&workspace);
    all.map(|source| tracer.join(source)).collect()
}

/// Builds the plugin under `out` and says where the shared object is.
pub fn build(out: &Path) -> Result<PathBuf, EmbedError> {
    let target = out.join("tracer-plugin");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--profile", "plugin", "--locked", "--quiet", "--manifest-path"])
        .arg(package().join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target);
    // The outer cargo speaks to its build scripts through these; the inner one must not hear.
    for name in ["CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "CARGO_TARGET_DIR", "RUSTC_WRAPPER"] {
        command.env_remove(name);
    }
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PROFILE_") || text.starts_with("CARGO_CFG_") {
            command.env_remove(&name);
        }
    }
    let output = command.output().map_err(EmbedError::Cargo)?;
    if !output.status.success() {
        return Err(EmbedError::Build(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(target.join("plugin/libtracer_plugin.so"))
}
