//! Builds what runs inside the traced process so that it can travel inside another binary.
//!
//! Constraints: runs in build scripts and tests, so no dependencies.
//!
//! Not for: running it (see `tracer::launch`).
//!
//! The plugin cannot be an ordinary dependency: it is a shared object loaded into QEMU, where a
//! panic must abort instead of unwinding through C, and where it runs for every block of the
//! program, so it is optimised even in a debug build. Cargo has no stable way to depend on a shared
//! object or to give one package its own panic strategy. So this crate runs a second cargo on the
//! plugin's package, with the workspace's `plugin` profile and a target directory of its own: the
//! outer cargo holds the lock of its own while a build script runs. The lock file is the workspace's,
//! so both are built from the same versions. The native engine is an executable of the same profile and
//! is built along.
//!
//! ```text
//! build.rs:  let built = tracer_embed::build(Path::new(&env::var_os("OUT_DIR")?))?;
//!            tracer_embed::sources().iter().for_each(|source| {
//!                println!("cargo::rerun-if-changed={}", source.display());
//!            });
//!            println!("cargo::rustc-env=WHITHER_PLUGIN={}", built.plugin.display());
//!            println!("cargo::rustc-env=WHITHER_NATIVE={}", built.native.display());
//! main.rs:   static ENGINES: Engines<'_> = Engines {
//!                plugin: include_bytes!(env!("WHITHER_PLUGIN")),
//!                native: include_bytes!(env!("WHITHER_NATIVE")),
//!            };
//! ```
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fmt, io};

/// Why there is nothing to embed.
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
                write!(f, "cargo could not be started to build the tracer's engines: {why}")
            }
            EmbedError::Build(words) => write!(f, "the tracer's engines do not build: {words}"),
        }
    }
}

impl std::error::Error for EmbedError {}

/// The directory of the plugin's package.
pub fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugin")
}

/// What a build script must watch: the plugin, the native engine and the rooms that they are built
/// from.
pub fn sources() -> Vec<PathBuf> {
    let tracer = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let own = ["plugin", "native", "src", "Cargo.toml"];
    let rooms = ["../model", "../pmu", "../metrology", "../vocab"];
    let workspace = ["../../machines", "../../Cargo.lock", "../../Cargo.toml"];
    let all = own.iter().chain(&rooms).chain(&workspace);
    all.map(|source| tracer.join(source)).collect()
}

/// What was built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Built {
    /// The QEMU plugin, a shared object.
    pub plugin: PathBuf,
    /// The native engine, an executable.
    pub native: PathBuf,
}

/// Builds both under `out` and says where they are.
pub fn build(out: &Path) -> Result<Built, EmbedError> {
    let target = out.join("tracer-plugin");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--profile", "plugin", "--locked", "--quiet"])
        .args(["-p", "tracer-plugin", "-p", "tracer-native", "--manifest-path"])
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
    let built = target.join("plugin");
    Ok(Built { plugin: built.join("libtracer_plugin.so"), native: built.join("tracer-native") })
}
